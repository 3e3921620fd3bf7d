//! Statements of housekeeping. Each looks at or deletes a bounded number of rows.

/// Queues with expired messages, in the order of their recipient IDs.
///
/// Parameters: the recipient ID after which to look, how many queues to look at, seconds before which messages are expired,
/// about how many messages to find. Columns: the queues' recipient IDs (or NULL), and the ID after which the next step has
/// to look (NULL at the end).
///
/// Looking at a bounded part of the table keeps a step short also where hardly any queue has messages: no index has the
/// queues that have some in the order of their IDs.
pub(in super::super) const DUE: &str = "
    WITH page AS MATERIALIZED (
        SELECT recipient_id, deleted_at IS NULL AND msg_queue_expire AS may_expire
        FROM msg_queues WHERE recipient_id > $1::bytea ORDER BY recipient_id LIMIT $2::bigint
    ), counted AS (
        SELECT recipient_id, (
            SELECT count(*) FROM messages AS m
            WHERE m.recipient_id = page.recipient_id AND m.msg_ts < $3::bigint AND NOT m.msg_quota
        ) AS expired
        FROM page WHERE may_expire
    ), summed AS (
        SELECT recipient_id, sum(expired) OVER (ORDER BY recipient_id) - expired AS before
        FROM counted WHERE expired > 0
    ), due AS (
        SELECT array_agg(recipient_id ORDER BY recipient_id) AS ids FROM summed WHERE before < $4::bigint
    )
    SELECT ids, CASE
        WHEN EXISTS (SELECT 1 FROM summed WHERE before >= $4::bigint) THEN ids[cardinality(ids)]
        WHEN (SELECT count(*) FROM page) = $2::bigint THEN (SELECT recipient_id FROM page ORDER BY 1 DESC LIMIT 1)
    END
    FROM due";

/// Deletes the expired messages of these queues, which are locked; answers how many.
pub(in super::super) const EXPIRE: &str = "
    WITH expired AS (
        DELETE FROM messages WHERE recipient_id = ANY ($1::bytea[]) AND msg_ts < $2::bigint AND NOT msg_quota
        RETURNING recipient_id
    ), counted AS (
        SELECT recipient_id, count(*) AS deleted FROM expired GROUP BY recipient_id
    ), updated AS (
        UPDATE msg_queues AS q SET
            msg_can_write = q.msg_can_write OR q.msg_queue_size <= deleted,
            msg_queue_expire = q.msg_queue_size > deleted AND EXISTS (
                SELECT 1 FROM messages AS m
                WHERE m.recipient_id = q.recipient_id AND m.msg_ts >= $2::bigint AND NOT m.msg_quota
            ),
            msg_queue_size = greatest(q.msg_queue_size - deleted, 0)
        FROM counted WHERE q.recipient_id = counted.recipient_id
    )
    SELECT count(*) FROM expired";

/// Deletes the rows, as many as the second parameter says, of queues that were deleted before the first; answers how many.
pub(in super::super) const PURGE: &str = "
    WITH purged AS (
        DELETE FROM msg_queues WHERE recipient_id = ANY (ARRAY(
            SELECT recipient_id FROM msg_queues WHERE deleted_at < $1::bigint ORDER BY deleted_at LIMIT $2::bigint
        )) AND deleted_at < $1::bigint
        RETURNING 1
    )
    SELECT count(*) FROM purged";
