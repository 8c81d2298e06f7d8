-- The journal of an agent host: five tables, three indexes, three triggers, their functions, and three helpers.
CREATE TABLE conversation_session_streams (session_id TEXT PRIMARY KEY, watermark BIGINT NOT NULL DEFAULT 0,
    terminal BOOLEAN NOT NULL DEFAULT FALSE, updated_at TIMESTAMP NOT NULL);
CREATE TABLE conversation_session_events (session_id TEXT NOT NULL, sequence BIGINT NOT NULL, event_id TEXT NOT NULL UNIQUE,
    protocol_version INTEGER NOT NULL DEFAULT 1, event_type TEXT NOT NULL, task_id TEXT, payload TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL, PRIMARY KEY (session_id, sequence));
CREATE INDEX idx_conversation_events_created ON conversation_session_events (created_at);
CREATE TABLE conversation_message_versions (session_id TEXT NOT NULL, message_id TEXT NOT NULL, row_sequence BIGINT NOT NULL,
    task_id TEXT, author_type TEXT, created_at TIMESTAMP, tombstone BOOLEAN NOT NULL DEFAULT FALSE, payload TEXT NOT NULL,
    PRIMARY KEY (session_id, message_id, row_sequence));
CREATE INDEX idx_conversation_message_snapshot ON conversation_message_versions (session_id, row_sequence, created_at, message_id);
CREATE TABLE conversation_turn_versions (session_id TEXT NOT NULL, turn_id TEXT NOT NULL, row_sequence BIGINT NOT NULL, task_id TEXT,
    started_at TIMESTAMP, tombstone BOOLEAN NOT NULL DEFAULT FALSE, payload TEXT NOT NULL,
    PRIMARY KEY (session_id, turn_id, row_sequence));
CREATE INDEX idx_conversation_turn_snapshot ON conversation_turn_versions (session_id, row_sequence, started_at, turn_id);
CREATE TABLE conversation_journal_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE FUNCTION conversation_next_sequence(session TEXT, ends BOOLEAN DEFAULT FALSE) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE reached BIGINT;
BEGIN
    INSERT INTO conversation_session_streams AS stream VALUES (session, 1, ends, now())
        ON CONFLICT (session_id) DO UPDATE SET watermark = stream.watermark + 1, terminal = ends RETURNING watermark INTO reached;
    RETURN reached;
END $$;
CREATE FUNCTION conversation_safe_jsonb(stored TEXT) RETURNS JSONB LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN RETURN stored::jsonb; EXCEPTION WHEN others THEN RETURN '{}'::jsonb; END $$;
CREATE FUNCTION conversation_visible_content(content TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE AS
    $$ SELECT regexp_replace(content, '<kandev-system>.*?</kandev-system>\s*', '', 'g') $$;
CREATE FUNCTION conversation_message_journal() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN NEW := OLD; END IF;
    INSERT INTO conversation_message_versions VALUES (NEW.task_session_id, NEW.id, conversation_next_sequence(NEW.task_session_id), NEW.task_id,
        NEW.author_type, NEW.created_at, TG_OP = 'DELETE',
        conversation_visible_content(NEW.content) || (conversation_safe_jsonb(NEW.metadata)->>'tool_call_id'));
    RETURN NULL;
END $$;
CREATE FUNCTION conversation_turn_journal() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN NEW := OLD; END IF;
    INSERT INTO conversation_turn_versions VALUES (NEW.task_session_id, NEW.id, conversation_next_sequence(NEW.task_session_id), NEW.task_id,
        NEW.started_at, TG_OP = 'DELETE', '');
    RETURN NULL;
END $$;
CREATE FUNCTION conversation_session_delete_journal() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN PERFORM conversation_next_sequence(OLD.id, TRUE); RETURN NULL; END $$;
CREATE TRIGGER conversation_message_journal_trigger AFTER INSERT OR UPDATE OR DELETE ON task_session_messages
    FOR EACH ROW EXECUTE FUNCTION conversation_message_journal();
CREATE TRIGGER conversation_turn_journal_trigger AFTER INSERT OR UPDATE OR DELETE ON task_session_turns
    FOR EACH ROW EXECUTE FUNCTION conversation_turn_journal();
CREATE TRIGGER conversation_session_delete_trigger AFTER DELETE ON task_sessions
    FOR EACH ROW EXECUTE FUNCTION conversation_session_delete_journal();

INSERT INTO conversation_journal_meta VALUES ('schema.version', '3'), ('backfill.complete', '1');
INSERT INTO conversation_session_streams VALUES ('s', 7, FALSE, '2026-01-01');
INSERT INTO conversation_session_events VALUES ('s', 1, 's:1', 1, 'message.added', 'task', '{"copy":true}', '2026-01-01');
INSERT INTO conversation_message_versions VALUES ('s', 'm1', 1, 'task', 'user', '2026-01-01', FALSE, '{"copy":true}');
INSERT INTO conversation_turn_versions VALUES ('s', 't', 1, 'task', '2026-01-01', FALSE, '{"copy":true}');
