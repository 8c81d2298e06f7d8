use headwater_model::UnixMillis;
use headwater_prune::Class;
use serde_json::json;

use super::{Age, HeldBy, LogState, StatsOptions, StatsReport, compute};
use crate::observer::Unobserved;
use crate::open::ReadDatabase;
use crate::plan::Precision;
use crate::survey::sample::{NOW, Sample, reasoning, text, tool, tool_with};

fn stats(sample: &Sample, options: &StatsOptions) -> StatsReport {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    sample.db.execute("VACUUM INTO ?1", [path.to_str().unwrap()]).unwrap();
    ReadDatabase::with::<_, crate::plan::PlanError>(&path, |database| compute(database, options, &Unobserved))
        .unwrap()
}

fn usual() -> StatsOptions {
    StatsOptions::new(UnixMillis::new(NOW))
}

fn exact() -> StatsOptions {
    StatsOptions { exact: true, ..usual() }
}

/// Both layouts, a tree, orphans, unreadable rows, an unknown table.
fn mixed() -> Sample {
    let sample = Sample::both();
    sample.session("session", "ses_root", None, 3).session("session", "ses_child", Some("ses_root"), 40);
    sample.session("session", "ses_both", None, 400).session("session_v2", "ses_both", None, 2);
    sample.session("session_v2", "ses_new", None, 0).session("session", "ses_lost", Some("gone"), 10);
    sample
        .user("m1", "ses_root", 1)
        .assistant("m2", "ses_root", 2)
        .user("m3", "ses_root", 3)
        .assistant("m4", "ses_root", 4);
    sample.part("p1", "m2", "ses_root", &tool("bash", &"o".repeat(9000))).part(
        "p2",
        "m2",
        "ses_root",
        &reasoning("why"),
    );
    sample.part("p3", "m2", "ses_root", "not json").part("p4", "m4", "ses_root", &tool("bash", "newest"));
    sample.user("m5", "ses_child", 1).assistant("m6", "ses_child", 2).user("m7", "ses_child", 3);
    sample.part("p5", "m6", "ses_child", &tool("read", "result")).part(
        "p6",
        "m6",
        "ses_child",
        &text("answer"),
    );
    sample.user("m8", "ses_both", 1).part("p7", "m8", "ses_both", &text("old copy"));
    sample.row("r1", "ses_both", 1, "user", &json!({"time": {"created": 1}, "text": "new copy"}));
    sample.row("r2", "ses_new", 1, "idle", &json!({"time": {"created": 1}}));
    for at in 0..3 {
        let data = json!({"info": {"id": "m1", "text": "z".repeat(100 + at)}}).to_string();
        sample.event("ses_root", "message.updated.1", &data).event("ses_gone", "message.updated.1", &data);
    }
    sample.part("p8", "nowhere", "ses_orphan", &text("orphan"));
    // Names no session at all: reached by no walk over sessions, and still counted.
    sample.sql("INSERT INTO part VALUES ('p9', 'm1', x'00', 0, 0, 'blob session')");
    sample.sql("CREATE TABLE notes (body TEXT); INSERT INTO notes VALUES ('four'), ('more!')");
    sample
}

#[test]
fn rows_and_bytes_add_up_to_what_the_tables_hold() {
    let sample = mixed();
    let report = stats(&sample, &usual());
    for table in ["event", "message", "part", "session_message"] {
        let sql = format!("SELECT count(*), sum(octet_length(data)) FROM {table}");
        let held: (i64, i64) = sample.db.query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let found = report.tables.iter().find(|figures| figures.name == table).unwrap();
        assert_eq!(
            (found.rows, found.bytes.unwrap().get()),
            (held.0.cast_unsigned(), held.1.cast_unsigned()),
            "{table}"
        );
    }
    let sum = |groups: &[super::Group]| {
        groups.iter().map(|group| (group.rows, group.bytes.get())).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    };
    let table = |name: &str| {
        report
            .tables
            .iter()
            .find(|figures| figures.name == name)
            .map(|found| (found.rows, found.bytes.unwrap().get()))
            .unwrap()
    };
    assert_eq!(sum(&report.event_types), table("event"));
    assert_eq!(sum(&report.roles), table("message"));
    assert_eq!(sum(&report.message_types), table("session_message"));
    // The part that no session reaches has no kind.
    let missed = "blob session".len() as u64;
    let kinds = sum(&report.part_kinds);
    assert_eq!((kinds.0 + 1, kinds.1 + missed), table("part"));
    assert_eq!(
        report.tools.iter().map(|tool| (tool.name.as_str(), tool.rows)).collect::<Vec<_>>(),
        [("bash", 2), ("read", 1)]
    );
    assert_eq!(
        report.unreadable.iter().map(|group| (group.name.as_str(), group.rows)).collect::<Vec<_>>(),
        [("part", 2)]
    );
    assert_eq!(report.unknown_tables, ["notes"]);
    let notes = report.tables.iter().find(|figures| figures.name == "notes").unwrap();
    assert_eq!((notes.rows, notes.bytes.unwrap().get(), notes.is_known), (2, 9, false));
}

