-- There is room for one key only: a queue with more cannot go back.
DO $body$
BEGIN
    PERFORM FROM msg_queues
      WHERE get_byte(recipient_keys, 0) <> 1 OR get_byte(recipient_keys, 1) <> octet_length(recipient_keys) - 2;
    IF FOUND THEN
        RAISE EXCEPTION 'a queue has more than one recipient key, which the older version cannot keep';
    END IF;
END
$body$;
DROP INDEX idx_msg_queues_link_id;
ALTER TABLE msg_queues ADD COLUMN snd_secure BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE msg_queues SET
    recipient_keys = substring(recipient_keys FROM 3),
    snd_secure = queue_mode IS NOT DISTINCT FROM 'M';
ALTER TABLE msg_queues
    ALTER COLUMN snd_secure DROP DEFAULT,
    DROP COLUMN queue_mode,
    DROP COLUMN link_id,
    DROP COLUMN fixed_data,
    DROP COLUMN user_data;
ALTER TABLE msg_queues RENAME COLUMN recipient_keys TO recipient_key;
