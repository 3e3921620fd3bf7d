CREATE TABLE messages (
    message_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    recipient_id BYTEA NOT NULL REFERENCES msg_queues ON UPDATE RESTRICT ON DELETE CASCADE,
    msg_id BYTEA NOT NULL,
    msg_ts BIGINT NOT NULL,
    msg_quota BOOLEAN NOT NULL,
    msg_ntf_flag BOOLEAN NOT NULL,
    msg_body BYTEA NOT NULL
);
CREATE INDEX idx_messages_recipient_id_message_id ON messages (recipient_id, message_id);
CREATE INDEX idx_messages_recipient_id_msg_ts ON messages (recipient_id, msg_ts);
CREATE INDEX idx_messages_recipient_id_msg_quota ON messages (recipient_id, msg_quota);

ALTER TABLE msg_queues
    ADD COLUMN msg_can_write BOOLEAN NOT NULL DEFAULT TRUE,
    ADD COLUMN msg_queue_expire BOOLEAN NOT NULL DEFAULT FALSE,
    ADD COLUMN msg_queue_size BIGINT NOT NULL DEFAULT 0;
CREATE INDEX idx_msg_queues_updated_at_recipient_id
    ON msg_queues (deleted_at, updated_at, msg_queue_expire, recipient_id);
DROP INDEX idx_msg_queues_updated_at;

-- Adds a message. A queue that has reached its quota takes a marker in the place of the message, and then nothing until it
-- was emptied. No row: there is no such queue, or it takes nothing.
CREATE FUNCTION write_message(
    p_recipient_id BYTEA,
    p_msg_id BYTEA,
    p_msg_ts BIGINT,
    p_msg_quota BOOLEAN,
    p_msg_ntf_flag BOOLEAN,
    p_msg_body BYTEA,
    p_quota INTEGER
) RETURNS TABLE (quota_written BOOLEAN, was_empty BOOLEAN) LANGUAGE plpgsql AS $body$
DECLARE
    stored BIGINT;
BEGIN
    SELECT queue.msg_queue_size INTO stored FROM msg_queues AS queue
      WHERE queue.recipient_id = p_recipient_id AND queue.deleted_at IS NULL
        AND (queue.msg_can_write OR queue.msg_queue_size = 0)
      FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    was_empty := stored = 0;
    quota_written := p_msg_quota OR stored >= p_quota;
    IF quota_written THEN
        INSERT INTO messages (recipient_id, msg_id, msg_ts, msg_quota, msg_ntf_flag, msg_body)
          VALUES (p_recipient_id, p_msg_id, p_msg_ts, TRUE, FALSE, '');
    ELSE
        INSERT INTO messages (recipient_id, msg_id, msg_ts, msg_quota, msg_ntf_flag, msg_body)
          VALUES (p_recipient_id, p_msg_id, p_msg_ts, FALSE, p_msg_ntf_flag, p_msg_body);
    END IF;
    UPDATE msg_queues AS queue SET
        msg_queue_size = stored + 1,
        msg_queue_expire = TRUE,
        msg_can_write = NOT quota_written
      WHERE queue.recipient_id = p_recipient_id;
    RETURN NEXT;
END
$body$;

-- Deletes the queue's first message if it has this ID, and answers it.
CREATE FUNCTION try_del_msg(p_recipient_id BYTEA, p_msg_id BYTEA)
RETURNS TABLE (r_msg_id BYTEA, r_msg_ts BIGINT, r_msg_quota BOOLEAN, r_msg_ntf_flag BOOLEAN, r_msg_body BYTEA)
LANGUAGE plpgsql AS $body$
DECLARE
    head messages;
BEGIN
    PERFORM FROM msg_queues AS queue
      WHERE queue.recipient_id = p_recipient_id AND queue.deleted_at IS NULL
      FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT * INTO head FROM messages AS message
      WHERE message.recipient_id = p_recipient_id ORDER BY message.message_id LIMIT 1;
    IF NOT FOUND THEN
        -- The count is wrong: mend it.
        UPDATE msg_queues AS queue SET msg_queue_size = 0, msg_queue_expire = FALSE, msg_can_write = TRUE
          WHERE queue.recipient_id = p_recipient_id AND queue.msg_queue_size <> 0;
        RETURN;
    END IF;
    DELETE FROM messages AS message WHERE message.message_id = head.message_id AND message.msg_id = p_msg_id;
    IF FOUND THEN
        UPDATE msg_queues AS queue SET
            msg_queue_size = GREATEST(queue.msg_queue_size - 1, 0),
            msg_queue_expire = queue.msg_queue_size > 1,
            msg_can_write = queue.msg_can_write OR queue.msg_queue_size <= 1
          WHERE queue.recipient_id = p_recipient_id;
        RETURN QUERY SELECT head.msg_id, head.msg_ts, head.msg_quota, head.msg_ntf_flag, head.msg_body;
    END IF;
END
$body$;

