//! Statements on messages: the rules of quota, expiry and acknowledgement.

/// Deletes what has expired of a queue, appends a message or, when the queue is full, a quota marker, and deletes the link
/// if asked. Nothing is done to a queue that is not active.
///
/// Parameters: recipient ID, message ID, seconds, notification flag, body, quota, seconds before which messages are expired
/// (or NULL), whether to delete the link. Columns: whether the queue is active, messages there were (without the expired
/// ones), expired messages, number of the appended message or marker (or NULL), whether it is a marker, the service that the recipient is
/// associated with, and the notifier if the flag asks for a notification.
///
/// A queue that was given a marker takes nothing until it is empty, which `msg_can_write` remembers. Whether it is empty, its
/// messages say and not their count: a wrong one would leave it full for ever, or its subscriber without the message.
pub(in super::super) const SEND: &str = "
    WITH queue AS (
        SELECT status = 'active' AS active, msg_can_write, msg_queue_size, rcv_service_id,
            CASE WHEN $4::boolean THEN notifier_id END AS notifier_id, notifier_key, rcv_ntf_dh_secret, ntf_service_id
        FROM msg_queues WHERE recipient_id = $1::bytea AND deleted_at IS NULL
    ), expired AS (
        DELETE FROM messages USING queue
        WHERE queue.active AND recipient_id = $1::bytea AND msg_ts < $7::bigint AND NOT msg_quota
        RETURNING 1
    ), state AS (
        SELECT active, CASE WHEN filled THEN greatest(msg_queue_size - deleted, 1) ELSE 0 END AS size, deleted,
            active AND (msg_can_write OR NOT filled) AS writes
        FROM queue, (SELECT count(*) AS deleted FROM expired) AS counted, (
            SELECT EXISTS (
                SELECT 1 FROM messages AS m
                WHERE m.recipient_id = $1::bytea AND (m.msg_quota OR coalesce(m.msg_ts >= $7::bigint, TRUE))
            ) AS filled
        ) AS looked
    ), appended AS (
        INSERT INTO messages (recipient_id, msg_id, msg_ts, msg_quota, msg_ntf_flag, msg_body)
        SELECT $1::bytea, $2::bytea, $3::bigint, size >= $6::bigint, $4::boolean AND size < $6::bigint,
            CASE WHEN size < $6::bigint THEN $5::bytea ELSE '' END
        FROM state WHERE writes
        RETURNING message_id, msg_quota
    ), counted AS (
        UPDATE msg_queues AS q SET
            msg_queue_size = CASE WHEN message_id IS NULL THEN size ELSE size + 1 END,
            msg_can_write = CASE WHEN message_id IS NULL THEN q.msg_can_write ELSE NOT msg_quota END,
            msg_queue_expire = message_id IS NOT NULL OR CASE
                WHEN deleted = 0 THEN q.msg_queue_expire
                ELSE EXISTS (
                    SELECT 1 FROM messages AS m
                    WHERE m.recipient_id = $1::bytea AND m.msg_ts >= $7::bigint AND NOT m.msg_quota
                )
            END,
            link_id = CASE WHEN $8::boolean THEN NULL ELSE q.link_id END,
            fixed_data = CASE WHEN $8::boolean THEN NULL ELSE q.fixed_data END,
            user_data = CASE WHEN $8::boolean THEN NULL ELSE q.user_data END
        FROM state LEFT JOIN appended ON TRUE
        WHERE q.recipient_id = $1::bytea AND active
            AND (message_id IS NOT NULL OR deleted > 0 OR ($8::boolean AND q.link_id IS NOT NULL))
    )
    SELECT state.active, size, deleted, message_id, coalesce(msg_quota, FALSE), rcv_service_id, notifier_id, notifier_key,
        rcv_ntf_dh_secret, ntf_service_id
    FROM queue, state LEFT JOIN appended ON TRUE";

/// Deletes the first message of a queue if it is the one that is named (any, for NULL).
///
/// Parameters: recipient ID, message ID or NULL, whether the next message is to be read. Columns: whether a message was
/// deleted that is no marker, then the next one (all NULL if there is none; its body only if asked for).
pub(in super::super) const ACKNOWLEDGE: &str = "
    WITH queue AS (
        SELECT 1 FROM msg_queues WHERE recipient_id = $1::bytea AND deleted_at IS NULL
    ), head AS (
        SELECT message_id, msg_id FROM messages WHERE recipient_id = $1::bytea ORDER BY message_id LIMIT 1
    ), deleted AS (
        DELETE FROM messages AS m USING head, queue
        WHERE m.message_id = head.message_id AND ($2::bytea IS NULL OR head.msg_id = $2::bytea)
        RETURNING m.message_id, m.msg_quota
    ), next AS (
        SELECT message_id, msg_id, msg_ts, msg_quota, msg_ntf_flag, CASE WHEN $3::boolean THEN msg_body END AS msg_body
        FROM messages
        WHERE recipient_id = $1::bytea AND message_id > (SELECT coalesce(max(message_id), 0) FROM deleted)
        ORDER BY message_id LIMIT 1
    ), counted AS (
        UPDATE msg_queues AS q SET
            msg_can_write = next.message_id IS NULL OR q.msg_can_write OR q.msg_queue_size <= 1,
            msg_queue_expire = next.message_id IS NOT NULL AND q.msg_queue_size > 1,
            msg_queue_size = CASE WHEN next.message_id IS NULL THEN 0 ELSE greatest(q.msg_queue_size - 1, 1) END
        FROM queue LEFT JOIN deleted ON TRUE LEFT JOIN next ON TRUE
        WHERE q.recipient_id = $1::bytea
            AND (deleted.message_id IS NOT NULL OR (next.message_id IS NULL AND q.msg_queue_size <> 0))
    )
    SELECT coalesce(NOT deleted.msg_quota, FALSE), next.message_id, next.msg_id, next.msg_ts, next.msg_quota,
        next.msg_ntf_flag, next.msg_body
    FROM queue LEFT JOIN deleted ON TRUE LEFT JOIN next ON TRUE";
