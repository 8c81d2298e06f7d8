//! What each writer does, chosen before any of them begins.

use headwater_model::conversation::{Author, Receipt};
use headwater_model::{SessionId, TaskId};

use super::{OTHERS, WRITERS};
use crate::conformance::laws::scene;
use crate::conformance::{Choices, Fixture};
use crate::{Batch, ConversationWriter, MessagePatch, MetadataChange, Mutation, NewMessage, NewSession};

/// Sessions that only the store writes.
pub(super) const QUIET: [&str; 3] = ["q-1", "Q2", "q10"];

/// Sessions that other programs write too.
const LOUD: [&str; 3] = ["l-1", "L2", "l10"];

/// Batches of one writer.
const BATCHES: usize = 36;

/// Statements of one other program.
const STATEMENTS: usize = 24;

/// Sessions that will be removed: by the store, with their task, with their workspace, by another program.
const DOOMED: [&str; 12] = ["d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9", "d10", "d11"];

/// What a writer does next.
pub(super) enum Planned {
    Write(Batch),
    DeleteSession(SessionId),
}

/// Adds all sessions, each with a turn of its name; each of the doomed has a task and a workspace of its own.
pub(super) async fn set_up<F: Fixture>(fixture: &F) -> Vec<Receipt> {
    let now = "'2026-01-01 00:00:00'";
    let mut receipts = Vec::new();
    for id in QUIET.into_iter().chain(LOUD).chain(DOOMED) {
        let task = if DOOMED.contains(&id) { format!("task-{id}") } else { "task".to_owned() };
        let task = TaskId::new(task).expect("an id");
        fixture.create_task(&task).await;
        let new = NewSession {
            id: scene::session(id),
            task: task.clone(),
            name: String::new(),
            at: scene::time(0),
        };
        fixture.store().create_session(new).await.expect("a session");
        receipts.extend(
            scene::apply(fixture, id, 0, vec![Mutation::CreateTurn(scene::new_turn(id))])
                .await
                .expect("a turn"),
        );
        if DOOMED.contains(&id) {
            let workspace = "INSERT INTO workspaces (id, created_at, updated_at) VALUES";
            fixture.execute(&format!("{workspace} ('w-{id}', {now}, {now})")).await;
            fixture.execute(&format!("UPDATE tasks SET workspace_id = 'w-{id}' WHERE id = '{task}'")).await;
        }
    }
    receipts
}

/// Makes plans.
pub(super) struct Scene {
    number: usize,
    choices: Choices,
    created: usize,
}

impl Scene {
    /// The batches of one writer.
    pub(super) fn writer(number: usize, choices: Choices) -> Vec<Planned> {
        let mut scene = Self { number, choices, created: 0 };
        let mut plan: Vec<Planned> = Vec::new();
        for step in 0..BATCHES {
            plan.push(Planned::Write(scene.batch(step)));
        }
        // Each of the first has a session to remove, somewhere in the middle.
        if number < 4 {
            let at = scene.choices.below(BATCHES);
            plan.insert(at, Planned::DeleteSession(scene::session(DOOMED[number])));
        }
        plan
    }

    /// The statements of another program.
    pub(super) fn other(number: usize, choices: Choices) -> Vec<String> {
        let mut scene = Self { number, choices, created: 0 };
        let mut plan: Vec<String> = (0..STATEMENTS).map(|_| scene.statement()).collect();
        let [session, other] = [DOOMED[4 + number], DOOMED[4 + OTHERS + number]];
        let cascades = [
            format!("DELETE FROM task_sessions WHERE id = '{session}'"),
            format!("DELETE FROM tasks WHERE id = 'task-{session}'"),
            format!("DELETE FROM workspaces WHERE id = 'w-{session}'"),
            format!("DELETE FROM workspaces WHERE id IN ('w-{session}', 'w-{other}')"),
        ];
        let at = scene.choices.below(STATEMENTS);
        plan.insert(at, cascades[number % cascades.len()].clone());
        plan
    }

