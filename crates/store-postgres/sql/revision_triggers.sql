-- Each statement that changes messages or turns raises the revision of every session it touches by one (C2, C32). Statement by statement,
-- with transition tables: row by row, one UPDATE of many rows would write a new version of the same counter for each of them. Sessions are raised in
-- the order of their ids' bytes, so that two statements never wait for each other. A session that is being deleted has no row any more
-- when the triggers of its cascade run, and so gets no revision back.
CREATE OR REPLACE FUNCTION headwater_raise_revisions(sessions TEXT[]) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO conversation_session_revisions AS stored (session_id, revision)
        SELECT id, 1 FROM task_sessions WHERE id = ANY (sessions) ORDER BY id COLLATE "C"
        ON CONFLICT (session_id) DO UPDATE SET revision = stored.revision + 1;
END $$;

CREATE OR REPLACE FUNCTION headwater_rows_inserted() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM headwater_raise_revisions((SELECT array_agg(DISTINCT task_session_id) FROM new_rows));
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION headwater_rows_deleted() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM headwater_raise_revisions((SELECT array_agg(DISTINCT task_session_id) FROM old_rows));
    RETURN NULL;
END $$;

-- A row that keeps its id and every column that matters raises nothing. One whose id changes is on one side of the join alone.
CREATE OR REPLACE FUNCTION headwater_messages_updated() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM headwater_raise_revisions((
        SELECT array_agg(DISTINCT touched.session) FROM old_rows o FULL JOIN new_rows n ON n.id = o.id
            CROSS JOIN LATERAL (VALUES (o.task_session_id), (n.task_session_id)) AS touched (session)
        WHERE (o.id, o.task_session_id, o.task_id, o.turn_id, o.author_type, o.author_id, o.requests_input, o.type, o.prompt_seq,
               o.created_at, o.updated_at, o.metadata, o.content)
            IS DISTINCT FROM
              (n.id, n.task_session_id, n.task_id, n.turn_id, n.author_type, n.author_id, n.requests_input, n.type, n.prompt_seq,
               n.created_at, n.updated_at, n.metadata, n.content)));
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION headwater_turns_updated() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM headwater_raise_revisions((
        SELECT array_agg(DISTINCT touched.session) FROM old_rows o FULL JOIN new_rows n ON n.id = o.id
            CROSS JOIN LATERAL (VALUES (o.task_session_id), (n.task_session_id)) AS touched (session)
        WHERE (o.id, o.task_session_id, o.task_id, o.execution_profile_id, o.route_generation, o.started_at, o.completed_at,
               o.metadata, o.created_at, o.updated_at)
            IS DISTINCT FROM
              (n.id, n.task_session_id, n.task_id, n.execution_profile_id, n.route_generation, n.started_at, n.completed_at,
               n.metadata, n.created_at, n.updated_at)));
    RETURN NULL;
END $$;

-- TRUNCATE names no rows (C35): every session may have lost some.
CREATE OR REPLACE FUNCTION headwater_rows_truncated() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM headwater_raise_revisions((SELECT array_agg(id) FROM task_sessions));
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS headwater_messages_inserted ON task_session_messages;
DROP TRIGGER IF EXISTS headwater_messages_updated ON task_session_messages;
DROP TRIGGER IF EXISTS headwater_messages_deleted ON task_session_messages;
DROP TRIGGER IF EXISTS headwater_messages_truncated ON task_session_messages;
DROP TRIGGER IF EXISTS headwater_turns_inserted ON task_session_turns;
DROP TRIGGER IF EXISTS headwater_turns_updated ON task_session_turns;
DROP TRIGGER IF EXISTS headwater_turns_deleted ON task_session_turns;
DROP TRIGGER IF EXISTS headwater_turns_truncated ON task_session_turns;

CREATE TRIGGER headwater_messages_inserted AFTER INSERT ON task_session_messages REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION headwater_rows_inserted();
CREATE TRIGGER headwater_messages_updated AFTER UPDATE ON task_session_messages REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION headwater_messages_updated();
CREATE TRIGGER headwater_messages_deleted AFTER DELETE ON task_session_messages REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION headwater_rows_deleted();
CREATE TRIGGER headwater_messages_truncated AFTER TRUNCATE ON task_session_messages
    FOR EACH STATEMENT EXECUTE FUNCTION headwater_rows_truncated();
CREATE TRIGGER headwater_turns_inserted AFTER INSERT ON task_session_turns REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION headwater_rows_inserted();
CREATE TRIGGER headwater_turns_updated AFTER UPDATE ON task_session_turns REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION headwater_turns_updated();
CREATE TRIGGER headwater_turns_deleted AFTER DELETE ON task_session_turns REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION headwater_rows_deleted();
CREATE TRIGGER headwater_turns_truncated AFTER TRUNCATE ON task_session_turns
    FOR EACH STATEMENT EXECUTE FUNCTION headwater_rows_truncated();

-- Always: also where a program has set session_replication_role to replica, as restores and copies do (C35).
ALTER TABLE task_session_messages ENABLE ALWAYS TRIGGER headwater_messages_inserted;
ALTER TABLE task_session_messages ENABLE ALWAYS TRIGGER headwater_messages_updated;
ALTER TABLE task_session_messages ENABLE ALWAYS TRIGGER headwater_messages_deleted;
ALTER TABLE task_session_messages ENABLE ALWAYS TRIGGER headwater_messages_truncated;
ALTER TABLE task_session_turns ENABLE ALWAYS TRIGGER headwater_turns_inserted;
ALTER TABLE task_session_turns ENABLE ALWAYS TRIGGER headwater_turns_updated;
ALTER TABLE task_session_turns ENABLE ALWAYS TRIGGER headwater_turns_deleted;
ALTER TABLE task_session_turns ENABLE ALWAYS TRIGGER headwater_turns_truncated;
