//! Statements on queues.

/// Locks the queues with these recipient IDs, in their order: so two groups never wait for each other.
pub(in super::super) const LOCK: &str = "
    SELECT count(*) FROM (
        SELECT 1 FROM msg_queues WHERE recipient_id = ANY ($1::bytea[]) AND deleted_at IS NULL
        ORDER BY recipient_id FOR UPDATE
    ) AS locked";

/// Inserts a queue; no row when one of its IDs is taken (also by a queue that is deleted and not yet purged).
pub(in super::super) const CREATE: &str = "
    INSERT INTO msg_queues (recipient_id, recipient_keys, rcv_dh_secret, sender_id, sender_key, queue_mode, notifier_id,
        notifier_key, rcv_ntf_dh_secret, ntf_service_id, status, updated_at, link_id, rcv_service_id, fixed_data, user_data)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
    ON CONFLICT DO NOTHING RETURNING TRUE";

/// A row if there is such a queue.
pub(in super::super) const EXISTS: &str = "SELECT FALSE FROM msg_queues WHERE recipient_id = $1 AND deleted_at IS NULL";

/// Sets the sender's key if there is none; whether it is this one now.
pub(in super::super) const SECURE: &str = "
    WITH queue AS (
        SELECT sender_key FROM msg_queues WHERE recipient_id = $1 AND deleted_at IS NULL
    ), secured AS (
        UPDATE msg_queues SET sender_key = $2
        WHERE recipient_id = $1 AND deleted_at IS NULL AND sender_key IS NULL
    )
    SELECT sender_key IS NULL OR sender_key = $2 FROM queue";

/// Replaces the recipient's keys.
pub(in super::super) const SET_RECIPIENT_KEYS: &str =
    "UPDATE msg_queues SET recipient_keys = $2 WHERE recipient_id = $1 AND deleted_at IS NULL RETURNING TRUE";

/// [`SET_LINK`] has set the link.
pub(in super::super) const LINK_SET: i32 = 0;
/// [`SET_LINK`] has found the link at another queue.
pub(in super::super) const LINK_TAKEN: i32 = 2;

/// Sets a link and its data, or replaces its user data; answers one of the numbers above, or another when the queue has
/// another link or other fixed data. Fixed data that is not there, which the Haskell server has for links of old, may be
/// set.
pub(in super::super) const SET_LINK: &str = "
    WITH queue AS (
        SELECT CASE
            WHEN link_id = $2 AND coalesce(fixed_data = $3, TRUE) THEN 0
            WHEN link_id IS NOT NULL THEN 1
            WHEN EXISTS (SELECT 1 FROM msg_queues WHERE link_id = $2) THEN 2
            ELSE 0
        END AS verdict
        FROM msg_queues WHERE recipient_id = $1 AND deleted_at IS NULL
    ), linked AS (
        UPDATE msg_queues SET link_id = $2, fixed_data = $3, user_data = $4
        FROM queue WHERE recipient_id = $1 AND verdict = 0
    )
    SELECT verdict FROM queue";

/// Deletes the link and its data.
pub(in super::super) const DELETE_LINK: &str = "
    UPDATE msg_queues SET link_id = NULL, fixed_data = NULL, user_data = NULL
    WHERE recipient_id = $1 AND deleted_at IS NULL RETURNING TRUE";

/// Sets the notifier, or removes it when its columns are NULL, unless another queue has its ID. Answers whether that was
/// so, and the notifier there was.
pub(in super::super) const SET_NOTIFIER: &str = "
    WITH queue AS (
        SELECT notifier_id, notifier_key, rcv_ntf_dh_secret, ntf_service_id,
            EXISTS (SELECT 1 FROM msg_queues WHERE notifier_id = $2 AND recipient_id <> $1) AS taken
        FROM msg_queues WHERE recipient_id = $1 AND deleted_at IS NULL
    ), noted AS (
        UPDATE msg_queues AS q SET notifier_id = $2, notifier_key = $3, rcv_ntf_dh_secret = $4, ntf_service_id = $5
        FROM queue WHERE q.recipient_id = $1 AND NOT queue.taken
            AND (queue.notifier_id IS NOT NULL OR $2 IS NOT NULL)
    )
    SELECT taken, notifier_id, notifier_key, rcv_ntf_dh_secret, ntf_service_id FROM queue";

/// Sets the status.
pub(in super::super) const SET_STATUS: &str =
    "UPDATE msg_queues SET status = $2 WHERE recipient_id = $1 AND deleted_at IS NULL RETURNING TRUE";

/// Notes days of last use, the last one for a queue that is named twice; whether each queue is there, in their order. Most
/// are noted already, and nothing is written.
pub(in super::super) const TOUCH: &str = "
    WITH asked AS (
        SELECT id, day, number FROM unnest($1::bytea[], $2::bigint[]) WITH ORDINALITY AS asked (id, day, number)
    ), last AS (
        SELECT DISTINCT ON (id) id, day FROM asked ORDER BY id, number DESC
    ), touched AS (
        UPDATE msg_queues AS q SET updated_at = last.day FROM last
        WHERE q.recipient_id = last.id AND q.deleted_at IS NULL AND q.updated_at IS DISTINCT FROM last.day
    )
    SELECT q.recipient_id IS NOT NULL
    FROM asked LEFT JOIN msg_queues AS q ON q.recipient_id = asked.id AND q.deleted_at IS NULL
    ORDER BY number";

/// Deletes a queue; its messages go with it. Columns: the service that it was associated with, and its notifier.
pub(in super::super) const DELETE: &str = "
    DELETE FROM msg_queues WHERE recipient_id = $1 AND deleted_at IS NULL
    RETURNING rcv_service_id, notifier_id, notifier_key, rcv_ntf_dh_secret, ntf_service_id";

/// Marks a queue as deleted, frees the IDs of its link and notifier, and deletes its messages. Columns as of [`DELETE`].
pub(in super::super) const MARK_DELETED: &str = "
    WITH queue AS (
        SELECT rcv_service_id, notifier_id, notifier_key, rcv_ntf_dh_secret, ntf_service_id
        FROM msg_queues WHERE recipient_id = $1 AND deleted_at IS NULL
    ), emptied AS (
        DELETE FROM messages AS m USING msg_queues AS q
        WHERE m.recipient_id = $1 AND q.recipient_id = $1 AND q.deleted_at IS NULL
    ), marked AS (
        UPDATE msg_queues SET deleted_at = $2, link_id = NULL, fixed_data = NULL, user_data = NULL, notifier_id = NULL,
            notifier_key = NULL, rcv_ntf_dh_secret = NULL, ntf_service_id = NULL, msg_queue_size = 0, msg_can_write = TRUE,
            msg_queue_expire = FALSE
        WHERE recipient_id = $1 AND deleted_at IS NULL
    )
    SELECT rcv_service_id, notifier_id, notifier_key, rcv_ntf_dh_secret, ntf_service_id FROM queue";
