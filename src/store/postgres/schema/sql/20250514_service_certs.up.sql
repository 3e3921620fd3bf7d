CREATE TABLE services (
    service_id BYTEA PRIMARY KEY,
    service_role TEXT NOT NULL,
    service_cert BYTEA NOT NULL,
    service_cert_hash BYTEA NOT NULL UNIQUE,
    created_at BIGINT NOT NULL
);
CREATE INDEX idx_services_service_role ON services (service_role);
ALTER TABLE msg_queues
    ADD COLUMN rcv_service_id BYTEA REFERENCES services ON UPDATE RESTRICT ON DELETE SET NULL,
    ADD COLUMN ntf_service_id BYTEA REFERENCES services ON UPDATE RESTRICT ON DELETE SET NULL;
CREATE INDEX idx_msg_queues_rcv_service_id ON msg_queues (rcv_service_id, deleted_at);
CREATE INDEX idx_msg_queues_ntf_service_id ON msg_queues (ntf_service_id, deleted_at);