#[test]
fn sessions_are_counted_once_and_rows_without_one_are_named() {
    let report = stats(&mixed(), &usual());
    let count = report.session_count;
    assert_eq!((count.total, count.v1_only, count.v2_only, count.both), (5, 3, 1, 1));
    assert_eq!((count.trees, count.in_broken_trees), (4, 1));
    let both = report.sessions.iter().find(|session| session.id == "ses_both").unwrap();
    assert_eq!(both.held_by, HeldBy::Both);
    assert_eq!(
        count.twice_stored_bytes.get() + both.own.event_bytes.get(),
        both.own.bytes().get() - r#"{"time":{"created":1},"text":"new copy"}"#.len() as u64
    );
    let recoverable = report.recoverable;
    assert_eq!((recoverable.sessions, recoverable.rows), (1, 3));
    let orphans: Vec<_> =
        report.without_session.iter().map(|group| (group.name.as_str(), group.rows)).collect();
    assert_eq!(orphans, [("event", 3), ("part", 1)]);
    let root = report.sessions.iter().find(|session| session.id == "ses_root").unwrap();
    let child = report.sessions.iter().find(|session| session.id == "ses_child").unwrap();
    assert_eq!(root.with_tree.bytes(), root.own.bytes() + child.own.bytes());
    assert_eq!(child.with_tree, child.own);
    assert_eq!(root.title.as_deref(), Some("ses_root"));
    assert_eq!(
        report.projects.iter().map(|project| (project.id.as_str(), project.sessions)).collect::<Vec<_>>(),
        [("prj_a", 5)]
    );
    let ages: Vec<_> = report
        .ages
        .iter()
        .filter(|ages| ages.trees > 0)
        .map(|ages| (ages.age, ages.trees, ages.sessions))
        .collect();
    assert_eq!(ages, [(Age::Day, 1, 1), (Age::Week, 2, 3), (Age::Month, 1, 1)]);
}

#[test]
fn the_largest_rows_are_named() {
    let report = stats(&mixed(), &StatsOptions { largest_max: 2, sessions_max: 1, ..usual() });
    let rows: Vec<_> =
        report.largest_rows.iter().map(|row| (row.table, row.id.as_deref(), row.session.as_str())).collect();
    assert_eq!(rows[0], ("part", Some("p1"), "ses_root"));
    assert_eq!((rows.len(), report.sessions.len()), (2, 1));
    assert!(report.largest_rows[0].bytes > report.largest_rows[1].bytes);
}

#[test]
fn classes_are_judged_alone_and_bounds_are_marked() {
    let sample = mixed();
    let metadata = tool_with(
        "bash",
        &"o".repeat(9000),
        &json!({"output": "o".repeat(8000)}),
        &json!({"start": 1, "end": 2}),
    );
    sample.part("p10", "m6", "ses_child", &metadata);
    let class = |report: &StatsReport, class| {
        report.classes.iter().find(|figures| figures.class == class).unwrap().total.clone()
    };
    let usual = stats(&sample, &usual());
    let exact = stats(&sample, &exact());
    assert_eq!(class(&usual, Class::SupersededEvents).rows_dropped, 2);
    // An unreadable part keeps the events of ses_root; the other sessions have none.
    assert_eq!(class(&usual, Class::Events).rows_dropped, 0);
    // ses_root keeps its technical parts for the same reason; p5 and p10 go.
    assert_eq!(class(&usual, Class::Technical).rows_dropped, 2);
    assert_eq!(class(&usual, Class::Metadata).precision, Precision::UpperBound);
    let found = class(&exact, Class::Metadata);
    assert_eq!((found.precision, found.rows_rewritten), (Precision::Exact, 1));
    assert!(found.bytes.get() >= 8000 && found.bytes <= class(&usual, Class::Metadata).bytes);
    assert!(usual.classes.iter().all(|figures| figures.class != Class::Sessions));
    assert_eq!(usual.classes.len(), 8);
}

#[test]
fn an_empty_database_has_figures_too() {
    let report = stats(&Sample::v2(), &usual());
    assert_eq!(report.session_count.total, 0);
    assert!(report.largest_rows.is_empty() && report.sessions.is_empty() && report.event_types.is_empty());
    assert!(
        report.database.page_count > 0
            && report.database.bytes.get() == report.database.page_count * report.database.page_size
    );
    assert_eq!(report.database.log.state, LogState::None);
    assert!(report.classes.iter().all(|figures| figures.total.bytes.is_zero()));
}

#[test]
fn index_pages_are_those_of_dbstat_and_exact_adds_those_of_tables() {
    let sample = mixed();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    sample.db.execute("VACUUM INTO ?1", [path.to_str().unwrap()]).unwrap();
    let database = ReadDatabase::open(&path).unwrap();
    let report = compute(&database, &exact(), &Unobserved).unwrap();
    let indexes: u64 = report.indexes.iter().map(|index| index.page_bytes.unwrap().get()).sum();
    let tables: u64 = report.tables.iter().map(|table| table.page_bytes.unwrap().get()).sum();
    // The schema table is the one b-tree that is neither.
    let schema: i64 = database
        .connection()
        .query_row("SELECT sum(pgsize) FROM dbstat WHERE name = 'sqlite_schema'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(
        indexes + tables + schema.cast_unsigned(),
        report.database.bytes.get() - report.database.free_bytes.get()
    );
}
