-- Each change of a message or turn that matters raises the revision of its session by one (C2). The names are those of the host whose
-- files this store opens, so that both never count the same change: the host creates a trigger only where none has the name.
-- A session that is being deleted has no row any more when the triggers of its cascade run, and so gets no revision back.
CREATE TRIGGER conversation_source_message_insert AFTER INSERT ON task_session_messages
BEGIN
    INSERT INTO conversation_session_revisions (session_id, revision)
        SELECT id, 1 FROM task_sessions WHERE id = NEW.task_session_id
        ON CONFLICT (session_id) DO UPDATE SET revision = revision + 1;
END;

CREATE TRIGGER conversation_source_message_update AFTER UPDATE ON task_session_messages
WHEN OLD.id IS NOT NEW.id
    OR OLD.task_session_id IS NOT NEW.task_session_id
    OR OLD.task_id IS NOT NEW.task_id
    OR OLD.turn_id IS NOT NEW.turn_id
    OR OLD.author_type IS NOT NEW.author_type
    OR OLD.author_id IS NOT NEW.author_id
    OR OLD.requests_input IS NOT NEW.requests_input
    OR OLD.type IS NOT NEW.type
    OR OLD.prompt_seq IS NOT NEW.prompt_seq
    OR OLD.created_at IS NOT NEW.created_at
    OR OLD.updated_at IS NOT NEW.updated_at
    OR OLD.metadata IS NOT NEW.metadata
    OR OLD.content IS NOT NEW.content
BEGIN
    INSERT INTO conversation_session_revisions (session_id, revision)
        SELECT id, 1 FROM task_sessions WHERE id = NEW.task_session_id
        ON CONFLICT (session_id) DO UPDATE SET revision = revision + 1;
    INSERT INTO conversation_session_revisions (session_id, revision)
        SELECT id, 1 FROM task_sessions WHERE id = OLD.task_session_id AND OLD.task_session_id IS NOT NEW.task_session_id
        ON CONFLICT (session_id) DO UPDATE SET revision = revision + 1;
END;

CREATE TRIGGER conversation_source_message_delete AFTER DELETE ON task_session_messages
BEGIN
    INSERT INTO conversation_session_revisions (session_id, revision)
        SELECT id, 1 FROM task_sessions WHERE id = OLD.task_session_id
        ON CONFLICT (session_id) DO UPDATE SET revision = revision + 1;
END;

CREATE TRIGGER conversation_source_turn_insert AFTER INSERT ON task_session_turns
BEGIN
    INSERT INTO conversation_session_revisions (session_id, revision)
        SELECT id, 1 FROM task_sessions WHERE id = NEW.task_session_id
        ON CONFLICT (session_id) DO UPDATE SET revision = revision + 1;
END;

CREATE TRIGGER conversation_source_turn_update AFTER UPDATE ON task_session_turns
WHEN OLD.id IS NOT NEW.id
    OR OLD.task_session_id IS NOT NEW.task_session_id
    OR OLD.task_id IS NOT NEW.task_id
    OR OLD.execution_profile_id IS NOT NEW.execution_profile_id
    OR OLD.route_generation IS NOT NEW.route_generation
    OR OLD.started_at IS NOT NEW.started_at
    OR OLD.completed_at IS NOT NEW.completed_at
    OR OLD.metadata IS NOT NEW.metadata
    OR OLD.created_at IS NOT NEW.created_at
    OR OLD.updated_at IS NOT NEW.updated_at
BEGIN
    INSERT INTO conversation_session_revisions (session_id, revision)
        SELECT id, 1 FROM task_sessions WHERE id = NEW.task_session_id
        ON CONFLICT (session_id) DO UPDATE SET revision = revision + 1;
    INSERT INTO conversation_session_revisions (session_id, revision)
        SELECT id, 1 FROM task_sessions WHERE id = OLD.task_session_id AND OLD.task_session_id IS NOT NEW.task_session_id
        ON CONFLICT (session_id) DO UPDATE SET revision = revision + 1;
END;

CREATE TRIGGER conversation_source_turn_delete AFTER DELETE ON task_session_turns
BEGIN
    INSERT INTO conversation_session_revisions (session_id, revision)
        SELECT id, 1 FROM task_sessions WHERE id = OLD.task_session_id
        ON CONFLICT (session_id) DO UPDATE SET revision = revision + 1;
END;
