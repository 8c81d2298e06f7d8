-- Runs between v1.sql and v2.sql: what 2.x changes in a 1.x database that it upgrades in place. The 1.x session tables stay, frozen.
-- Columns added by ALTER TABLE come last, so columns are to be read by name.
DROP TABLE session_message;
ALTER TABLE event ADD COLUMN created integer DEFAULT 0 NOT NULL;
ALTER TABLE project ADD COLUMN time_active integer DEFAULT 0 NOT NULL;

