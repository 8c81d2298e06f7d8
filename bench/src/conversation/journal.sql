-- The journal of an agent host: its tables, their indexes, and two of its triggers.
CREATE TABLE conversation_session_streams (session_id TEXT PRIMARY KEY, watermark BIGINT NOT NULL DEFAULT 0,
    terminal BOOLEAN NOT NULL DEFAULT FALSE, updated_at TIMESTAMP NOT NULL);
CREATE TABLE conversation_session_events (session_id TEXT NOT NULL, sequence BIGINT NOT NULL, event_id TEXT NOT NULL UNIQUE,
    protocol_version INTEGER NOT NULL DEFAULT 1, event_type TEXT NOT NULL, task_id TEXT, payload TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL, PRIMARY KEY (session_id, sequence));
CREATE INDEX idx_conversation_events_created ON conversation_session_events(created_at);
CREATE TABLE conversation_message_versions (session_id TEXT NOT NULL, message_id TEXT NOT NULL, row_sequence BIGINT NOT NULL,
    task_id TEXT, author_type TEXT, created_at TIMESTAMP, tombstone BOOLEAN NOT NULL DEFAULT FALSE, payload TEXT NOT NULL,
    PRIMARY KEY (session_id, message_id, row_sequence));
CREATE INDEX idx_conversation_message_snapshot ON conversation_message_versions(session_id, row_sequence, created_at, message_id);
CREATE TABLE conversation_turn_versions (session_id TEXT NOT NULL, turn_id TEXT NOT NULL, row_sequence BIGINT NOT NULL, task_id TEXT,
    started_at TIMESTAMP, tombstone BOOLEAN NOT NULL DEFAULT FALSE, payload TEXT NOT NULL,
    PRIMARY KEY (session_id, turn_id, row_sequence));
CREATE INDEX idx_conversation_turn_snapshot ON conversation_turn_versions(session_id, row_sequence, started_at, turn_id);
CREATE TABLE conversation_journal_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TRIGGER conversation_message_insert AFTER INSERT ON task_session_messages BEGIN
    INSERT INTO conversation_message_versions SELECT NEW.task_session_id, NEW.id, 1 + count(*), NEW.task_id, NEW.author_type, NEW.created_at, 0, NEW.content
        FROM conversation_message_versions WHERE session_id = NEW.task_session_id; END;
CREATE TRIGGER conversation_message_update AFTER UPDATE ON task_session_messages BEGIN
    INSERT INTO conversation_message_versions SELECT NEW.task_session_id, NEW.id, 1 + count(*), NEW.task_id, NEW.author_type, NEW.created_at, 0, NEW.content
        FROM conversation_message_versions WHERE session_id = NEW.task_session_id; END;
