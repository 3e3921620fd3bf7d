-- A queue may have several recipients: the keys become a list, its number of items before it and its length before each.
ALTER TABLE msg_queues RENAME COLUMN recipient_key TO recipient_keys;
ALTER TABLE msg_queues
    ADD COLUMN queue_mode TEXT,
    ADD COLUMN link_id BYTEA,
    ADD COLUMN fixed_data BYTEA,
    ADD COLUMN user_data BYTEA;
UPDATE msg_queues SET
    recipient_keys = set_byte('\x0100', 1, octet_length(recipient_keys)) || recipient_keys,
    queue_mode = CASE WHEN snd_secure THEN 'M' END;
ALTER TABLE msg_queues DROP COLUMN snd_secure;
CREATE UNIQUE INDEX idx_msg_queues_link_id ON msg_queues (link_id);
