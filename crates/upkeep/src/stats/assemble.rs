//! Turns what the walk has seen into the report.

use std::cmp::Reverse;

use headwater_model::{ByteCount, DAY_MS, UnixMillis};
use headwater_prune::Class;
use headwater_prune::retention::{Plausibility, plausibility};
use headwater_prune::tree::{Forest, Shape};
use rusqlite::OptionalExtension;

use super::report::{
    Age, AgeFigures, ClassFigures, Group, HeldBy, IndexFigures, LargeRow, ProjectFigures, Recoverable,
    SessionBytes, SessionCount, SessionFigures, StatsReport,
};
use super::tally::{EVENT, Tally, WALKED, groups, sort};
use super::{StatsOptions, folders, judged_classes, pages, tables};
use crate::open::ReadDatabase;
use crate::plan::PlanError;
use crate::plan::scope::tree_facts;
use crate::survey::content::Names;
use crate::survey::roster::{Roster, Session};

/// Longest title that is listed, in characters.
const TITLE_CHARS_MAX: usize = 200;

/// Everything that a report is made of.
pub(super) struct Assembly<'a> {
    pub(super) database: &'a ReadDatabase,
    pub(super) options: &'a StatsOptions,
    pub(super) roster: &'a Roster,
    pub(super) forest: &'a Forest,
    pub(super) tally: Tally,
    pub(super) names: Names,
    /// `None` where they are still to be read.
    pub(super) indexes: Option<Vec<IndexFigures>>,
}

