//! Whole session trees: children first, no orphans, a tree as one (P15).

use headwater_model::{ByteCount, SessionId};
use headwater_prune::{Class, KeptReason, ROW_BYTES_MAX};
use rusqlite::Connection;

use super::answer::{PruneErrorKind, of_session};
use super::bulk::{Halt, Pass};
use super::pruner::Pruner;
use super::step::Step;
use super::work::planned;
use crate::fence::{Asked, Fence, Refusal, SessionPlace, Storage, Subject};
use crate::lock::{self, Held};
use crate::observer::{Progress, Unit as Counted};
use crate::plan::judge::{Action, Sink, Taken};
use crate::plan::whole::{WholeSessions, quoted};
use crate::schema::Schema;
use crate::undo::{Unit, row_digest};

/// A tree of at most this size goes in one transaction, well below half a second: 30 MiB of rows take 40 ms, and with an archive they are hashed too. A larger one
/// goes in several, its session rows last.
const AT_ONCE_ROWS: u64 = 20_000;
const AT_ONCE_BYTES: u64 = 64 << 20;
/// Most bytes of rows in one frame of an archive.
const FRAME_BYTES: u64 = 8 << 20;

/// The rows of a tree in the order in which they go: of each session, children first, its tables with the session row last.
#[derive(Debug, Default, PartialEq, Eq)]
struct Listing {
    rows: Vec<(&'static str, i64)>,
    bytes: u64,
}

impl Sink for Listing {
    fn take(&mut self, taken: &Taken<'_>) {
        let mut rows = taken.rows.to_vec();
        rows.sort_unstable();
        self.rows.extend(rows.into_iter().map(|row| (taken.table, row)));
        self.bytes = self.bytes.saturating_add(taken.bytes);
    }

    fn keep(&mut self, _session: &str, _message: Option<&str>, _reason: KeptReason) {}
}

/// A tree that goes.
struct Tree {
    class: Class,
    /// Children first.
    sessions: Vec<SessionId>,
    /// Every row of every session, for the fence.
    places: Vec<SessionPlace>,
    listing: Listing,
    /// Digests of the archived rows, in the order of the listing.
    digests: Vec<[u8; 32]>,
    /// Rows that are gone, from the front.
    done: usize,
}

impl Tree {
    fn goes_at_once(&self) -> bool {
        self.listing.rows.len() as u64 <= AT_ONCE_ROWS && self.listing.bytes <= AT_ONCE_BYTES
    }
}

impl Pruner<'_> {
    pub(super) fn whole_pass(&mut self, pass: &mut Pass<'_>) -> Result<(), Halt> {
        let forest = pass.roster.forest();
        let total = forest.trees().len() as u64;
        for (tree, done) in forest.trees().iter().zip(1..) {
            for class in [Class::Leftover, Class::Sessions] {
                if self.observer.is_cancelled() {
                    return Err(Halt::Cancelled);
                }
                let chosen = tree.members.iter().rev().filter(|at| pass.scope.whole[**at] == Some(class));
                let sessions: Vec<SessionId> =
                    chosen.filter_map(|at| SessionId::new(&*pass.roster.sessions[*at].id).ok()).collect();
                if !sessions.is_empty() {
                    self.tree(pass, class, sessions)?;
                }
            }
            let progress =
                Progress { phase: "removing sessions", done, total: Some(total), unit: Counted::Sessions };
            self.observer.progress(progress);
        }
        Ok(())
    }

    fn tree(&mut self, pass: &mut Pass<'_>, class: Class, sessions: Vec<SessionId>) -> Result<(), Halt> {
        let mut tree = match self.survey(pass, class, sessions)? {
            Ok(tree) => tree,
            Err((sessions, reason)) => {
                keep(pass, &sessions, reason);
                return Ok(());
            }
        };
        self.archive_tree(&mut tree)?;
        while tree.done < tree.listing.rows.len() {
            if tree.done > 0 && self.observer.is_cancelled() {
                return Err(Halt::Cancelled);
            }
            match self.delete_some_of(&mut tree)? {
                Ok(()) => self.patience(false)?,
                Err(Refusal::AskedTooLongAgo) => self.patience(true)?,
                Err(refusal) => {
                    let reason = of_session(refusal).map_err(Halt::Blocked)?;
                    keep(pass, &tree.sessions, reason);
                    break;
                }
            }
        }
        account(pass, &tree);
        Ok(())
    }

