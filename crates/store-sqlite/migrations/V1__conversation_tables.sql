-- The tables of an agent host, as far as conversations need them (C1). Where a host has made them before, they are left as they are:
-- columns are named everywhere, never counted.
CREATE TABLE IF NOT EXISTS workspaces (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL DEFAULT '',
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);

CREATE TABLE IF NOT EXISTS tasks (
    id TEXT PRIMARY KEY,
    workspace_id TEXT REFERENCES workspaces(id) ON DELETE CASCADE,
    title TEXT NOT NULL,
    description TEXT DEFAULT '',
    state TEXT NOT NULL DEFAULT '',
    metadata TEXT DEFAULT '{}',
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);

CREATE TABLE IF NOT EXISTS task_sessions (
    id TEXT PRIMARY KEY,
    task_id TEXT NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
    name TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL DEFAULT 'CREATED',
    metadata TEXT DEFAULT '{}',
    started_at TIMESTAMP NOT NULL,
    completed_at TIMESTAMP,
    updated_at TIMESTAMP NOT NULL
);

CREATE TABLE IF NOT EXISTS task_session_turns (
    id TEXT PRIMARY KEY,
    task_session_id TEXT NOT NULL REFERENCES task_sessions(id) ON DELETE CASCADE,
    task_id TEXT NOT NULL,
    started_at TIMESTAMP NOT NULL,
    completed_at TIMESTAMP,
    execution_profile_id TEXT NOT NULL DEFAULT '',
    route_generation BIGINT NOT NULL DEFAULT 0,
    metadata TEXT DEFAULT '{}',
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);

CREATE TABLE IF NOT EXISTS task_session_messages (
    id TEXT PRIMARY KEY,
    task_session_id TEXT NOT NULL REFERENCES task_sessions(id) ON DELETE CASCADE,
    task_id TEXT DEFAULT '',
    turn_id TEXT NOT NULL REFERENCES task_session_turns(id) ON DELETE CASCADE,
    author_type TEXT NOT NULL DEFAULT 'user',
    author_id TEXT DEFAULT '',
    requests_input INTEGER DEFAULT 0,
    type TEXT NOT NULL DEFAULT 'message',
    prompt_seq INTEGER NOT NULL DEFAULT 0,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    metadata TEXT DEFAULT '{}',
    content TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS task_session_prompt_seq (
    task_session_id TEXT PRIMARY KEY,
    last_seq INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS conversation_session_revisions (
    session_id TEXT PRIMARY KEY,
    revision BIGINT NOT NULL DEFAULT 0 CHECK (revision >= 0),
    FOREIGN KEY (session_id) REFERENCES task_sessions(id) ON DELETE CASCADE
);