impl Assembly<'_> {
    pub(super) fn report(mut self) -> Result<StatsReport, PlanError> {
        let (db, schema) = (self.database.connection(), self.database.schema());
        let database = pages::database(self.database)?;
        let indexes = match self.indexes.take() {
            Some(indexes) => indexes,
            None => pages::indexes(db)?,
        };
        let tables = tables::tables(db, schema, &mut self.tally, self.options.exact)?;
        let (own, v1_bytes) = self.by_session();
        let with_tree = self.with_tree(&own);
        let names = &self.names;
        let recoverable = Recoverable {
            sessions: self
                .sessions()
                .filter(|(at, session)| !session.exists() && !own[*at].event_bytes.is_zero())
                .count() as u64,
            rows: self.tally.without_session[EVENT].rows,
            bytes: ByteCount::new(self.tally.without_session[EVENT].bytes),
        };
        Ok(StatsReport {
            several_instants: database.holders.as_ref().is_some_and(|found| !found.holders.is_empty()),
            database,
            tables,
            indexes,
            event_types: groups(&self.tally.event_types, names),
            part_kinds: groups(&self.tally.part_kinds, names),
            tools: groups(&self.tally.tools, names),
            roles: self.roles(),
            message_types: groups(&self.tally.message_types, names),
            session_count: self.session_count(&v1_bytes),
            sessions: self.largest_sessions(&own, &with_tree)?,
            projects: self.projects(&own)?,
            ages: self.ages(&own),
            largest_rows: self.largest_rows()?,
            folders: folders::beside(self.database.file().path()),
            without_session: by_table(&self.tally.without_session),
            recoverable,
            unreadable: by_table(&self.tally.unreadable),
            unknown_tables: schema.unknown_tables().into_iter().map(Into::into).collect(),
            classes: self.classes(),
        })
    }

    fn sessions(&self) -> impl Iterator<Item = (usize, &Session)> {
        self.roster.sessions.iter().enumerate()
    }

    /// What the rows of each session hold, and how much of it is in 1.x tables.
    fn by_session(&self) -> (Vec<SessionBytes>, Vec<u64>) {
        let mut own = vec![SessionBytes::default(); self.roster.sessions.len()];
        let mut v1_bytes = vec![0; own.len()];
        for (at, bytes, in_v1) in &self.tally.sessions {
            own[*at] = *bytes;
            v1_bytes[*at] = *in_v1;
        }
        (own, v1_bytes)
    }

    /// `own` with everything below. In a loop the first member of the tree stands for all.
    fn with_tree(&self, own: &[SessionBytes]) -> Vec<SessionBytes> {
        let mut sums = own.to_vec();
        let mut place = vec![0; own.len()];
        for tree in self.forest.trees() {
            tree.members.iter().enumerate().for_each(|(order, member)| place[*member] = order);
            for member in tree.members.iter().rev() {
                for child in self.forest.children(*member) {
                    if place[*child] > place[*member] {
                        let below = sums[*child];
                        sums[*member].add(&below);
                    }
                }
            }
        }
        sums
    }

    fn roles(&self) -> Vec<Group> {
        let names = ["user", "assistant", "other", "unreadable"];
        let mut roles: Vec<Group> = names
            .into_iter()
            .zip(self.tally.roles)
            .filter(|(_, count)| count.rows > 0)
            .map(|(name, count)| count.group(name))
            .collect();
        sort(&mut roles);
        roles
    }

    fn session_count(&self, v1_bytes: &[u64]) -> SessionCount {
        let mut count = SessionCount::default();
        for (at, session) in self.sessions() {
            match held_by(session) {
                HeldBy::V1 => count.v1_only += 1,
                HeldBy::V2 => count.v2_only += 1,
                HeldBy::Both => {
                    count.both += 1;
                    count.twice_stored_bytes += ByteCount::new(v1_bytes[at]);
                }
                HeldBy::None => continue,
            }
            count.total += 1;
            count.archived += u64::from(session.is_archived);
        }
        for tree in self.forest.trees() {
            let members = tree.members.iter().filter(|at| self.roster.sessions[**at].exists()).count() as u64;
            count.trees += u64::from(members > 0);
            count.in_broken_trees += if tree.shape == Shape::Whole { 0 } else { members };
        }
        count
    }

    fn largest_sessions(
        &self,
        own: &[SessionBytes],
        with_tree: &[SessionBytes],
    ) -> rusqlite::Result<Vec<SessionFigures>> {
        let mut order: Vec<usize> = (0..self.roster.sessions.len()).collect();
        order.sort_by_key(|at| (Reverse(with_tree[*at].bytes()), *at));
        let figures = order.into_iter().take(self.options.sessions_max).map(|at| {
            let session = &self.roster.sessions[at];
            Ok(SessionFigures {
                id: session.id.to_string(),
                parent: session.parent.as_deref().map(Into::into),
                title: self.title(session)?,
                project: session.project.map(|project| self.roster.projects[project].to_string()),
                held_by: held_by(session),
                last_use: session.last_use,
                own: own[at],
                with_tree: with_tree[at],
            })
        });
        figures.collect()
    }

    fn title(&self, session: &Session) -> rusqlite::Result<Option<String>> {
        let (table, rowid) = match (session.v2, session.v1) {
            (Some(rowid), _) => ("session_v2", rowid),
            (None, Some(rowid)) => ("session", rowid),
            (None, None) => return Ok(None),
        };
        if !self.database.schema().has(table, "title") {
            return Ok(None);
        }
        let sql = format!("SELECT substr(title, 1, {TITLE_CHARS_MAX}) FROM {table} WHERE rowid = ?1");
        let mut statement = self.database.connection().prepare_cached(&sql)?;
        let title = statement.query_row([rowid], |row| Ok(row.get_ref(0)?.as_str().ok().map(Into::into)));
        title.optional().map(Option::flatten)
    }

    fn projects(&self, own: &[SessionBytes]) -> rusqlite::Result<Vec<ProjectFigures>> {
        let mut figures: Vec<ProjectFigures> = Vec::new();
        for id in &self.roster.projects {
            let id = id.to_string();
            let worktree = self.worktree(&id)?;
            figures.push(ProjectFigures {
                id,
                worktree,
                sessions: 0,
                rows: SessionBytes::default(),
                last_use: UnixMillis::default(),
            });
        }
        for (at, session) in self.sessions() {
            let Some(figures) = session.project.map(|project| &mut figures[project]) else { continue };
            figures.sessions += 1;
            figures.rows.add(&own[at]);
            figures.last_use = figures.last_use.max(session.last_use);
        }
        figures.retain(|project| project.sessions > 0);
        figures.sort_by(|one, other| (other.rows.bytes(), &one.id).cmp(&(one.rows.bytes(), &other.id)));
        Ok(figures)
    }

    fn worktree(&self, project: &str) -> rusqlite::Result<Option<String>> {
        if !self.database.schema().has("project", "worktree") {
            return Ok(None);
        }
        let mut statement =
            self.database.connection().prepare_cached("SELECT worktree FROM project WHERE id = ?1")?;
        let found = statement.query_row([project], |row| Ok(row.get_ref(0)?.as_str().ok().map(Into::into)));
        found.optional().map(Option::flatten)
    }

    fn ages(&self, own: &[SessionBytes]) -> Vec<AgeFigures> {
        let ages =
            [Age::Future, Age::Day, Age::Week, Age::Month, Age::Quarter, Age::Year, Age::Older, Age::Unknown];
        let none = SessionBytes::default();
        let mut figures = ages.map(|age| AgeFigures { age, trees: 0, sessions: 0, rows: none });
        for tree in self.forest.trees() {
            let members: Vec<usize> =
                tree.members.iter().copied().filter(|at| self.roster.sessions[*at].exists()).collect();
            if members.is_empty() {
                continue;
            }
            let figures =
                &mut figures[age(tree_facts(self.roster, tree).last_use, self.options.now) as usize];
            figures.trees += 1;
            figures.sessions += members.len() as u64;
            for member in members {
                figures.rows.add(&own[member]);
            }
        }
        figures.into()
    }

    fn largest_rows(&self) -> rusqlite::Result<Vec<LargeRow>> {
        let mut rows: Vec<_> = self.tally.largest.iter().map(|Reverse(row)| *row).collect();
        rows.sort_by_key(|row| (Reverse(row.bytes), row.table, row.rowid));
        let named = rows.into_iter().map(|row| {
            let table = WALKED[row.table];
            let sql = format!("SELECT id FROM {table} WHERE rowid = ?1");
            let mut statement = self.database.connection().prepare_cached(&sql)?;
            let id =
                statement.query_row([row.rowid], |found| Ok(found.get_ref(0)?.as_str().ok().map(Into::into)));
            let session = self.roster.sessions[row.session].id.to_string();
            Ok(LargeRow { table, id: id.optional()?.flatten(), session, bytes: ByteCount::new(row.bytes) })
        });
        named.collect()
    }

    fn classes(&self) -> Vec<ClassFigures> {
        let classes = judged_classes().with(Class::Leftover);
        let figures = classes.iter().map(|class| ClassFigures {
            class,
            model_effect: class.model_effect(),
            total: self.tally.classes.totals.get(&class).cloned().unwrap_or_default(),
        });
        figures.collect()
    }
}

fn by_table(counts: &[super::tally::Count; 4]) -> Vec<Group> {
    let groups = WALKED.into_iter().zip(counts).filter(|(_, count)| count.rows > 0);
    groups.map(|(table, count)| count.group(table)).collect()
}

fn held_by(session: &Session) -> HeldBy {
    match (session.v1, session.v2) {
        (Some(_), Some(_)) => HeldBy::Both,
        (Some(_), None) => HeldBy::V1,
        (None, Some(_)) => HeldBy::V2,
        (None, None) => HeldBy::None,
    }
}

fn age(last_use: UnixMillis, now: UnixMillis) -> Age {
    match plausibility(last_use, now) {
        Plausibility::Unset => Age::Unknown,
        Plausibility::Future => Age::Future,
        Plausibility::Plausible => match now.since(last_use) / DAY_MS {
            0 => Age::Day,
            1..7 => Age::Week,
            7..30 => Age::Month,
            30..90 => Age::Quarter,
            90..365 => Age::Year,
            _ => Age::Older,
        },
    }
}
