-- What a host's database lacks, and what it has too much (C29). By name, without CASCADE: where something else hangs on one of these,
-- the whole upgrade fails and nothing has changed.
ALTER TABLE task_session_messages ADD COLUMN IF NOT EXISTS prompt_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task_session_messages ADD COLUMN IF NOT EXISTS updated_at TIMESTAMP;
ALTER TABLE task_session_turns ADD COLUMN IF NOT EXISTS execution_profile_id TEXT NOT NULL DEFAULT '';
ALTER TABLE task_session_turns ADD COLUMN IF NOT EXISTS route_generation BIGINT NOT NULL DEFAULT 0;
ALTER TABLE task_sessions ADD COLUMN IF NOT EXISTS name TEXT NOT NULL DEFAULT '';

DROP TRIGGER IF EXISTS conversation_message_journal_trigger ON task_session_messages;
DROP TRIGGER IF EXISTS conversation_turn_journal_trigger ON task_session_turns;
DROP TRIGGER IF EXISTS conversation_session_delete_trigger ON task_sessions;
DROP FUNCTION IF EXISTS conversation_message_journal();
DROP FUNCTION IF EXISTS conversation_turn_journal();
DROP FUNCTION IF EXISTS conversation_session_delete_journal();
DROP FUNCTION IF EXISTS conversation_next_sequence(TEXT, BOOLEAN);
DROP FUNCTION IF EXISTS conversation_safe_jsonb(TEXT);
DROP FUNCTION IF EXISTS conversation_visible_content(TEXT);
DROP TABLE IF EXISTS conversation_session_events;
DROP TABLE IF EXISTS conversation_message_versions;
DROP TABLE IF EXISTS conversation_turn_versions;
DROP TABLE IF EXISTS conversation_session_streams;
DROP TABLE IF EXISTS conversation_journal_meta;

-- The host's own revision triggers, row by row: with them each change would count twice.
DROP TRIGGER IF EXISTS conversation_source_message_revision_trigger ON task_session_messages;
DROP TRIGGER IF EXISTS conversation_source_turn_revision_trigger ON task_session_turns;
DROP FUNCTION IF EXISTS conversation_source_message_revision();
DROP FUNCTION IF EXISTS conversation_source_turn_revision();
DROP FUNCTION IF EXISTS conversation_source_bump_revision(TEXT);

CREATE INDEX IF NOT EXISTS headwater_messages_order ON task_session_messages (task_session_id, created_at NULLS FIRST, id COLLATE "C");
CREATE INDEX IF NOT EXISTS headwater_prompts_order ON task_session_messages (task_session_id, created_at NULLS FIRST, id COLLATE "C")
    WHERE author_type = 'user';
CREATE INDEX IF NOT EXISTS headwater_turns_order ON task_session_turns (task_session_id, started_at NULLS FIRST, id COLLATE "C");
CREATE INDEX IF NOT EXISTS headwater_messages_turn ON task_session_messages (turn_id);
CREATE INDEX IF NOT EXISTS headwater_sessions_task ON task_sessions (task_id);
CREATE INDEX IF NOT EXISTS headwater_sessions_id ON task_sessions (id COLLATE "C");
