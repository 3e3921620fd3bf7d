-- Services know how many queues they have, and the MD5 hashes of the IDs of these, combined by exclusive or.

CREATE FUNCTION xor_combine(state BYTEA, value BYTEA) RETURNS BYTEA
LANGUAGE plpgsql IMMUTABLE STRICT AS $body$
DECLARE
    combined BYTEA := value;
BEGIN
    IF octet_length(state) <> octet_length(value) THEN
        RAISE EXCEPTION 'values of % and % bytes cannot be combined', octet_length(state), octet_length(value);
    END IF;
    FOR i IN 0 .. octet_length(value) - 1 LOOP
        combined := set_byte(combined, i, get_byte(state, i) # get_byte(value, i));
    END LOOP;
    RETURN combined;
END
$body$;

CREATE AGGREGATE xor_aggregate(BYTEA) (
    SFUNC = xor_combine,
    STYPE = BYTEA,
    INITCOND = '\x00000000000000000000000000000000'
);

ALTER TABLE services
    ADD COLUMN queue_count BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN queue_ids_hash BYTEA NOT NULL DEFAULT '\x00000000000000000000000000000000';

-- Counts anew. Services that have no queue stay as they are.
CREATE FUNCTION update_all_aggregates() RETURNS VOID LANGUAGE plpgsql AS $body$
BEGIN
    UPDATE services AS service SET queue_count = counted.queues, queue_ids_hash = counted.ids_hash
      FROM (
        SELECT of_service.service_id, of_service.service_role, count(*) AS queues,
            xor_aggregate(public.digest(of_service.entity_id, 'md5')) AS ids_hash
          FROM (
            SELECT queue.rcv_service_id AS service_id, 'M' AS service_role, queue.recipient_id AS entity_id
              FROM msg_queues AS queue WHERE queue.deleted_at IS NULL
            UNION ALL
            SELECT queue.ntf_service_id, 'N', COALESCE(queue.notifier_id, '\x00000000000000000000000000000000')
              FROM msg_queues AS queue WHERE queue.deleted_at IS NULL
          ) AS of_service
          WHERE of_service.service_id IS NOT NULL
          GROUP BY of_service.service_id, of_service.service_role
      ) AS counted
      WHERE service.service_id = counted.service_id AND service.service_role = counted.service_role;
END
$body$;

SELECT update_all_aggregates();

-- Adds a queue to a service (p_change 1) or takes it away (-1): the hash changes in the same way.
CREATE FUNCTION update_aggregates(p_service_id BYTEA, p_role TEXT, p_queue_id BYTEA, p_change BIGINT) RETURNS VOID
LANGUAGE plpgsql AS $body$
BEGIN
    UPDATE services AS service SET
        queue_count = service.queue_count + p_change,
        queue_ids_hash = xor_combine(service.queue_ids_hash, public.digest(p_queue_id, 'md5'))
      WHERE service.service_id = p_service_id AND service.service_role = p_role;
END
$body$;

CREATE FUNCTION on_queue_insert() RETURNS TRIGGER LANGUAGE plpgsql AS $body$
BEGIN
    IF NEW.rcv_service_id IS NOT NULL THEN
        PERFORM update_aggregates(NEW.rcv_service_id, 'M', NEW.recipient_id, 1);
    END IF;
    IF NEW.ntf_service_id IS NOT NULL AND NEW.notifier_id IS NOT NULL THEN
        PERFORM update_aggregates(NEW.ntf_service_id, 'N', NEW.notifier_id, 1);
    END IF;
    RETURN NULL;
END
$body$;

CREATE FUNCTION on_queue_delete() RETURNS TRIGGER LANGUAGE plpgsql AS $body$
BEGIN
    -- A queue that was marked as deleted before is counted no longer.
    IF OLD.deleted_at IS NOT NULL THEN
        RETURN NULL;
    END IF;
    IF OLD.rcv_service_id IS NOT NULL THEN
        PERFORM update_aggregates(OLD.rcv_service_id, 'M', OLD.recipient_id, -1);
    END IF;
    IF OLD.ntf_service_id IS NOT NULL AND OLD.notifier_id IS NOT NULL THEN
        PERFORM update_aggregates(OLD.ntf_service_id, 'N', OLD.notifier_id, -1);
    END IF;
    RETURN NULL;
END
$body$;

CREATE FUNCTION on_queue_update() RETURNS TRIGGER LANGUAGE plpgsql AS $body$
DECLARE
    rcv_before BOOLEAN := OLD.deleted_at IS NULL AND OLD.rcv_service_id IS NOT NULL;
    rcv_after BOOLEAN := NEW.deleted_at IS NULL AND NEW.rcv_service_id IS NOT NULL;
    ntf_before BOOLEAN := OLD.deleted_at IS NULL AND OLD.ntf_service_id IS NOT NULL AND OLD.notifier_id IS NOT NULL;
    ntf_after BOOLEAN := NEW.deleted_at IS NULL AND NEW.ntf_service_id IS NOT NULL AND NEW.notifier_id IS NOT NULL;
BEGIN
    IF NOT (rcv_before AND rcv_after AND OLD.rcv_service_id = NEW.rcv_service_id) THEN
        IF rcv_before THEN
            PERFORM update_aggregates(OLD.rcv_service_id, 'M', OLD.recipient_id, -1);
        END IF;
        IF rcv_after THEN
            PERFORM update_aggregates(NEW.rcv_service_id, 'M', NEW.recipient_id, 1);
        END IF;
    END IF;
    IF NOT (
        ntf_before AND ntf_after
        AND OLD.ntf_service_id = NEW.ntf_service_id AND OLD.notifier_id = NEW.notifier_id
    ) THEN
        IF ntf_before THEN
            PERFORM update_aggregates(OLD.ntf_service_id, 'N', OLD.notifier_id, -1);
        END IF;
        IF ntf_after THEN
            PERFORM update_aggregates(NEW.ntf_service_id, 'N', NEW.notifier_id, 1);
        END IF;
    END IF;
    RETURN NULL;
END
$body$;

CREATE TRIGGER tr_queue_insert AFTER INSERT ON msg_queues FOR EACH ROW EXECUTE FUNCTION on_queue_insert();
CREATE TRIGGER tr_queue_update AFTER UPDATE ON msg_queues FOR EACH ROW EXECUTE FUNCTION on_queue_update();
CREATE TRIGGER tr_queue_delete AFTER DELETE ON msg_queues FOR EACH ROW EXECUTE FUNCTION on_queue_delete();
