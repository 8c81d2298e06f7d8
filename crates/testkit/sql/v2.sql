-- Storage of OpenCode 2.x, from public sources (its runtime could not be run): anomalyco/opencode packages/core/src/session/sql.ts,
-- database/schema.gen.ts and database/migration/*.ts; getagentseal/codeburn issue 1293.
-- IF NOT EXISTS, because an upgraded database keeps the 1.x tables of the same name.
-- time_suspended is the execution claim: set means running, or to be resumed. credential holds secrets.

CREATE TABLE IF NOT EXISTS project (
  id text PRIMARY KEY, worktree text NOT NULL, vcs text, name text, icon_url text, icon_url_override text,
  icon_color text, time_created integer NOT NULL, time_updated integer NOT NULL, time_initialized integer,
  time_active integer DEFAULT 0 NOT NULL, sandboxes text NOT NULL, commands text
);
CREATE TABLE IF NOT EXISTS project_directory (
  project_id text NOT NULL, directory text NOT NULL, type text, strategy text, time_created integer NOT NULL,
  CONSTRAINT project_directory_pk PRIMARY KEY (project_id, directory),
  FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE
);
CREATE TABLE IF NOT EXISTS worktree (
  project_id text NOT NULL, directory text NOT NULL, strategy text, time_created integer NOT NULL,
  CONSTRAINT worktree_pk PRIMARY KEY (project_id, directory),
  FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE
);
CREATE TABLE IF NOT EXISTS workspace (
  id text PRIMARY KEY, provider text NOT NULL, binding text, created_at integer NOT NULL,
  last_used_at integer NOT NULL
);
CREATE TABLE IF NOT EXISTS permission (
  id text PRIMARY KEY, project_id text NOT NULL, action text NOT NULL, resource text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL,
  FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE
);
CREATE TABLE IF NOT EXISTS credential (
  id text PRIMARY KEY, integration_id text, label text NOT NULL, value text NOT NULL, connector_id text,
  method_id text, active integer, time_created integer NOT NULL, time_updated integer NOT NULL
);
CREATE TABLE IF NOT EXISTS session_v2 (
  id text PRIMARY KEY, project_id text NOT NULL, workspace_id text, parent_id text, fork_session_id text,
  fork_boundary text, slug text NOT NULL, directory text NOT NULL, path text, title text, version text NOT NULL,
  share_url text, summary_additions integer, summary_deletions integer, summary_files integer, summary_diffs text,
  metadata text, cost real DEFAULT 0 NOT NULL, tokens_input integer DEFAULT 0 NOT NULL,
  tokens_output integer DEFAULT 0 NOT NULL, tokens_reasoning integer DEFAULT 0 NOT NULL,
  tokens_cache_read integer DEFAULT 0 NOT NULL, tokens_cache_write integer DEFAULT 0 NOT NULL, revert text,
  permission text, agent text, model text, time_created integer NOT NULL, time_updated integer NOT NULL,
  time_idle integer, time_viewed integer, idle_outcome text, time_compacting integer, time_archived integer,
  time_suspended integer, resume_attempts integer DEFAULT 0 NOT NULL,
  FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE
);
CREATE TABLE IF NOT EXISTS session_message (
  id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL, seq integer NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL,
  FOREIGN KEY (session_id) REFERENCES session_v2(id) ON DELETE CASCADE
);
CREATE TABLE IF NOT EXISTS session_inbox (
  id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL, payload text NOT NULL, delivery text NOT NULL,
  enqueued_seq integer NOT NULL, time_created integer NOT NULL,
  FOREIGN KEY (session_id) REFERENCES session_v2(id) ON DELETE CASCADE
);
CREATE TABLE IF NOT EXISTS session_pending (
  id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL, data text NOT NULL, delivery text,
  admitted_seq integer NOT NULL, time_created integer NOT NULL,
  FOREIGN KEY (session_id) REFERENCES session_v2(id) ON DELETE CASCADE
);
CREATE TABLE IF NOT EXISTS instruction_blob (hash text PRIMARY KEY, value text);
CREATE TABLE IF NOT EXISTS instruction_entry (
  session_id text NOT NULL, key text NOT NULL, value text, removed integer DEFAULT false NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL,
  CONSTRAINT instruction_entry_pk PRIMARY KEY (session_id, key),
  FOREIGN KEY (session_id) REFERENCES session_v2(id) ON DELETE CASCADE
);
CREATE TABLE IF NOT EXISTS instruction_state (
  session_id text PRIMARY KEY, epoch_start integer NOT NULL, through_seq integer NOT NULL,
  initial_values text NOT NULL, current_values text NOT NULL,
  FOREIGN KEY (session_id) REFERENCES session_v2(id) ON DELETE CASCADE
);
CREATE TABLE IF NOT EXISTS event_sequence (
  aggregate_id text PRIMARY KEY, seq integer NOT NULL, owner_id text
);
CREATE TABLE IF NOT EXISTS event (
  id text PRIMARY KEY, aggregate_id text NOT NULL, seq integer NOT NULL, created integer DEFAULT 0 NOT NULL,
  type text NOT NULL, data text NOT NULL,
  FOREIGN KEY (aggregate_id) REFERENCES event_sequence(aggregate_id) ON DELETE CASCADE
);
CREATE TABLE IF NOT EXISTS kv (
  key text PRIMARY KEY, value text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL
);
CREATE TABLE IF NOT EXISTS migration (id text PRIMARY KEY, time_completed integer NOT NULL);
CREATE TABLE IF NOT EXISTS data_migration (name text PRIMARY KEY, time_completed integer NOT NULL);

CREATE INDEX IF NOT EXISTS session_v2_project_idx ON session_v2 (project_id);
CREATE INDEX IF NOT EXISTS session_v2_workspace_idx ON session_v2 (workspace_id);
CREATE INDEX IF NOT EXISTS session_v2_parent_idx ON session_v2 (parent_id);
CREATE INDEX IF NOT EXISTS session_v2_time_suspended_idx ON session_v2 (time_suspended) WHERE time_suspended IS NOT NULL;
CREATE UNIQUE INDEX IF NOT EXISTS session_message_session_seq_idx ON session_message (session_id, seq);
CREATE INDEX IF NOT EXISTS session_message_session_type_seq_idx ON session_message (session_id, type, seq);
CREATE INDEX IF NOT EXISTS session_message_session_time_created_id_idx ON session_message (session_id, time_created, id);
CREATE INDEX IF NOT EXISTS session_message_time_created_idx ON session_message (time_created);
CREATE INDEX IF NOT EXISTS session_inbox_session_delivery_seq_idx ON session_inbox (session_id, delivery, enqueued_seq);
CREATE UNIQUE INDEX IF NOT EXISTS session_inbox_session_enqueued_seq_idx ON session_inbox (session_id, enqueued_seq);
CREATE INDEX IF NOT EXISTS session_pending_session_delivery_seq_idx ON session_pending (session_id, delivery, admitted_seq);
CREATE UNIQUE INDEX IF NOT EXISTS session_pending_session_compaction_idx ON session_pending (session_id) WHERE type = 'compaction';
CREATE UNIQUE INDEX IF NOT EXISTS session_pending_session_admitted_seq_idx ON session_pending (session_id, admitted_seq);
CREATE UNIQUE INDEX IF NOT EXISTS event_aggregate_seq_idx ON event (aggregate_id, seq);
CREATE INDEX IF NOT EXISTS event_aggregate_type_seq_idx ON event (aggregate_id, type, seq);

INSERT INTO migration (id, time_completed) VALUES
  ('20260811161259_execution_claim_attempts', 1790000000000), ('20260812181746_session_inbox', 1790000000000);
