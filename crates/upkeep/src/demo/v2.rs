//! Sessions as OpenCode 2.x writes them: a row of `session_v2`, and one row of `session_message` for each message (fact B2).

use rusqlite::Transaction;

use super::story::{Session, Step, Turn};
use super::values::{Maker, Object};

pub(super) fn write(db: &Transaction<'_>, session: &Session<'_>, maker: &mut Maker) -> rusqlite::Result<()> {
    let mut writer = Writer { db, session, maker, seq: 3 };
    writer.session_row()?;
    for round in 0..session.story.rounds {
        if session.story.is_compacted && round + 1 == session.story.rounds {
            writer.compaction()?;
        }
        for turn in session.story.turns {
            writer.turn(turn)?;
        }
    }
    // A migrated session keeps the counter that 1.x began.
    db.prepare_cached(
        "INSERT INTO event_sequence (aggregate_id, seq) VALUES (?1, ?2) \
         ON CONFLICT (aggregate_id) DO UPDATE SET seq = max(seq, excluded.seq)",
    )?
    .execute((session.id, writer.seq))?;
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
                "INSERT INTO session_v2 (id, project_id, parent_id, slug, directory, path, title, version, agent, \
                 time_created, time_updated, time_idle, idle_outcome) \
                 VALUES (?1, ?2, ?3, ?4, ?5, '', ?6, '2.0.26', 'build', ?7, ?7, ?7, 'succeeded')",
            )?
            .execute((
                id,
                project.id,
                parent,
                format!("slug-{}", &id[id.len() - 6..]),
                project.directory,
                story.title,
                start.get(),
            ))?;
        Ok(())
    }

    fn turn(&mut self, turn: &Turn) -> rusqlite::Result<()> {
        let time = self.created();
        let data = Object::new().nest("time", &time).with("text", turn.ask).list("files", &[]);
        self.row("user", &data, 1)?;
        for step in turn.steps {
            let thought = self.reasoning();
            let tool = self.tool(*step);
            let data = self.assistant(&[thought, tool], "tool-calls");
            self.row("assistant", &data, 9)?;
        }
        let content = [self.reasoning(), Object::new().with("type", "text").with("text", turn.answer)];
        let data = self.assistant(&content, "stop");
        self.row("assistant", &data, 9)?;
        let idle = Object::new().nest("time", &self.created()).with("outcome", "succeeded");
        self.row("idle", &idle, 5)
    }

    fn compaction(&mut self) -> rusqlite::Result<()> {
        let summary = format!("Goal: {}. {}", self.session.story.title, self.maker.prose(900));
        let data = Object::new()
            .nest("time", &self.created())
            .with("status", "completed")
            .with("reason", "auto")
            .with("summary", summary)
            .with("recent", self.maker.prose(200));
        self.row("compaction", &data, 4)
    }

    fn reasoning(&mut self) -> Object {
        let time = self.created().with("completed", self.maker.tick());
        Object::new()
            .with("type", "reasoning")
            .with("text", self.maker.prose(700))
            .nest("native", &Object::new().with("reasoningField", "reasoning_content"))
            .nest("time", &time)
    }

    fn tool(&mut self, step: Step) -> Object {
        let (name, input, output, metadata) = match step {
            Step::Run(command, bytes) => {
                let metadata = Object::new().with("truncated", false).with("exit", 0);
                ("shell", Object::new().with("command", command), self.maker.output(bytes), metadata)
            }
            Step::Read(file, bytes) => {
                let metadata = Object::new().with("truncated", false);
                ("read", Object::new().with("path", file), self.maker.patch(file, bytes), metadata)
            }
            Step::Edit(file, bytes) => {
                let metadata = Object::new().with("diff", self.maker.patch(file, bytes));
                ("edit", Object::new().with("path", file), "Edit applied.".to_owned(), metadata)
            }
        };
        let state = Object::new()
            .with("status", "completed")
            .nest("input", &input)
            .list("content", &[Object::new().with("type", "text").with("text", output)])
            .nest("metadata", &metadata);
        let time = self.created().with("ran", self.maker.tick()).with("completed", self.maker.tick());
        Object::new()
            .with("type", "tool")
            .with("id", self.maker.id("call"))
            .with("name", name)
            .with("executed", false)
            .nest("state", &state)
            .nest("time", &time)
    }

    fn assistant(&mut self, content: &[Object], finish: &str) -> Object {
        let time = self.created().with("streamed", self.maker.tick()).with("completed", self.maker.tick());
        let cache = Object::new().with("read", 4000).with("write", 0);
        let tokens =
            Object::new().with("input", 5000).with("output", 300).with("reasoning", 90).nest("cache", &cache);
        Object::new()
            .nest("time", &time)
            .with("agent", "build")
            .nest("model", &Object::new().with("id", "m1").with("providerID", "example"))
            .list("content", content)
            .with("finish", finish)
            .with("cost", 0.0123)
            .nest("tokens", &tokens)
    }

    fn created(&mut self) -> Object {
        Object::new().with("created", self.maker.tick())
    }

    fn row(&mut self, kind: &str, data: &Object, gap: i64) -> rusqlite::Result<()> {
        self.seq += gap;
        self.db
            .prepare_cached(
                "INSERT INTO session_message (id, session_id, type, seq, time_created, time_updated, data) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6)",
            )?
            .execute((
                self.maker.id("msg"),
                self.session.id,
                kind,
                self.seq,
                self.maker.tick(),
                data.json(),
            ))?;
        Ok(())
    }
}
