//! A retention run that is killed: what is committed stays, the next run does the rest, and no message has two receipts.

use std::process::Stdio;

use headwater_prune::Class;

use super::begun::{is_of_events, rich};
use super::*;
use crate::fixture::killed::Killed;
use crate::fixture::test_process;
use crate::retention::{self, Policy};

const DATABASE: &str = "HEADWATER_TEST_RUN_DATABASE";
const STEP: &str = "HEADWATER_TEST_RUN_STEP";

fn run(path: &Path, observer: &dyn Observer) {
    let policy = Policy::load(&path.with_file_name("retention.toml")).unwrap();
    let database = WriteDatabase::open(path, Duration::ZERO).unwrap();
    let mut state = StateFile::open(&state_path(path)).unwrap();
    let (options, now) = (PruneOptions::batch(), UnixMillis::new(NOW + 10 * 86_400_000));
    retention::run(&database, &mut state, &policy, &NoServers, options, now, observer, |_| {}).unwrap();
}

/// The process that runs the policy and is killed; passes at once when run as an ordinary test.
#[test]
fn killed_process_entry() {
    let Some(path) = std::env::var_os(DATABASE).map(PathBuf::from) else { return };
    run(&path, &Killed(std::env::var(STEP).unwrap()));
}

/// How many receipts there are once open intents are resolved, which the next prune does before anything else.
fn receipts_resolved(path: &Path) -> u64 {
    let nothing = PruneRequest {
        session: session(),
        message: MessageId::new("msg_2").unwrap(),
        indexes: Indexes::new([0]).unwrap(),
        revision: headwater_model::ContentRevision::from_bytes([0; 32]),
    };
    if Fixture::reopen(path).integer("SELECT count(*) FROM sqlite_schema WHERE name = 'message'") > 0 {
        blocked(prune(path, &nothing));
    }
    receipts(path)
}

/// A database with a policy for `class` whose preview has been made.
fn scene(folder: &Path, class: Class, layout: Layout) -> PathBuf {
    let path = rich(folder, layout, is_of_events(class));
    let text = format!("enabled = true\nolder_than = \"1d\"\nclasses = [\"{class}\"]\n");
    std::fs::write(folder.join("retention.toml"), text).unwrap();
    run(&path, &Unobserved);
    path
}

#[test]
fn a_retention_run_that_is_killed_leaves_what_it_committed_and_the_next_one_does_the_rest() {
    use std::os::unix::process::ExitStatusExt;
    for class in [Class::Technical, Class::Metadata, Class::Events, Class::Sessions] {
        for layout in [Layout::V1, Layout::V2] {
            let expected = {
                let folder = tempfile::tempdir().unwrap();
                let path = scene(folder.path(), class, layout);
                run(&path, &Unobserved);
                (dump(&path), receipts(&path))
            };
            for step in [Step::Asked, Step::Committed, Step::Durable] {
                let folder = tempfile::tempdir().unwrap();
                let path = scene(folder.path(), class, layout);
                let before = dump(&path);
                let status = test_process("prune::tests::killed_run::killed_process_entry")
                    .env(DATABASE, &path)
                    .env(STEP, step.name())
                    .stdout(Stdio::null())
                    .status()
                    .unwrap();
                let has_step = step != Step::Durable || class == Class::Technical;
                assert_eq!(status.signal(), has_step.then_some(9), "{class} {layout:?} {step:?}");
                let is_done = step != Step::Asked;
                assert_eq!(dump(&path) != before, is_done, "{class} {layout:?} {step:?}");
                run(&path, &Unobserved);
                assert!((dump(&path), receipts_resolved(&path)) == expected, "{class} {layout:?} {step:?}");
            }
        }
    }
}