    /// Lists what goes now, and refuses the tree where that is not what was planned.
    fn survey(
        &self,
        pass: &mut Pass<'_>,
        class: Class,
        sessions: Vec<SessionId>,
    ) -> Result<Result<Tree, (Vec<SessionId>, KeptReason)>, PruneErrorKind> {
        let connection = self.database.connection();
        let snapshot = connection.unchecked_transaction()?;
        let schema = self.fence.schema();
        let listing = list(&snapshot, schema, class, &sessions)?;
        let mut is_planned = true;
        for (table, row) in &listing.rows {
            let of_plan = planned(pass.plan, table, Action::Drop, class);
            if of_plan.is_some_and(|rows| rows.contains(row.cast_unsigned())) {
                pass.seen.add(table, class, *row);
            } else {
                is_planned = false;
            }
        }
        if !is_planned {
            return Ok(Err((sessions, KeptReason::Changed)));
        }
        if warm_large_rows(&snapshot, schema, &listing)? == Warmth::TooLarge {
            return Ok(Err((sessions, KeptReason::OversizedRow)));
        }
        let mut places = Vec::new();
        for session in &sessions {
            for storage in [Storage::V1, Storage::V2] {
                places.extend(SessionPlace::find(&snapshot, schema, storage, session)?);
            }
        }
        Ok(Ok(Tree { class, sessions, places, listing, digests: Vec::new(), done: 0 }))
    }

