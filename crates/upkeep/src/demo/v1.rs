//! Sessions as OpenCode 1.18 writes them: rows of `session`, `message` and `part`, and an event row per change (facts A2 to A4).

use rusqlite::Transaction;

use super::story::{Layout, Session, Step, Turn};
use super::values::{Maker, Object};

pub(super) fn write(db: &Transaction<'_>, session: &Session<'_>, maker: &mut Maker) -> rusqlite::Result<()> {
    let mut writer = Writer { db, session, maker, seq: 0 };
    db.prepare_cached("INSERT INTO event_sequence (aggregate_id, seq) VALUES (?1, 0)")?
        .execute([session.id])?;
    writer.session_row()?;
    for round in 0..session.story.rounds {
        if session.story.is_compacted && round + 1 == session.story.rounds {
            writer.compaction()?;
        }
        for turn in session.story.turns {
            writer.turn(turn, round == 0)?;
        }
    }
    if session.story.layout == Layout::LeftOver {
        writer.event("session.deleted.1", &Object::new())?;
    }
    db.prepare_cached("UPDATE event_sequence SET seq = ?1 WHERE aggregate_id = ?2")?
        .execute((writer.seq - 1, session.id))?;
    Ok(())
}

struct Writer<'a> {
    db: &'a Transaction<'a>,
    session: &'a Session<'a>,
    maker: &'a mut Maker,
    seq: i64,
}

