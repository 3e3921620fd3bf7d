//! Statements on services. Which queues a service has stands in the queues' rows; triggers of the schema keep their number
//! and the hash of their IDs in the service's row.

/// Locks the services that a group may change the numbers of, in the order of their IDs: so two groups never wait for each
/// other. Parameters: services that are named, and queues that may have some.
pub(in super::super) const LOCK_SERVICES: &str = "
    SELECT count(*) FROM (
        SELECT 1 FROM services WHERE service_id IN (
            SELECT unnest($1::bytea[])
            UNION SELECT rcv_service_id FROM msg_queues WHERE recipient_id = ANY ($2::bytea[])
            UNION SELECT ntf_service_id FROM msg_queues WHERE recipient_id = ANY ($2::bytea[])
        ) ORDER BY service_id FOR NO KEY UPDATE
    ) AS locked";

/// Associates a queue with a service, or with none (NULL). Columns: whether there is such a service, and the one before.
pub(in super::super) const ASSOCIATE_RECIPIENT: &str = "
    WITH queue AS (
        SELECT rcv_service_id, $2::bytea IS NULL OR EXISTS (
            SELECT 1 FROM services WHERE service_id = $2::bytea AND service_role = 'M'
        ) AS known
        FROM msg_queues WHERE recipient_id = $1::bytea AND deleted_at IS NULL
    ), associated AS (
        UPDATE msg_queues AS q SET rcv_service_id = $2::bytea FROM queue
        WHERE q.recipient_id = $1::bytea AND known AND q.rcv_service_id IS DISTINCT FROM $2::bytea
    )
    SELECT known, rcv_service_id FROM queue";

/// The same for a queue's notifier, if it is the one that is named in the second parameter.
pub(in super::super) const ASSOCIATE_NOTIFIER: &str = "
    WITH queue AS (
        SELECT ntf_service_id, coalesce(notifier_id = $2::bytea, FALSE) AND ($3::bytea IS NULL OR EXISTS (
            SELECT 1 FROM services WHERE service_id = $3::bytea AND service_role = 'N'
        )) AS known
        FROM msg_queues WHERE recipient_id = $1::bytea AND deleted_at IS NULL
    ), associated AS (
        UPDATE msg_queues AS q SET ntf_service_id = $3::bytea FROM queue
        WHERE q.recipient_id = $1::bytea AND known AND q.ntf_service_id IS DISTINCT FROM $3::bytea
    )
    SELECT known, ntf_service_id FROM queue";

/// Finds the service with a certificate, or inserts it. Columns: its ID, its role, whether it was inserted. No row when
/// another one was inserted at the same moment.
pub(in super::super) const ENROL: &str = "
    WITH found AS (
        SELECT service_id, service_role FROM services WHERE service_cert_hash = $4::bytea
    ), inserted AS (
        INSERT INTO services (service_id, service_role, service_cert, service_cert_hash, created_at)
        SELECT $1::bytea, $2::text, $3::bytea, $4::bytea, $5::bigint WHERE NOT EXISTS (SELECT 1 FROM found)
        ON CONFLICT (service_cert_hash) DO NOTHING RETURNING service_id, service_role
    )
    SELECT service_id, service_role, FALSE FROM found UNION ALL SELECT service_id, service_role, TRUE FROM inserted";

/// How many queues a service has in a role, and the hash of their IDs.
pub(in super::super) const SERVICE_QUEUES: &str =
    "SELECT queue_count, queue_ids_hash FROM services WHERE service_id = $1 AND service_role = $2";

/// Queues of a service that have a message, behind an ID. Their own count is not relied on, as for
/// [`super::RECORDS_BY_RECIPIENT`].
pub(in super::super) const WAITING_QUEUES: &str = "
    SELECT recipient_id FROM msg_queues AS q
    WHERE rcv_service_id = $1::bytea AND deleted_at IS NULL AND recipient_id > $2::bytea
        AND EXISTS (SELECT 1 FROM messages AS m WHERE m.recipient_id = q.recipient_id)
    ORDER BY recipient_id LIMIT $3::bigint";

/// What is kept of each service's queues, and what there is.
pub(in super::super) const CHECK_SERVICES: &str = "
    SELECT service.service_id, service.service_role, service.queue_count, service.queue_ids_hash,
        coalesce(counted.queues, 0), coalesce(counted.ids_hash, '\\x00000000000000000000000000000000'::bytea)
    FROM services AS service LEFT JOIN (
        SELECT of_service.service_id, of_service.service_role, count(*) AS queues,
            xor_aggregate(public.digest(of_service.entity_id, 'md5')) AS ids_hash
        FROM (
            SELECT rcv_service_id AS service_id, 'M' AS service_role, recipient_id AS entity_id
            FROM msg_queues WHERE rcv_service_id IS NOT NULL AND deleted_at IS NULL
            UNION ALL
            SELECT ntf_service_id, 'N', notifier_id
            FROM msg_queues WHERE ntf_service_id IS NOT NULL AND notifier_id IS NOT NULL AND deleted_at IS NULL
        ) AS of_service
        GROUP BY of_service.service_id, of_service.service_role
    ) AS counted USING (service_id, service_role)
    ORDER BY service.service_id";

/// Puts what there is in the place of what is kept.
pub(in super::super) const REPAIR_SERVICES: &str = "SELECT update_all_aggregates()";
