-- Tables of an agent host's older file: another order of columns, DATETIME, an updated_at that was added later, no prompt_seq.
CREATE TABLE tasks (id TEXT PRIMARY KEY, workspace_id TEXT NOT NULL DEFAULT '', title TEXT NOT NULL, description TEXT DEFAULT '',
    created_at DATETIME NOT NULL, updated_at DATETIME NOT NULL);
CREATE TABLE task_sessions (id TEXT PRIMARY KEY, state TEXT NOT NULL DEFAULT 'CREATED', task_id TEXT NOT NULL,
    agent_execution_id TEXT NOT NULL DEFAULT '', error_message TEXT DEFAULT '', metadata TEXT DEFAULT '{}',
    started_at DATETIME NOT NULL, completed_at DATETIME, updated_at DATETIME NOT NULL, is_primary INTEGER DEFAULT 0,
    FOREIGN KEY (task_id) REFERENCES tasks(id) ON DELETE CASCADE);
CREATE TABLE task_session_turns (id TEXT PRIMARY KEY, task_session_id TEXT NOT NULL, task_id TEXT NOT NULL,
    started_at DATETIME NOT NULL, completed_at DATETIME, metadata TEXT DEFAULT '{}', created_at DATETIME NOT NULL,
    updated_at DATETIME NOT NULL, execution_profile_id TEXT NOT NULL DEFAULT '', route_generation BIGINT NOT NULL DEFAULT 0,
    FOREIGN KEY (task_session_id) REFERENCES task_sessions(id) ON DELETE CASCADE);
CREATE TABLE task_session_messages (content TEXT NOT NULL, id TEXT PRIMARY KEY, task_session_id TEXT NOT NULL, task_id TEXT DEFAULT '',
    turn_id TEXT NOT NULL, author_type TEXT NOT NULL DEFAULT 'user', author_id TEXT DEFAULT '', requests_input INTEGER DEFAULT 0,
    type TEXT NOT NULL DEFAULT 'message', metadata TEXT DEFAULT '{}', created_at DATETIME NOT NULL, updated_at DATETIME,
    FOREIGN KEY (task_session_id) REFERENCES task_sessions(id) ON DELETE CASCADE,
    FOREIGN KEY (turn_id) REFERENCES task_session_turns(id) ON DELETE CASCADE);
CREATE INDEX idx_messages_session_created ON task_session_messages(task_session_id, created_at);
CREATE TABLE kandev_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL DEFAULT '');

INSERT INTO tasks VALUES ('task', 'w', 'a title', '', '2026-01-01 00:00:00+00:00', '2026-01-01 00:00:00+00:00');
INSERT INTO task_sessions (id, task_id, started_at, updated_at) VALUES ('s', 'task', '2026-01-01 00:00:00.5+00:00', '2026-01-01 00:00:00');
INSERT INTO task_session_turns (id, task_session_id, task_id, started_at, created_at, updated_at)
    VALUES ('t', 's', 'task', '2026-01-01T00:00:01Z', '2026-01-01 00:00:01+00:00', '2026-01-01 00:00:01+00:00');
INSERT INTO task_session_messages (content, id, task_session_id, task_id, turn_id, author_type, metadata, created_at) VALUES
    ('one', 'm1', 's', 'task', 't', 'user', '{}', '2026-01-01 00:00:02.123456789+00:00'),
    ('two', 'm2', 's', 'task', 't', 'agent', 'not json', '2026-01-01 00:00:02.123456+00:00'),
    (CAST(x'66ff6f' AS TEXT), 'm3', 's', '', 't', 'agent', NULL, 'no time at all'),
    ('four', 'm0', 's', 'task', 't', 'agent', '{"tool_call_id":"c"}', '2026-01-01T01:00:01+01:00');
INSERT INTO kandev_meta VALUES ('version', '1');
