//! Which conversations a page is about.

use headwater_model::SessionId;
use rusqlite::{Connection, OptionalExtension, named_params};
use serde::Serialize;

use crate::schema::Schema;

/// What a history request covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// One session, without its children.
    Session(SessionId),
    /// The sessions of one workspace.
    Workspace(Workspace),
}

/// A directory tree as OpenCode sees it (P12).
///
/// A session belongs to it when it works in the directory or below it, has its project or the project `global` (sessions from before
/// the directory had one), and its workspace identity; a `global` session may also have none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Workspace {
    /// The root. `/a/b` covers `/a/b` and `/a/b/c`, never `/a/bc`.
    pub directory: String,
    /// Project of the directory. It does not bring in other directories: an independent clone shares it.
    pub project: String,
    /// Workspace identity; `None` for sessions without one.
    pub workspace: Option<String>,
}

impl Scope {
    /// The first session after `after` in id order, or the first of all.
    pub(super) fn next_session(
        &self,
        connection: &Connection,
        schema: &Schema,
        after: Option<&str>,
    ) -> rusqlite::Result<Option<String>> {
        match self {
            Self::Session(id) => Ok(after.is_none().then(|| id.as_str().to_owned())),
            Self::Workspace(workspace) => {
                workspace.next_session(connection, schema, after.unwrap_or_default())
            }
        }
    }
}

impl Workspace {
    fn next_session(
        &self,
        connection: &Connection,
        schema: &Schema,
        after: &str,
    ) -> rusqlite::Result<Option<String>> {
        let directory = match self.directory.trim_end_matches('/') {
            "" => "/",
            trimmed => trimmed,
        };
        let below = if directory == "/" { "/".to_owned() } else { format!("{directory}/") };
        let mut next: Option<String> = None;
        for table in ["session_v2", "session"] {
            if !schema.has(table, "directory") || !schema.has(table, "project_id") {
                continue;
            }
            let workspace = if schema.has(table, "workspace_id") { "workspace_id" } else { "NULL" };
            // Of a session in both storages the 2.x row says where it is.
            let other = if table == "session" && schema.has("session_v2", "id") {
                "AND NOT EXISTS (SELECT 1 FROM session_v2 v WHERE v.id = session.id)"
            } else {
                ""
            };
            let sql = format!(
                "SELECT id FROM {table} WHERE id > :after \
                 AND (directory = :directory OR substr(directory, 1, length(:below)) = :below) \
                 AND (project_id = :project AND {workspace} IS :workspace \
                      OR project_id = 'global' AND ({workspace} IS NULL OR {workspace} IS :workspace)) \
                 {other} ORDER BY id LIMIT 1"
            );
            let found: Option<String> = connection
                .prepare_cached(&sql)?
                .query_row(
                    named_params! {
                        ":after": after, ":directory": directory, ":below": below, ":project": self.project,
                        ":workspace": self.workspace,
                    },
                    |row| row.get(0),
                )
                .optional()?;
            next = match (next, found) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        Ok(next)
    }
}
