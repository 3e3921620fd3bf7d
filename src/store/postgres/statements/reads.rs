//! Statements that read: one for each call of the trait. Each takes an array of IDs and answers rows for those that are
//! there, with the place of the ID in the array (from 1) first.

macro_rules! records {
    ($by:literal) => {
        concat!(
            "SELECT number, recipient_id, recipient_keys, rcv_dh_secret, sender_id, sender_key, queue_mode, notifier_id, ",
            "notifier_key, rcv_ntf_dh_secret, ntf_service_id, status, updated_at, link_id, rcv_service_id, ",
            "msg_queue_size = 0 AND NOT EXISTS (",
            "SELECT 1 FROM messages AS m WHERE m.recipient_id = msg_queues.recipient_id) ",
            "FROM unnest($1::bytea[]) WITH ORDINALITY AS asked (id, number) JOIN msg_queues ON ",
            $by,
            " = asked.id WHERE deleted_at IS NULL"
        )
    };
}

/// Records by recipient ID. The last column, as in all of these: whether the queue is empty. Its own count is not relied on:
/// a message that another server has not counted would wait for ever.
pub(in super::super) const RECORDS_BY_RECIPIENT: &str = records!("recipient_id");
/// Records by sender ID.
pub(in super::super) const RECORDS_BY_SENDER: &str = records!("sender_id");
/// Records by notifier ID.
pub(in super::super) const RECORDS_BY_NOTIFIER: &str = records!("notifier_id");
/// Records by link ID.
pub(in super::super) const RECORDS_BY_LINK: &str = records!("link_id");

/// The service of each queue, whether it has a message and, for the first ones that have, as many as the second parameter says: the queue's
/// secret and the message.
pub(in super::super) const FIRST_MESSAGES: &str = "
    WITH asked AS MATERIALIZED (
        SELECT number, rcv_service_id, rcv_dh_secret,
            (SELECT min(message_id) FROM messages AS m WHERE m.recipient_id = q.recipient_id) AS first
        FROM unnest($1::bytea[]) WITH ORDINALITY AS asked (id, number)
            JOIN msg_queues AS q ON q.recipient_id = asked.id
        WHERE q.deleted_at IS NULL
    ), ranked AS (
        SELECT number, rcv_service_id, rcv_dh_secret, first, count(first) OVER (ORDER BY number) AS rank FROM asked
    )
    SELECT number, rcv_service_id, first IS NOT NULL, rcv_dh_secret, message_id, msg_id, msg_ts, msg_quota, msg_ntf_flag, msg_body
    FROM ranked LEFT JOIN messages ON message_id = CASE WHEN rank <= $2::bigint THEN first END";

/// Size and first message of each queue, without bodies.
pub(in super::super) const STATES: &str = "
    SELECT number, msg_queue_size, first.msg_id, first.msg_ts, first.msg_quota
    FROM unnest($1::bytea[]) WITH ORDINALITY AS asked (id, number)
        JOIN msg_queues AS q ON q.recipient_id = asked.id
        LEFT JOIN LATERAL (
            SELECT msg_id, msg_ts, msg_quota FROM messages AS m
            WHERE m.recipient_id = q.recipient_id ORDER BY message_id LIMIT 1
        ) AS first ON TRUE
    WHERE q.deleted_at IS NULL";

/// Data of links.
pub(in super::super) const LINK_DATA: &str = "
    SELECT number, fixed_data, user_data
    FROM unnest($1::bytea[]) WITH ORDINALITY AS asked (id, number) JOIN msg_queues ON link_id = asked.id
    WHERE deleted_at IS NULL";

/// Queues and messages.
pub(in super::super) const COUNTS: &str =
    "SELECT (SELECT count(*) FROM msg_queues WHERE deleted_at IS NULL), (SELECT count(*) FROM messages)";