    fn archive_tree(&mut self, tree: &mut Tree) -> Result<(), Halt> {
        let Some(archive) = self.archive.as_deref_mut() else { return Ok(()) };
        let Some(place) = tree.places.first() else { return Ok(()) };
        let connection = self.database.connection();
        let unit = Unit { class: tree.class, place: place.clone(), message: None, receipt: None };
        let mut rows = tree.listing.rows.iter().peekable();
        while rows.peek().is_some() {
            archive.append(&unit, |frame| {
                let mut bytes = 0;
                for (table, rowid) in rows.by_ref() {
                    tree.digests.push(frame.deleted(connection, table, *rowid)?);
                    bytes += data_bytes(connection, self.fence.schema(), table, *rowid)?;
                    if bytes >= FRAME_BYTES {
                        break;
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// One transaction. The whole tree where it is small enough; else as many rows as fit, and the next transaction checks again.
    fn delete_some_of(&mut self, tree: &mut Tree) -> Result<Result<(), Refusal>, Halt> {
        self.locks.prepare()?;
        let mut asked = Vec::new();
        for place in &tree.places {
            match self.fence.ask(place) {
                Ok(answer) => asked.push(answer),
                Err(reason) => return Ok(Err(reason.into())),
            }
        }
        self.observer.reached(Step::Asked.name());
        let fence = &mut self.fence;
        let outcome = self.locks.run(|held| {
            if let Err(refusal) = check_tree(fence, held, tree, &asked)? {
                return Ok(lock::Step::Rollback(Err(refusal)));
            }
            let may_split = !tree.goes_at_once();
            let mut done = tree.done;
            for (at, (table, rowid)) in tree.listing.rows.iter().enumerate().skip(tree.done) {
                if let Some(archived) = tree.digests.get(at)
                    && row_digest(held.connection(), table, *rowid)? != Some(*archived)
                {
                    return Ok(lock::Step::Rollback(Err(Refusal::Kept(KeptReason::Changed))));
                }
                let sql = format!("DELETE FROM {} WHERE rowid = ?1", quoted(table));
                held.connection().prepare_cached(&sql)?.execute([rowid])?;
                done = at + 1;
                if may_split && held.is_due() {
                    break;
                }
            }
            Ok::<_, PruneErrorKind>(lock::Step::Commit(Ok(done)))
        })?;
        if outcome.is_ok() {
            self.observer.reached(Step::Committed.name());
        }
        Ok(outcome.map(|done| tree.done = done))
    }
}

/// Under the lock: every session of the tree may be written, nothing unknown refers to it, it has no child that was not planned, and
/// its rows are those that were listed.
fn check_tree(
    fence: &mut Fence<'_>,
    held: &Held<'_>,
    tree: &Tree,
    asked: &[Asked],
) -> rusqlite::Result<Result<(), Refusal>> {
    let connection = held.connection();
    for (place, asked) in tree.places.iter().zip(asked) {
        match fence.check(held, place, *asked, Subject::Whole)? {
            // Its own row went in an earlier transaction.
            Err(Refusal::Kept(KeptReason::Gone)) if tree.done > 0 => {}
            other @ Err(_) => return Ok(other),
            Ok(()) => {}
        }
    }
    let schema = fence.schema();
    for session in &tree.sessions {
        if has_other_child(connection, schema, tree, session)? {
            return Ok(Err(KeptReason::Changed.into()));
        }
        if is_referred_to(connection, schema, session)? {
            return Ok(Err(KeptReason::ReferredTo.into()));
        }
    }
    let now = list(connection, schema, tree.class, &tree.sessions)?;
    let is_listed = now.rows.as_slice() == tree.listing.rows.get(tree.done..).unwrap_or_default();
    Ok(if is_listed { Ok(()) } else { Err(KeptReason::Changed.into()) })
}

fn list(
    connection: &Connection,
    schema: &Schema,
    class: Class,
    sessions: &[SessionId],
) -> rusqlite::Result<Listing> {
    let mut whole = WholeSessions::new(connection, schema)?;
    let mut listing = Listing::default();
    for session in sessions {
        whole.take(session.as_str(), class, &mut listing)?;
    }
    Ok(listing)
}

fn has_other_child(
    connection: &Connection,
    schema: &Schema,
    tree: &Tree,
    session: &SessionId,
) -> rusqlite::Result<bool> {
    let tables: &[&str] =
        if tree.class == Class::Leftover { &["session"] } else { &["session", "session_v2"] };
    for table in tables.iter().filter(|table| schema.has(table, "parent_id")) {
        let mut statement =
            connection.prepare_cached(&format!("SELECT id FROM {table} WHERE parent_id = ?1"))?;
        let mut rows = statement.query([session.as_str()])?;
        while let Some(row) = rows.next()? {
            let child: String = row.get(0)?;
            if !tree.sessions.iter().any(|member| member.as_str() == child) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether a table that nobody here knows names the session: by a column `session_id`, or by a foreign key.
fn is_referred_to(connection: &Connection, schema: &Schema, session: &SessionId) -> rusqlite::Result<bool> {
    for table in schema.unknown_tables() {
        let mut columns: Vec<String> = connection
            .prepare_cached(
                "SELECT \"from\" FROM pragma_foreign_key_list(?1) WHERE \"table\" IN ('session', 'session_v2')",
            )?
            .query_map([table], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        if schema.has(table, "session_id") {
            columns.push("session_id".to_owned());
        }
        for column in columns {
            let sql =
                format!("SELECT EXISTS (SELECT 1 FROM {} WHERE {} = ?1)", quoted(table), quoted(&column));
            if connection.query_row(&sql, [session.as_str()], |row| row.get(0))? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[derive(PartialEq, Eq)]
enum Warmth {
    Ready,
    TooLarge,
}

/// Reads large rows through once, so that the lock does not wait for the disk.
fn warm_large_rows(connection: &Connection, schema: &Schema, listing: &Listing) -> rusqlite::Result<Warmth> {
    if listing.bytes <= super::events::WARM_BYTES {
        return Ok(Warmth::Ready);
    }
    for (table, rowid) in &listing.rows {
        let bytes = data_bytes(connection, schema, table, *rowid)?;
        if bytes > ROW_BYTES_MAX {
            return Ok(Warmth::TooLarge);
        }
        if bytes > super::events::WARM_BYTES {
            super::events::warm(connection, table, *rowid)?;
        }
    }
    Ok(Warmth::Ready)
}

fn data_bytes(connection: &Connection, schema: &Schema, table: &str, rowid: i64) -> rusqlite::Result<u64> {
    if !schema.has(table, "data") {
        return Ok(0);
    }
    let sql = format!("SELECT octet_length(data) FROM {} WHERE rowid = ?1", quoted(table));
    let bytes: i64 = connection.prepare_cached(&sql)?.query_row([rowid], |row| row.get(0))?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

fn keep(pass: &mut Pass<'_>, sessions: &[SessionId], reason: KeptReason) {
    for session in sessions {
        Pruner::keep_session(pass, session, reason);
    }
}

fn account(pass: &mut Pass<'_>, tree: &Tree) {
    let rows = tree.done as u64;
    if rows == 0 {
        return;
    }
    let done = pass.report.class(tree.class);
    done.rows_dropped += rows;
    // Of a tree that was stopped half-way the share of its rows is what is known of its bytes.
    let all = (tree.listing.rows.len() as u64).max(1);
    done.bytes += ByteCount::new(
        u64::try_from(u128::from(tree.listing.bytes) * u128::from(rows) / u128::from(all)).unwrap_or(0),
    );
    if tree.done < tree.listing.rows.len() {
        pass.report.rows_left.entry(tree.class).or_default().changed += all - rows;
    }
}
