//! What the tests of prune and undo share: one message in each storage, and how it is pruned.

use std::path::{Path, PathBuf};
use std::time::Duration;

use headwater_model::{MessageId, SessionId, UnixMillis};
use headwater_prune::{Indexes, PruneReceipt, PruneRequest};
use headwater_testkit::fixture::{Fixture, Layout, NOW, Session, part, v2};

use super::*;
use crate::WriteDatabase;
use crate::fence::{NoServers, Storage};
use crate::observer::{Observer, Unobserved};
use crate::state::{DatabaseIdentity, StateFile};
use crate::undo::Archive;

/// The storages, with the layout of a file that has them.
pub(crate) const STORAGES: [(Storage, Layout); 4] = [
    (Storage::V1, Layout::V1),
    (Storage::V2, Layout::V2),
    (Storage::V2, Layout::ReducedV2),
    (Storage::V2OnV1Session, Layout::V1),
];

/// Builds `opencode.db` with the session `ses_a` and the message `msg_a`: reasoning (0), a tool (1), text (2), a tool (3).
pub(crate) fn build(folder: &Path, storage: Storage, layout: Layout) -> PathBuf {
    let db = Fixture::create(folder.join("opencode.db"), layout);
    let session = Session::named("ses_a");
    match storage {
        Storage::V1 => {
            db.session(&session);
            db.user("msg_0", "ses_a");
            db.part("prt_u", "msg_0", "ses_a", &part::text("please"));
            db.assistant("msg_a", "ses_a");
            db.part("prt_0", "msg_a", "ses_a", &part::reasoning("CANARY thought"));
            db.part("prt_1", "msg_a", "ses_a", &part::bash("call_1", &"CANARY out ".repeat(900)));
            db.part("prt_2", "msg_a", "ses_a", &part::text("CANARY answer"));
            db.part("prt_3", "msg_a", "ses_a", &part::bash("call_3", "CANARY more"));
        }
        Storage::V2 | Storage::V2OnV1Session => {
            if storage == Storage::V2 {
                db.session_v2(&session);
            } else {
                db.session(&session);
            }
            let content = [
                v2::reasoning("CANARY thought"),
                v2::tool("call_1", "bash", &"CANARY out ".repeat(900)),
                v2::text("CANARY answer"),
                v2::tool("call_3", "bash", "CANARY more"),
            ];
            db.session_message("msg_0", "ses_a", "user", 0, NOW, &v2::user("please"));
            db.session_message("msg_a", "ses_a", "assistant", 1, NOW, &v2::assistant(&content));
        }
    }
    db.close()
}

/// The stored rows of everything but receipts, one text.
pub(crate) fn dump(path: &Path) -> String {
    let db = Fixture::reopen(path);
    let mut text = String::new();
    for table in
        ["session", "session_v2", "message", "part", "session_message", "event", "event_sequence", "todo"]
    {
        if db.integer(&format!("SELECT count(*) FROM sqlite_schema WHERE name = '{table}'")) == 0 {
            continue;
        }
        let columns = db.text(&format!(
            "SELECT group_concat('quote(' || name || ')', '||'',''||') FROM pragma_table_info('{table}')"
        ));
        let rows = db.text(&format!("SELECT coalesce(group_concat({columns}, char(10)), '') FROM (SELECT * FROM {table} ORDER BY rowid)"));
        text.extend([table, ":\n", &rows, "\n"]);
    }
    text
}

pub(crate) fn session() -> SessionId {
    SessionId::new("ses_a").unwrap()
}

pub(crate) fn message() -> MessageId {
    MessageId::new("msg_a").unwrap()
}

pub(crate) fn preview(path: &Path) -> MessagePreview {
    let database = crate::ReadDatabase::open(path).unwrap();
    preview_message(database.connection(), database.schema(), &session(), &message()).unwrap().unwrap()
}

/// The request for `indexes` of the message as it is stored.
pub(crate) fn request(path: &Path, indexes: &[u32]) -> PruneRequest {
    PruneRequest {
        session: session(),
        message: message(),
        indexes: Indexes::new(indexes.iter().copied()).unwrap(),
        revision: preview(path).revision,
    }
}

/// Prunes at a minute after the last use.
pub(crate) fn prune(path: &Path, request: &PruneRequest) -> Answer {
    prune_observed(path, request, &Unobserved)
}

/// Prunes with an archive.
pub(crate) fn prune_into(path: &Path, request: &PruneRequest, archive: &Path) -> Answer {
    let database = WriteDatabase::open(path, Duration::ZERO).unwrap();
    let mut state = StateFile::open(&state_path(path)).unwrap();
    let identity = DatabaseIdentity::read(database.connection(), database.file()).unwrap();
    let mut archive = Archive::open(archive, &identity).unwrap();
    let now = UnixMillis::new(NOW + 60_000);
    Pruner::new(&database, &mut state, &NoServers, PruneOptions::immediate(), now, &Unobserved)
        .unwrap()
        .with_archive(&mut archive)
        .message(request, None)
        .unwrap()
}

pub(crate) fn prune_observed(path: &Path, request: &PruneRequest, observer: &dyn Observer) -> Answer {
    let database = WriteDatabase::open(path, Duration::ZERO).unwrap();
    let mut state = StateFile::open(&state_path(path)).unwrap();
    let now = UnixMillis::new(NOW + 60_000);
    Pruner::new(&database, &mut state, &NoServers, PruneOptions::immediate(), now, observer)
        .unwrap()
        .message(request, None)
        .unwrap()
}

pub(crate) fn state_path(database: &Path) -> PathBuf {
    database.with_file_name("receipts.db")
}

pub(crate) fn receipt(answer: Answer) -> PruneReceipt {
    match answer {
        Answer::Pruned(receipt) => receipt,
        Answer::Blocked(blocked) => panic!("{blocked}"),
    }
}

pub(crate) fn blocked(answer: Answer) -> (String, Why) {
    match answer {
        Answer::Pruned(receipt) => panic!("{receipt:?}"),
        Answer::Blocked(blocked) => (blocked.reason.code().to_owned(), blocked.why),
    }
}

/// How many receipts of done prunes are on record, wherever they are kept.
pub(crate) fn receipts(path: &Path) -> u64 {
    let db = Fixture::reopen(path);
    let in_kv = if db.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'kv'") == 0 {
        0
    } else {
        db.integer(&format!("SELECT count(*) FROM kv WHERE key LIKE '{KV_PREFIX}%'"))
    };
    let identity = {
        let file = crate::DatabaseFile::find(path).unwrap();
        DatabaseIdentity::read(db.connection(), &file).unwrap()
    };
    let mut state = StateFile::open(&state_path(path)).unwrap();
    let key = state.database(&identity).unwrap();
    u64::try_from(in_kv).unwrap() + state.receipt_count(key).unwrap()
}
