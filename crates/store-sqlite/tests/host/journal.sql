-- The journal of an agent host: five tables, two indexes, seven triggers.
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
CREATE TRIGGER conversation_message_delete BEFORE DELETE ON task_session_messages BEGIN
    INSERT INTO conversation_message_versions SELECT OLD.task_session_id, OLD.id, 1 + count(*), OLD.task_id, OLD.author_type, OLD.created_at, 1, ''
        FROM conversation_message_versions WHERE session_id = OLD.task_session_id; END;
CREATE TRIGGER conversation_turn_insert AFTER INSERT ON task_session_turns BEGIN
    INSERT INTO conversation_turn_versions SELECT NEW.task_session_id, NEW.id, 1 + count(*), NEW.task_id, NEW.started_at, 0, ''
        FROM conversation_turn_versions WHERE session_id = NEW.task_session_id; END;
CREATE TRIGGER conversation_turn_complete AFTER UPDATE OF completed_at ON task_session_turns
    WHEN OLD.completed_at IS NULL AND NEW.completed_at IS NOT NULL BEGIN
    INSERT INTO conversation_turn_versions SELECT NEW.task_session_id, NEW.id, 1 + count(*), NEW.task_id, NEW.started_at, 0, ''
        FROM conversation_turn_versions WHERE session_id = NEW.task_session_id; END;
CREATE TRIGGER conversation_turn_delete AFTER DELETE ON task_session_turns BEGIN
    INSERT INTO conversation_turn_versions SELECT OLD.task_session_id, OLD.id, 1 + count(*), OLD.task_id, OLD.started_at, 1, ''
        FROM conversation_turn_versions WHERE session_id = OLD.task_session_id; END;
CREATE TRIGGER conversation_session_delete AFTER DELETE ON task_sessions BEGIN
    UPDATE conversation_session_streams SET terminal = TRUE WHERE session_id = OLD.id; END;

INSERT INTO conversation_journal_meta VALUES ('schema.version', '3'), ('backfill.complete', '1');
INSERT INTO conversation_session_streams VALUES ('s', 7, FALSE, '2026-01-01 00:00:00');
INSERT INTO conversation_session_events VALUES ('s', 1, 's:1', 1, 'message.added', 'task', '{"copy":true}', '2026-01-01 00:00:00');
INSERT INTO conversation_message_versions VALUES ('s', 'm1', 1, 'task', 'user', '2026-01-01 00:00:00', FALSE, '{"copy":true}');
INSERT INTO conversation_turn_versions VALUES ('s', 't', 1, 'task', '2026-01-01 00:00:00', FALSE, '{"copy":true}');
