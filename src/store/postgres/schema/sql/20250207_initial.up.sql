CREATE TABLE msg_queues (
    recipient_id BYTEA PRIMARY KEY,
    recipient_key BYTEA NOT NULL,
    rcv_dh_secret BYTEA NOT NULL,
    sender_id BYTEA NOT NULL,
    sender_key BYTEA,
    snd_secure BOOLEAN NOT NULL,
    notifier_id BYTEA,
    notifier_key BYTEA,
    rcv_ntf_dh_secret BYTEA,
    status TEXT NOT NULL,
    updated_at BIGINT,
    deleted_at BIGINT
);
CREATE UNIQUE INDEX idx_msg_queues_sender_id ON msg_queues (sender_id);
CREATE UNIQUE INDEX idx_msg_queues_notifier_id ON msg_queues (notifier_id);
CREATE INDEX idx_msg_queues_deleted_at ON msg_queues (deleted_at);