    fn session(&mut self) -> &'static str {
        match self.choices.below(8) {
            0 => self.choices.pick(&DOOMED),
            1..4 => self.choices.pick(&LOUD),
            _ => self.choices.pick(&QUIET),
        }
    }

    /// A message that some writer may have created.
    fn message(&mut self) -> String {
        format!("m-{}-{}", self.choices.below(WRITERS), self.choices.below(self.created.max(8)))
    }

    fn own(&mut self) -> String {
        format!("m-{}-{}", self.number, self.choices.below(self.created.max(1)))
    }

    fn batch(&mut self, step: usize) -> Batch {
        let session = self.session();
        let mutations = match self.choices.below(12) {
            0..4 => vec![self.create(session)],
            4 => vec![self.create(session), self.create(session), self.create(session)],
            // Everything is there already, or in another session.
            5 => vec![Mutation::CreateMessage(self.new_message(&format!("shared-{session}"), session))],
            6 => {
                let (id, length) = (self.own(), self.choices.pick(&[4, 5, 6]));
                vec![Mutation::AppendContent {
                    message: scene::message(&id),
                    offset_bytes: length,
                    text: "+".into(),
                }]
            }
            7 => {
                let patch = MessagePatch { content: Some("changed".into()), ..MessagePatch::default() };
                vec![Mutation::UpdateMessage { message: scene::message(&self.message()), patch }]
            }
            8 => {
                // What it moves it has just created, so that it is there.
                let (create, to) = (self.create(session), self.session());
                let message = scene::message(&format!("m-{}-{}", self.number, self.created - 1));
                vec![
                    create,
                    Mutation::MoveMessage {
                        message,
                        to_session: scene::session(to),
                        to_turn: scene::turn(to),
                    },
                ]
            }
            9 => self.tools(session),
            10 => vec![Mutation::DeleteMessage { message: scene::message(&self.message()) }],
            _ => {
                let merge = MetadataChange::Merge(r#"{"tool_call_id":"c","status":"running"}"#.into());
                let patch = MessagePatch { metadata: Some(merge), ..MessagePatch::default() };
                vec![Mutation::UpdateMessage { message: scene::message(&self.own()), patch }]
            }
        };
        let at = i64::try_from(step * WRITERS + self.number).expect("a small number");
        Batch { session: scene::session(session), at: scene::time(at), mutations }
    }

    /// A turn with pending tools, completed or removed with what it has.
    fn tools(&mut self, session: &str) -> Vec<Mutation> {
        let id = format!("turn-{}-{}", self.number, self.created);
        let mut mutations = vec![Mutation::CreateTurn(scene::new_turn(&id))];
        for _ in 0..3 {
            let metadata = r#"{"tool_call_id":"c"}"#.into();
            let new = NewMessage {
                kind: "tool_call".into(),
                metadata,
                turn: scene::turn(&id),
                ..self.next(session)
            };
            mutations.push(Mutation::CreateMessage(new));
        }
        mutations.push(Mutation::CompleteTurn { turn: scene::turn(&id), completed_at: None });
        if self.choices.below(2) == 0 {
            mutations.push(Mutation::DeleteTurn { turn: scene::turn(&id) });
        }
        mutations
    }

    fn create(&mut self, session: &str) -> Mutation {
        Mutation::CreateMessage(self.next(session))
    }

    fn next(&mut self, session: &str) -> NewMessage {
        self.created += 1;
        self.new_message(&format!("m-{}-{}", self.number, self.created - 1), session)
    }

    fn new_message(&mut self, id: &str, session: &str) -> NewMessage {
        scene::new_message(id, session, self.choices.pick(&[Author::Agent, Author::User]))
    }

    /// A statement that leaves the quiet sessions alone.
    fn statement(&mut self) -> String {
        let [session, to] = [self.choices.pick(&LOUD), self.choices.pick(&LOUD)];
        let loud = "task_session_id IN ('l-1', 'L2', 'l10')";
        let number = self.choices.below(WRITERS);
        self.created += 1;
        let id = format!("o-{}-{}", self.number, self.choices.below(self.created));
        match self.choices.below(10) {
            0 => format!("UPDATE task_session_messages SET content = content || 'x' WHERE task_session_id = '{session}'"),
            1 => format!("UPDATE task_session_messages SET author_id = 'by hand' WHERE id LIKE 'm-{number}-%' AND {loud}"),
            2 => format!(
                "UPDATE task_session_messages SET task_session_id = '{to}', turn_id = '{to}' WHERE task_session_id = '{session}' AND id LIKE 'm-{number}-%'"
            ),
            3 => format!("UPDATE task_session_messages SET task_session_id = '{to}', turn_id = '{to}' WHERE id = '{id}'"),
            4 => format!("UPDATE task_session_messages SET content = content WHERE {loud}"),
            5 => format!("DELETE FROM task_session_messages WHERE id LIKE '%-{number}' AND {loud}"),
            6 => format!("UPDATE task_session_turns SET metadata = '{{\"by\":{}}}' WHERE {loud}", self.created),
            _ => format!(
                "INSERT INTO task_session_messages (id, task_session_id, turn_id, content, author_type, created_at, updated_at)
                 VALUES ('{id}', '{session}', '{session}', 'one', 'agent', '2026-01-01 00:00:00', '2026-01-01 00:00:00'),
                        ('{id}-b', '{to}', '{to}', 'two', 'agent', '2026-01-01 00:00:00', '2026-01-01 00:00:00')
                 ON CONFLICT (id) DO UPDATE SET content = 'again' || {}", self.created
            ),
        }
    }
}
