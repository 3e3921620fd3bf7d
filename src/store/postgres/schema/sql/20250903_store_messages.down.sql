DROP PROCEDURE expire_old_messages;
DROP FUNCTION delete_expired_msgs, try_del_peek_msg, try_del_msg, write_message;
DROP TABLE messages;
CREATE INDEX idx_msg_queues_updated_at ON msg_queues (deleted_at, updated_at);
DROP INDEX idx_msg_queues_updated_at_recipient_id;
ALTER TABLE msg_queues
    DROP COLUMN msg_can_write,
    DROP COLUMN msg_queue_expire,
    DROP COLUMN msg_queue_size;
