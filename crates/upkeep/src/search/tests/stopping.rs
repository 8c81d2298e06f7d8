//! Order, limits, and ends before the end.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::observer::Observer;

/// Sessions of 700 rows each, so that every table takes several units; each row says its number.
fn numbered() -> (TempDir, std::path::PathBuf) {
    built(Layout::ReducedBoth, |db| {
        db.transaction(|db| {
            for session in ["ses_a", "ses_b"] {
                db.session(&Session::named(session));
                db.user(&format!("msg_{session}"), session);
                for n in 0..700 {
                    let id = format!("prt_{session}_{n:04}");
                    db.part(&id, &format!("msg_{session}"), session, &part::text(&format!("needle {n}")));
                }
            }
            db.session_v2(&Session::named("ses_c"));
            for n in 0..700 {
                let data = v2::assistant(&[v2::text(&format!("needle {n}"))]);
                db.session_message(&format!("smg_{n:04}"), "ses_c", "assistant", n, NOW, &data);
            }
        });
    })
}

fn names(hits: &[Hit]) -> Vec<String> {
    hits.iter().map(|hit| hit.part.clone().or(hit.message.clone()).unwrap()).collect()
}

#[test]
fn results_come_in_one_order_every_time() {
    let (_folder, path) = numbered();
    let options = SearchOptions { oldest_first: true, ..SearchOptions::default() };
    let (hits, totals) = search(&path, "needle", &options);
    let mut expected: Vec<String> = (0..700).map(|n| format!("smg_{n:04}")).collect();
    for session in ["ses_a", "ses_b"] {
        expected.extend((0..700).map(|n| format!("prt_{session}_{n:04}")));
    }
    assert_eq!(names(&hits), expected);
    assert_eq!((totals.hits, totals.is_limited, totals.is_cancelled), (2100, false, false));
    for _ in 0..5 {
        assert_eq!(search(&path, "needle", &options), (hits.clone(), totals));
    }
}

#[test]
fn a_limit_gives_the_first_hits_and_says_that_there_are_more() {
    let (_folder, path) = numbered();
    for oldest_first in [true, false] {
        let all = search(&path, "needle", &SearchOptions { oldest_first, ..SearchOptions::default() }).0;
        for limit in [0, 1, 700, 701, 2099, 2100, 5000] {
            let options = SearchOptions { oldest_first, limit: Some(limit), ..SearchOptions::default() };
            let (hits, totals) = search(&path, "needle", &options);
            let expected = &all[..usize::try_from(limit).unwrap().min(2100)];
            assert_eq!(names(&hits), names(expected), "{limit}");
            assert_eq!(totals.is_limited, limit < 2100, "{limit}");
        }
    }
}

#[test]
fn only_the_named_sessions_are_searched() {
    let (_folder, path) = numbered();
    let sessions = ["ses_c", "ses_b"].map(|id| SessionId::new(id).unwrap()).to_vec();
    let options = SearchOptions { oldest_first: true, sessions, ..SearchOptions::default() };
    let (hits, totals) = search(&path, "needle", &options);
    let mut expected: Vec<String> = (0..700).map(|n| format!("smg_{n:04}")).collect();
    expected.extend((0..700).map(|n| format!("prt_ses_b_{n:04}")));
    assert_eq!(names(&hits), expected);
    assert_eq!(totals.rows_scanned, 1400 + 3, "titles and one message besides");
}

/// Cancels when told to.
#[derive(Default)]
struct Cancel(AtomicBool);

impl Observer for Cancel {
    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

#[test]
fn a_cancelled_search_ends_and_says_so() {
    let (_folder, path) = numbered();
    let database = ReadDatabase::open(&path).unwrap();
    let query = Query::new("needle").unwrap();
    for after in [0, 1, 900] {
        let cancel = Cancel::default();
        cancel.0.store(after == 0, Ordering::SeqCst);
        let mut seen = 0;
        let totals = run(&database, &query, &SearchOptions::default(), &cancel, &mut |_| {
            seen += 1;
            cancel.0.fetch_or(seen == after, Ordering::SeqCst);
            ControlFlow::Continue(())
        })
        .unwrap();
        assert!(totals.is_cancelled, "{after}");
        assert_eq!(seen, after, "no hit after that");
        let mut seen = 0;
        let totals = run(&database, &query, &SearchOptions::default(), &Unobserved, &mut |_| {
            seen += 1;
            if seen > after { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
        assert_eq!((totals.is_cancelled, seen), (true, after + 1));
    }
}

#[test]
fn damage_in_the_middle_is_an_error_and_not_an_end() {
    let (_folder, path) = numbered();
    let pages = std::fs::metadata(&path).unwrap().len() / 4096;
    let mut bytes = std::fs::read(&path).unwrap();
    for page in pages / 2..pages {
        let at = usize::try_from(page * 4096).unwrap();
        bytes[at..at + 4096].fill(0xa5);
    }
    std::fs::write(&path, bytes).unwrap();
    let database = ReadDatabase::open(&path).unwrap();
    let query = Query::new("needle").unwrap();
    let error =
        run(&database, &query, &SearchOptions::default(), &Unobserved, &mut |_| ControlFlow::Continue(()));
    assert!(matches!(error, Err(ReadError::Damaged(_))), "{error:?}");
}
