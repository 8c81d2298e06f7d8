-- A database that prunes were made in: its path, and what tells it from another database at the same path.
CREATE TABLE database (
  id INTEGER PRIMARY KEY,
  path BLOB NOT NULL,
  origin TEXT NOT NULL,
  UNIQUE (path, origin)
) STRICT;

-- One row per prune request. 'intent': about to be committed, or committed and not resolved. 'done': committed.
CREATE TABLE receipt (
  database INTEGER NOT NULL REFERENCES database (id),
  key TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('intent', 'done')),
  session TEXT NOT NULL,
  message TEXT NOT NULL,
  evidence TEXT NOT NULL,
  receipt TEXT NOT NULL,
  time_intended INTEGER NOT NULL,
  PRIMARY KEY (database, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX receipt_intent ON receipt (database) WHERE state = 'intent';

-- One row per bulk run: what was asked, how it ended.
CREATE TABLE run (
  id INTEGER PRIMARY KEY,
  database INTEGER NOT NULL REFERENCES database (id),
  kind TEXT NOT NULL,
  time_started INTEGER NOT NULL,
  time_ended INTEGER,
  outcome TEXT,
  report TEXT
) STRICT;
CREATE INDEX run_kind ON run (database, kind, time_started);
