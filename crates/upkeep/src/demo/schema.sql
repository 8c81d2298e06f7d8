-- The tables of a file that OpenCode 1.18.34 made and 2.x upgraded in place: both layouts, with the migration rows that make 1.18.34 open it.
CREATE TABLE workspace (
  id text PRIMARY KEY, type text NOT NULL, name text DEFAULT '' NOT NULL, branch text, directory text,
  extra text, project_id text NOT NULL, time_used integer NOT NULL,
  FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE
);
CREATE TABLE data_migration (
  name text PRIMARY KEY, time_completed integer NOT NULL
);
CREATE TABLE account_state (
  id integer PRIMARY KEY, active_account_id text, active_org_id text,
  FOREIGN KEY (active_account_id) REFERENCES account(id) ON DELETE SET NULL
);
CREATE TABLE account (
  id text PRIMARY KEY, email text NOT NULL, url text NOT NULL, access_token text NOT NULL,
  refresh_token text NOT NULL, token_expiry integer, time_created integer NOT NULL,
  time_updated integer NOT NULL
);
CREATE TABLE control_account (
  email text NOT NULL, url text NOT NULL, access_token text NOT NULL, refresh_token text NOT NULL,
  token_expiry integer, active integer NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, CONSTRAINT control_account_pk PRIMARY KEY(email, url)
);
CREATE TABLE credential (
  id text PRIMARY KEY, integration_id text, label text NOT NULL, value text NOT NULL, connector_id text,
  method_id text, active integer, time_created integer NOT NULL, time_updated integer NOT NULL
);
CREATE TABLE event_sequence (
  aggregate_id text PRIMARY KEY, seq integer NOT NULL, owner_id text
);
CREATE TABLE event (
  id text PRIMARY KEY, aggregate_id text NOT NULL, seq integer NOT NULL, created integer DEFAULT 0 NOT NULL,
  type text NOT NULL, data text NOT NULL,
  FOREIGN KEY (aggregate_id) REFERENCES event_sequence(aggregate_id) ON DELETE CASCADE
);
CREATE TABLE permission (
  id text PRIMARY KEY, project_id text NOT NULL, action text NOT NULL, resource text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL,
  FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE
);
CREATE TABLE project_directory (
  project_id text NOT NULL, directory text NOT NULL, type text, strategy text,
  time_created integer NOT NULL, CONSTRAINT project_directory_pk PRIMARY KEY (project_id, directory),
  FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE
);
CREATE TABLE project (
  id text PRIMARY KEY, worktree text NOT NULL, vcs text, name text, icon_url text, icon_url_override text,
  icon_color text, time_created integer NOT NULL, time_updated integer NOT NULL, time_initialized integer,
  time_active integer DEFAULT 0 NOT NULL, sandboxes text NOT NULL, commands text
);
CREATE TABLE message (
  id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL,
  FOREIGN KEY (session_id) REFERENCES session(id) ON DELETE CASCADE
);
CREATE TABLE part (
  id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL,
  FOREIGN KEY (message_id) REFERENCES message(id) ON DELETE CASCADE
);
CREATE TABLE session_context_epoch (
  session_id text PRIMARY KEY, baseline text NOT NULL, snapshot text NOT NULL,
  baseline_seq integer NOT NULL, FOREIGN KEY (session_id) REFERENCES session(id) ON DELETE CASCADE
);
CREATE TABLE session_input (
  id text PRIMARY KEY, session_id text NOT NULL, prompt text NOT NULL, delivery text NOT NULL,
  admitted_seq integer NOT NULL, promoted_seq integer, time_created integer NOT NULL,
  FOREIGN KEY (session_id) REFERENCES session(id) ON DELETE CASCADE
);
CREATE TABLE session_message (
  id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL, seq integer NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL,
  FOREIGN KEY (session_id) REFERENCES session_v2(id) ON DELETE CASCADE
);
CREATE TABLE session (
  id text PRIMARY KEY, project_id text NOT NULL, workspace_id text, parent_id text, slug text NOT NULL,
  directory text NOT NULL, path text, title text NOT NULL, version text NOT NULL, share_url text,
  summary_additions integer, summary_deletions integer, summary_files integer, summary_diffs text,
  metadata text, cost real DEFAULT 0 NOT NULL, tokens_input integer DEFAULT 0 NOT NULL,
  tokens_output integer DEFAULT 0 NOT NULL, tokens_reasoning integer DEFAULT 0 NOT NULL,
  tokens_cache_read integer DEFAULT 0 NOT NULL, tokens_cache_write integer DEFAULT 0 NOT NULL, revert text,
  permission text, agent text, model text, time_created integer NOT NULL, time_updated integer NOT NULL,
  time_compacting integer, time_archived integer,
  FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE
);
CREATE TABLE todo (
  session_id text NOT NULL, content text NOT NULL, status text NOT NULL, priority text NOT NULL,
  position integer NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL,
  CONSTRAINT todo_pk PRIMARY KEY(session_id, position),
  FOREIGN KEY (session_id) REFERENCES session(id) ON DELETE CASCADE
);
CREATE TABLE session_share (
  session_id text PRIMARY KEY, id text NOT NULL, secret text NOT NULL, url text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL,
  FOREIGN KEY (session_id) REFERENCES session(id) ON DELETE CASCADE
);
CREATE TABLE migration (
  id text PRIMARY KEY, time_completed integer NOT NULL
);
CREATE TABLE worktree (
  project_id text NOT NULL, directory text NOT NULL, strategy text, time_created integer NOT NULL,
  CONSTRAINT worktree_pk PRIMARY KEY (project_id, directory),
  FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE
);
CREATE TABLE session_v2 (
  id text PRIMARY KEY, project_id text NOT NULL, workspace_id text, parent_id text, fork_session_id text,
  fork_boundary text, slug text NOT NULL, directory text NOT NULL, path text, title text,
  version text NOT NULL, share_url text, summary_additions integer, summary_deletions integer,
  summary_files integer, summary_diffs text, metadata text, cost real DEFAULT 0 NOT NULL,
  tokens_input integer DEFAULT 0 NOT NULL, tokens_output integer DEFAULT 0 NOT NULL,
  tokens_reasoning integer DEFAULT 0 NOT NULL, tokens_cache_read integer DEFAULT 0 NOT NULL,
  tokens_cache_write integer DEFAULT 0 NOT NULL, revert text, permission text, agent text, model text,
  time_created integer NOT NULL, time_updated integer NOT NULL, time_idle integer, time_viewed integer,
  idle_outcome text, time_compacting integer, time_archived integer, time_suspended integer,
  resume_attempts integer DEFAULT 0 NOT NULL,
  FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE
);
CREATE TABLE session_inbox (
  id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL, payload text NOT NULL,
  delivery text NOT NULL, enqueued_seq integer NOT NULL, time_created integer NOT NULL,
  FOREIGN KEY (session_id) REFERENCES session_v2(id) ON DELETE CASCADE
);
CREATE TABLE session_pending (
  id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL, data text NOT NULL, delivery text,
  admitted_seq integer NOT NULL, time_created integer NOT NULL,
  FOREIGN KEY (session_id) REFERENCES session_v2(id) ON DELETE CASCADE
);
CREATE TABLE instruction_blob (
  hash text PRIMARY KEY, value text
);
CREATE TABLE instruction_entry (
  session_id text NOT NULL, key text NOT NULL, value text, removed integer DEFAULT false NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL,
  CONSTRAINT instruction_entry_pk PRIMARY KEY (session_id, key),
  FOREIGN KEY (session_id) REFERENCES session_v2(id) ON DELETE CASCADE
);
CREATE TABLE instruction_state (
  session_id text PRIMARY KEY, epoch_start integer NOT NULL, through_seq integer NOT NULL,
  initial_values text NOT NULL, current_values text NOT NULL,
  FOREIGN KEY (session_id) REFERENCES session_v2(id) ON DELETE CASCADE
);
CREATE TABLE kv (
  key text PRIMARY KEY, value text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL
);
CREATE UNIQUE INDEX event_aggregate_seq_idx ON event (aggregate_id,seq);
CREATE INDEX event_aggregate_type_seq_idx ON event (aggregate_id,type,seq);
CREATE UNIQUE INDEX permission_project_action_resource_idx ON permission (project_id,action,resource);
CREATE INDEX message_session_time_created_id_idx ON message (session_id,time_created,id);
CREATE INDEX part_message_id_id_idx ON part (message_id,id);
CREATE INDEX part_session_idx ON part (session_id);
CREATE INDEX session_input_session_pending_delivery_seq_idx ON session_input (session_id,promoted_seq,delivery,admitted_seq);
CREATE UNIQUE INDEX session_input_session_admitted_seq_idx ON session_input (session_id,admitted_seq);
CREATE UNIQUE INDEX session_input_session_promoted_seq_idx ON session_input (session_id,promoted_seq);
CREATE UNIQUE INDEX session_message_session_seq_idx ON session_message (session_id,seq);
CREATE INDEX session_message_session_type_seq_idx ON session_message (session_id,type,seq);
CREATE INDEX session_message_session_time_created_id_idx ON session_message (session_id,time_created,id);
CREATE INDEX session_message_time_created_idx ON session_message (time_created);
CREATE INDEX session_project_idx ON session (project_id);
CREATE INDEX session_workspace_idx ON session (workspace_id);
CREATE INDEX session_parent_idx ON session (parent_id);
CREATE INDEX todo_session_idx ON todo (session_id);
CREATE INDEX session_v2_project_idx ON session_v2 (project_id);
CREATE INDEX session_v2_workspace_idx ON session_v2 (workspace_id);
CREATE INDEX session_v2_parent_idx ON session_v2 (parent_id);
CREATE INDEX session_v2_time_suspended_idx ON session_v2 (time_suspended) WHERE time_suspended IS NOT NULL;
CREATE INDEX session_inbox_session_delivery_seq_idx ON session_inbox (session_id, delivery, enqueued_seq);
CREATE UNIQUE INDEX session_inbox_session_enqueued_seq_idx ON session_inbox (session_id, enqueued_seq);
CREATE INDEX session_pending_session_delivery_seq_idx ON session_pending (session_id, delivery, admitted_seq);
CREATE UNIQUE INDEX session_pending_session_compaction_idx ON session_pending (session_id) WHERE type = 'compaction';
CREATE UNIQUE INDEX session_pending_session_admitted_seq_idx ON session_pending (session_id, admitted_seq);
INSERT INTO migration (id, time_completed)
SELECT value, 1790000000000 FROM json_each('[
  "20260127222353_familiar_lady_ursula",
  "20260211171708_add_project_commands",
  "20260213144116_wakeful_the_professor",
  "20260225215848_workspace",
  "20260227213759_add_session_workspace_id",
  "20260228203230_blue_harpoon",
  "20260303231226_add_workspace_fields",
  "20260309230000_move_org_to_state",
  "20260312043431_session_message_cursor",
  "20260323234822_events",
  "20260410174513_workspace-name",
  "20260413175956_chief_energizer",
  "20260423070820_add_icon_url_override",
  "20260427172553_slow_nightmare",
  "20260428004200_add_session_path",
  "20260501142318_next_venus",
  "20260504145000_add_sync_owner",
  "20260507164347_add_workspace_time",
  "20260510033149_session_usage",
  "20260511000411_data_migration_state",
  "20260511173437_session-metadata",
  "20260601010001_normalize_storage_paths",
  "20260601202201_amazing_prowler",
  "20260602002951_lowly_union_jack",
  "20260602182828_add_project_directories",
  "20260603001617_session_message_projection_indexes",
  "20260603040000_session_message_projection_order",
  "20260603141458_session_input_inbox",
  "20260603160727_jittery_ezekiel_stane",
  "20260604172448_event_sourced_session_input",
  "20260605003541_add_session_context_snapshot",
  "20260605042240_add_context_epoch_agent",
  "20260611035744_credential",
  "20260611192811_lush_chimera",
  "20260612174303_project_dir_strategy",
  "20260622142730_simplify_session_context_epoch",
  "20260622170816_reset_v2_session_state",
  "20260622202450_simplify_session_input"
]');
