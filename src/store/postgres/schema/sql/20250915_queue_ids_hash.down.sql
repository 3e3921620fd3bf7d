DROP TRIGGER tr_queue_delete ON msg_queues;
DROP TRIGGER tr_queue_update ON msg_queues;
DROP TRIGGER tr_queue_insert ON msg_queues;
DROP FUNCTION on_queue_delete, on_queue_update, on_queue_insert, update_aggregates, update_all_aggregates;
DROP AGGREGATE xor_aggregate(BYTEA);
DROP FUNCTION xor_combine;
ALTER TABLE services
    DROP COLUMN queue_count,
    DROP COLUMN queue_ids_hash;