-- Deletes the queue's first message if it has this ID. Answers the deleted message, and then the one that is first now.
CREATE FUNCTION try_del_peek_msg(p_recipient_id BYTEA, p_msg_id BYTEA)
RETURNS TABLE (r_msg_id BYTEA, r_msg_ts BIGINT, r_msg_quota BOOLEAN, r_msg_ntf_flag BOOLEAN, r_msg_body BYTEA)
LANGUAGE plpgsql AS $body$
DECLARE
    head messages;
    deleted BOOLEAN := FALSE;
    drained BOOLEAN;
BEGIN
    PERFORM FROM msg_queues AS queue
      WHERE queue.recipient_id = p_recipient_id AND queue.deleted_at IS NULL
      FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT * INTO head FROM messages AS message
      WHERE message.recipient_id = p_recipient_id ORDER BY message.message_id LIMIT 1;
    drained := NOT FOUND;
    IF head.msg_id = p_msg_id THEN
        DELETE FROM messages AS message WHERE message.message_id = head.message_id;
        deleted := FOUND;
        IF deleted THEN
            RETURN QUERY SELECT head.msg_id, head.msg_ts, head.msg_quota, head.msg_ntf_flag, head.msg_body;
        END IF;
        SELECT * INTO head FROM messages AS message
          WHERE message.recipient_id = p_recipient_id ORDER BY message.message_id LIMIT 1;
        drained := NOT FOUND;
    END IF;
    IF drained THEN
        -- Whatever the count was, it is 0 now.
        UPDATE msg_queues AS queue SET msg_queue_size = 0, msg_queue_expire = FALSE, msg_can_write = TRUE
          WHERE queue.recipient_id = p_recipient_id AND (deleted OR queue.msg_queue_size <> 0);
        RETURN;
    END IF;
    IF deleted THEN
        UPDATE msg_queues AS queue SET
            msg_queue_size = GREATEST(queue.msg_queue_size - 1, 0),
            msg_queue_expire = queue.msg_queue_size > 1,
            msg_can_write = queue.msg_can_write OR queue.msg_queue_size <= 1
          WHERE queue.recipient_id = p_recipient_id;
    END IF;
    RETURN QUERY SELECT head.msg_id, head.msg_ts, head.msg_quota, head.msg_ntf_flag, head.msg_body;
END
$body$;

-- Deletes the messages before the first one that is not older than p_old_ts, without the markers of a reached quota; answers
-- how many. A queue that somebody else is at is left for the next time.
CREATE FUNCTION delete_expired_msgs(p_recipient_id BYTEA, p_old_ts BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $body$
DECLARE
    kept BIGINT;
    deleted BIGINT;
BEGIN
    PERFORM FROM msg_queues AS queue
      WHERE queue.recipient_id = p_recipient_id AND queue.deleted_at IS NULL AND queue.msg_queue_size <> 0
      FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    kept := (
        SELECT min(message.message_id) FROM messages AS message
          WHERE message.recipient_id = p_recipient_id AND message.msg_ts >= p_old_ts AND NOT message.msg_quota
    );
    DELETE FROM messages AS message
      WHERE message.recipient_id = p_recipient_id AND NOT message.msg_quota
        AND (kept IS NULL OR message.message_id < kept);
    GET DIAGNOSTICS deleted = ROW_COUNT;
    IF deleted <> 0 THEN
        UPDATE msg_queues AS queue SET
            msg_queue_size = GREATEST(queue.msg_queue_size - deleted, 0),
            msg_queue_expire = kept IS NOT NULL AND queue.msg_queue_size > deleted,
            msg_can_write = queue.msg_can_write OR queue.msg_queue_size <= deleted
          WHERE queue.recipient_id = p_recipient_id;
    END IF;
    RETURN deleted;
END
$body$;

-- Deletes expired messages of all queues that were used after p_old_queue, each queue in a transaction of its own, and
-- counts what is left.
CREATE PROCEDURE expire_old_messages(
    p_old_queue BIGINT,
    p_old_ts BIGINT,
    batch_size INTEGER,
    OUT r_expired_msgs_count BIGINT,
    OUT r_stored_msgs_count BIGINT,
    OUT r_stored_queues BIGINT
) LANGUAGE plpgsql AS $body$
DECLARE
    batch BYTEA[];
    queue_id BYTEA := '';
    expired BIGINT := 0;
BEGIN
    LOOP
        batch := ARRAY(
            SELECT queue.recipient_id FROM msg_queues AS queue
              WHERE queue.deleted_at IS NULL AND queue.updated_at > p_old_queue AND queue.msg_queue_expire
                AND queue.recipient_id > queue_id
              ORDER BY queue.recipient_id LIMIT batch_size
        );
        EXIT WHEN cardinality(batch) = 0;
        FOREACH queue_id IN ARRAY batch LOOP
            BEGIN
                expired := expired + delete_expired_msgs(queue_id, p_old_ts);
            EXCEPTION WHEN OTHERS THEN
                RAISE WARNING 'messages of a queue could not be expired: %', SQLERRM;
                CONTINUE;
            END;
            COMMIT;
        END LOOP;
    END LOOP;
    r_expired_msgs_count := expired;
    SELECT count(*) INTO r_stored_msgs_count FROM messages;
    SELECT count(*) INTO r_stored_queues FROM msg_queues AS queue WHERE queue.deleted_at IS NULL;
END
$body$;