impl Writer<'_> {
    fn session_row(&mut self) -> rusqlite::Result<()> {
        let Session { id, parent, story, start } = self.session;
        let project = self.session.project();
        self.db
            .prepare_cached(
                "INSERT INTO session (id, project_id, parent_id, slug, directory, path, title, version, agent, \
                 time_created, time_updated, time_archived) VALUES (?1, ?2, ?3, ?4, ?5, '', ?6, '1.18.34', 'build', ?7, ?7, ?8)",
            )?
            .execute((
                id,
                project.id,
                parent,
                format!("slug-{}", &id[id.len() - 6..]),
                project.directory,
                story.title,
                start.get(),
                story.is_archived.then_some(start.get()),
            ))?;
        let info = Object::new().with("id", id).with("title", story.title);
        self.event("session.created.1", &Object::new().nest("info", &info))
    }

    fn turn(&mut self, turn: &Turn, is_first_round: bool) -> rusqlite::Result<()> {
        let user = self.user(turn)?;
        for (place, step) in turn.steps.iter().enumerate() {
            let message = self.maker.id("msg");
            let data = self.assistant(&user, "tool-calls");
            self.message_row(&message, &data, 2)?;
            let snapshot = self.maker.hash();
            self.part(&message, &Object::new().with("type", "step-start").with("snapshot", snapshot))?;
            let thought = self.maker.prose(700);
            let thought = timed_text("reasoning", &thought, self.maker);
            self.part(&message, &thought)?;
            self.tool(&message, *step, is_first_round && place == 0)?;
            self.part(&message, &step_finish("tool-calls"))?;
        }
        let message = self.maker.id("msg");
        let data = self.assistant(&user, "stop");
        self.message_row(&message, &data, 2)?;
        let answer = timed_text("text", turn.answer, self.maker);
        self.part(&message, &answer)?;
        self.part(&message, &step_finish("stop"))
    }

    /// The question. Its row holds the whole patch of every file that the turn changed, and is written again with each summary.
    fn user(&mut self, turn: &Turn) -> rusqlite::Result<String> {
        let id = self.maker.id("msg");
        let diffs: Vec<_> = turn
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::Edit(file, bytes) => Some(
                    Object::new()
                        .with("file", file)
                        .with("patch", self.maker.patch(file, *bytes))
                        .with("additions", 12)
                        .with("deletions", 7)
                        .with("status", "modified"),
                ),
                Step::Run(..) | Step::Read(..) => None,
            })
            .collect();
        let data = Object::new()
            .with("role", "user")
            .nest("time", &Object::new().with("created", self.maker.tick()))
            .with("agent", "build")
            .nest("model", &Object::new().with("providerID", "example").with("modelID", "m1"))
            .nest("summary", &Object::new().list("diffs", &diffs));
        self.message_row(&id, &data, 2 + turn.steps.len())?;
        self.part(&id, &Object::new().with("type", "text").with("text", turn.ask))?;
        Ok(id)
    }

    fn tool(&mut self, message: &str, step: Step, has_attachment: bool) -> rusqlite::Result<()> {
        let id = self.maker.id("prt");
        let (tool, title, input, output, metadata) = match step {
            Step::Run(command, bytes) => {
                let output = self.maker.output(bytes);
                let metadata = Object::new().with("output", &output).with("exit", 0);
                ("bash", command, Object::new().with("command", command), output, metadata)
            }
            Step::Read(file, bytes) => {
                let output = self.maker.patch(file, bytes);
                let metadata = Object::new().with("preview", &output).with("truncated", false);
                ("read", file, Object::new().with("filePath", file), output, metadata)
            }
            Step::Edit(file, bytes) => {
                let metadata = Object::new().with("diff", self.maker.patch(file, bytes));
                ("edit", file, Object::new().with("filePath", file), "Edit applied.".to_owned(), metadata)
            }
        };
        let call =
            Object::new().with("type", "tool").with("callID", self.maker.id("call")).with("tool", tool);
        let started = self.maker.tick();
        let running = |shown: &Object| {
            let time = Object::new().with("start", started);
            Object::new()
                .with("status", "running")
                .nest("input", &input)
                .nest("metadata", shown)
                .nest("time", &time)
        };
        let mut time = Object::new().with("start", started).with("end", self.maker.tick());
        // In a compacted session OpenCode marks old output as cleared and keeps the bytes.
        if self.session.story.is_compacted && matches!(step, Step::Read(..)) {
            time = time.with("compacted", self.maker.tick());
        }
        let mut done = Object::new()
            .with("status", "completed")
            .nest("input", &input)
            .with("output", &output)
            .with("title", title)
            .nest("metadata", &metadata)
            .nest("time", &time);
        if has_attachment {
            let url = format!("data:image/png;base64,{}", self.maker.base64(6_000));
            let file = Object::new().with("type", "file").with("mime", "image/png").with("url", url);
            done = done.list("attachments", &[file]);
        }
        let pending = Object::new().with("status", "pending").nest("input", &Object::new()).with("raw", "");
        self.part_event(message, &id, &call.clone().nest("state", &pending))?;
        self.part_event(message, &id, &call.clone().nest("state", &running(&Object::new())))?;
        if matches!(step, Step::Run(..)) {
            // The growing preview of a command that still runs.
            let half = &output[..output.floor_char_boundary(output.len() / 2)];
            self.part_event(
                message,
                &id,
                &call.clone().nest("state", &running(&Object::new().with("output", half))),
            )?;
            self.part_event(message, &id, &call.clone().nest("state", &running(&metadata)))?;
        }
        self.part_row(message, &id, &call.nest("state", &done))
    }

    fn compaction(&mut self) -> rusqlite::Result<()> {
        let user = self.maker.id("msg");
        let data = Object::new()
            .with("role", "user")
            .nest("time", &Object::new().with("created", self.maker.tick()))
            .with("agent", "build")
            .nest("model", &Object::new().with("providerID", "example").with("modelID", "m1"));
        self.message_row(&user, &data, 1)?;
        self.part(
            &user,
            &Object::new().with("type", "compaction").with("auto", true).with("overflow", false),
        )?;
        let summary = self.maker.id("msg");
        let data = self.assistant(&user, "stop").with("summary", true);
        self.message_row(&summary, &data, 2)?;
        let text = format!("Goal: {}. {}", self.session.story.title, self.maker.prose(900));
        let part = timed_text("text", &text, self.maker);
        self.part(&summary, &part)
    }

    fn assistant(&mut self, user: &str, finish: &str) -> Object {
        let directory = self.session.project().directory;
        let time =
            Object::new().with("created", self.maker.tick()).with("completed", self.maker.tick() + 1500);
        let cache = Object::new().with("read", 4000).with("write", 0);
        let tokens =
            Object::new().with("input", 5000).with("output", 300).with("reasoning", 90).nest("cache", &cache);
        Object::new()
            .with("role", "assistant")
            .nest("time", &time)
            .with("parentID", user)
            .with("mode", "build")
            .with("agent", "build")
            .nest("path", &Object::new().with("cwd", directory).with("root", directory))
            .with("cost", 0.0123)
            .nest("tokens", &tokens)
            .with("modelID", "m1")
            .with("providerID", "example")
            .with("finish", finish)
    }

    fn message_row(&mut self, id: &str, data: &Object, copies: usize) -> rusqlite::Result<()> {
        let info = Object::new().with("id", id).with("sessionID", self.session.id).and(data);
        for _ in 0..copies {
            self.event("message.updated.1", &Object::new().nest("info", &info))?;
        }
        self.db
            .prepare_cached(
                "INSERT INTO message (id, session_id, time_created, time_updated, data) VALUES (?1, ?2, ?3, ?3, ?4)",
            )?
            .execute((id, self.session.id, self.maker.tick(), data.json()))?;
        Ok(())
    }

    /// A part that is written twice: when it begins and when it is whole.
    fn part(&mut self, message: &str, data: &Object) -> rusqlite::Result<()> {
        let id = self.maker.id("prt");
        self.part_event(message, &id, data)?;
        self.part_row(message, &id, data)
    }

    fn part_row(&mut self, message: &str, id: &str, data: &Object) -> rusqlite::Result<()> {
        self.part_event(message, id, data)?;
        self.db
            .prepare_cached(
                "INSERT INTO part (id, message_id, session_id, time_created, time_updated, data) \
                 VALUES (?1, ?2, ?3, ?4, ?4, ?5)",
            )?
            .execute((id, message, self.session.id, self.maker.tick(), data.json()))?;
        Ok(())
    }

    fn part_event(&mut self, message: &str, id: &str, data: &Object) -> rusqlite::Result<()> {
        let ids = Object::new().with("id", id).with("sessionID", self.session.id).with("messageID", message);
        let time = self.maker.tick();
        self.event("message.part.updated.1", &Object::new().nest("part", &ids.and(data)).with("time", time))
    }

    fn event(&mut self, kind: &str, members: &Object) -> rusqlite::Result<()> {
        let data = Object::new().with("sessionID", self.session.id).and(members);
        self.db
            .prepare_cached(
                "INSERT INTO event (id, aggregate_id, seq, type, data) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute((self.maker.id("evt"), self.session.id, self.seq, kind, data.json()))?;
        self.seq += 1;
        Ok(())
    }
}

fn timed_text(kind: &str, text: &str, maker: &mut Maker) -> Object {
    let time = Object::new().with("start", maker.tick()).with("end", maker.tick());
    Object::new().with("type", kind).with("text", text).nest("time", &time)
}

fn step_finish(reason: &str) -> Object {
    let cache = Object::new().with("read", 4000).with("write", 0);
    let tokens =
        Object::new().with("input", 5000).with("output", 300).with("reasoning", 90).nest("cache", &cache);
    Object::new()
        .with("type", "step-finish")
        .with("reason", reason)
        .with("cost", 0.0123)
        .nest("tokens", &tokens)
}
