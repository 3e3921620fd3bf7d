-- The columns take their indexes and foreign keys with them.
ALTER TABLE msg_queues
    DROP COLUMN rcv_service_id,
    DROP COLUMN ntf_service_id;
DROP TABLE services;
