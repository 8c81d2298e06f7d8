//! Rows that are larger than what a command may hold.

use std::process::Command;

use headwater_testkit::measure;

use super::*;

/// The environment variable that makes [`child_entry`] search.
const DATABASE: &str = "HEADWATER_TEST_SEARCH_DATABASE";

const MIB: u64 = 1 << 20;

/// A 2.x message of 48 MiB, which held once beside the rest would be more than 64 MiB: a long text that ends with a match, and a
/// short one. SQLite makes the long one.
fn huge(db: &Fixture) {
    let data = v2::assistant(&[v2::reasoning("LONG The Needle is here"), v2::text("a needle")]);
    db.session_v2(&Session::named("ses_a"));
    db.session_message("msg_a", "ses_a", "assistant", 1, NOW, &data);
    let repeated = "replace(hex(zeroblob(2796203)), '00', '0123456789 数据 ')";
    db.sql(&format!("UPDATE session_message SET data = replace(data, 'LONG', {repeated})"));
    assert!(db.integer("SELECT octet_length(data) FROM session_message") > 48 << 20);
}

#[test]
fn a_huge_row_is_searched_in_bounded_memory() {
    let (_folder, path) = built(Layout::V2, huge);
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "search::tests::memory::child_entry", "--nocapture"]).env(DATABASE, &path);
    let measured = measure::run(&mut child);
    assert!(measured.output.status.success(), "{}", String::from_utf8_lossy(&measured.output.stderr));
    let printed = String::from_utf8_lossy(&measured.output.stdout);
    assert!(printed.contains("found 2"), "{printed}");
    assert!(measured.peak_bytes < 64 * MIB, "{} MiB", measured.peak_bytes / MIB);
}

#[test]
fn child_entry() {
    let Some(path) = std::env::var_os(DATABASE) else { return };
    let (hits, _) = search(path.as_ref(), "NEEDLE", &everything());
    let place: Vec<_> = hits.iter().map(|hit| (hit.part_index, hit.field, hit.occurrences)).collect();
    assert_eq!(place, [(Some(0), Field::Reasoning, 1), (Some(1), Field::Text, 1)]);
    assert!(hits[0].excerpt.text.contains("The Needle is here"));
    println!("found {}", hits.len());
}

#[test]
fn a_match_at_every_joint_of_chunks_is_found() {
    let (_folder, path) = built(Layout::ReducedV1, |db| {
        db.session(&Session::named("ses_a"));
        db.user("msg_a", "ses_a");
        let chunk = label::CHUNK_BYTES;
        // Larger than what is read whole, with the word around the end of the first chunk.
        for shift in 0..12 {
            let before = "x".repeat(chunk - 32 + shift);
            let data = part::text(&format!("{before}圧Needle縮{}", "y".repeat(4 << 20)));
            db.part(&format!("prt_{shift:02}"), "msg_a", "ses_a", &data);
        }
    });
    let (hits, totals) = search(&path, "圧nEEDLE縮", &SearchOptions::default());
    assert_eq!(hits.len(), 12);
    assert!(hits.iter().all(|hit| hit.occurrences == 1 && hit.excerpt.text.contains("圧Needle縮")));
    assert_eq!(totals.rows_unreadable, 0);
}

#[test]
fn a_huge_row_that_is_damaged_is_counted() {
    let (_folder, path) = built(Layout::ReducedV1, |db| {
        db.session(&Session::named("ses_a"));
        db.user("msg_a", "ses_a");
        let data = part::text(&format!("needle{}", "y".repeat(5 << 20)));
        db.part("prt_a", "msg_a", "ses_a", &data[..data.len() - 1]);
        db.part("prt_b", "msg_a", "ses_a", &part::text("needle"));
    });
    let (hits, totals) = search(&path, "needle", &SearchOptions::default());
    assert_eq!((hits.len(), totals.rows_unreadable), (1, 1));
}
