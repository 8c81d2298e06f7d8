-- Tables of an agent host's older database: another order of columns, an updated_at that was added later, no prompt_seq, its own indexes.
CREATE TABLE tasks (id TEXT PRIMARY KEY, workspace_id TEXT NOT NULL DEFAULT '', title TEXT NOT NULL, description TEXT DEFAULT '',
    created_at TIMESTAMP NOT NULL, updated_at TIMESTAMP NOT NULL);
CREATE TABLE task_sessions (id TEXT PRIMARY KEY, state TEXT NOT NULL DEFAULT 'CREATED', task_id TEXT NOT NULL,
    agent_execution_id TEXT NOT NULL DEFAULT '', error_message TEXT DEFAULT '', metadata TEXT DEFAULT '{}',
    started_at TIMESTAMP NOT NULL, completed_at TIMESTAMP, updated_at TIMESTAMP NOT NULL, is_primary INTEGER DEFAULT 0,
    FOREIGN KEY (task_id) REFERENCES tasks(id) ON DELETE CASCADE);
CREATE TABLE task_session_turns (id TEXT PRIMARY KEY, task_session_id TEXT NOT NULL, task_id TEXT NOT NULL,
    started_at TIMESTAMP NOT NULL, completed_at TIMESTAMP, metadata TEXT DEFAULT '{}', created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL, execution_profile_id TEXT NOT NULL DEFAULT '', route_generation BIGINT NOT NULL DEFAULT 0,
    FOREIGN KEY (task_session_id) REFERENCES task_sessions(id) ON DELETE CASCADE);
CREATE TABLE task_session_messages (content TEXT NOT NULL, id TEXT PRIMARY KEY, task_session_id TEXT NOT NULL, task_id TEXT DEFAULT '',
    turn_id TEXT NOT NULL, author_type TEXT NOT NULL DEFAULT 'user', author_id TEXT DEFAULT '', requests_input INTEGER DEFAULT 0,
    type TEXT NOT NULL DEFAULT 'message', metadata TEXT DEFAULT '{}', created_at TIMESTAMP NOT NULL, updated_at TIMESTAMP,
    FOREIGN KEY (task_session_id) REFERENCES task_sessions(id) ON DELETE CASCADE,
    FOREIGN KEY (turn_id) REFERENCES task_session_turns(id) ON DELETE CASCADE);
CREATE INDEX idx_messages_session_created ON task_session_messages (task_session_id, created_at);
CREATE INDEX idx_messages_metadata_tool_call_id ON task_session_messages (task_session_id, ((metadata::jsonb)->>'tool_call_id'));
CREATE INDEX idx_messages_prompt_order ON task_session_messages (task_session_id, created_at, id);
CREATE TABLE kandev_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL DEFAULT '');

INSERT INTO tasks VALUES ('task', 'w', 'a title', '', '2026-01-01', '2026-01-01');
INSERT INTO task_sessions (id, task_id, started_at, updated_at) VALUES ('s', 'task', '2026-01-01 00:00:00.5', '2026-01-01'), ('S2', 'task', '2026-01-02', '2026-01-02');
INSERT INTO task_session_turns (id, task_session_id, task_id, started_at, created_at, updated_at) VALUES
    ('t', 's', 'task', '2026-01-01 00:00:01', '2026-01-01 00:00:01', '2026-01-01 00:00:01'),
    ('T2', 'S2', 'task', 'infinity', '2026-01-01 00:00:01', '2026-01-01 00:00:01');
INSERT INTO task_session_messages (content, id, task_session_id, task_id, turn_id, author_type, metadata, created_at) VALUES
    ('one', 'm1', 's', 'task', 't', 'user', '{}', '2026-01-01 00:00:02.123456'),
    (E'two\r\n\\ "quoted" 數字', 'm2', 's', 'task', 't', 'agent', '{"tool_call_id":"c","n":1.50}', '2026-01-01 00:00:02.123456'),
    ('', 'm3', 'S2', '', 'T2', 'agent', NULL, '0001-01-01 00:00:00');
INSERT INTO kandev_meta VALUES ('version', '1');
