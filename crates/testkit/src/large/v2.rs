use rusqlite::params;

use super::generator::Generator;

/// Writes one 2.x session: turns of a user row, assistant rows and an idle row, without event rows (fact B3).
pub(super) fn session(generator: &mut Generator<'_>) {
    let id = generator.id("ses");
    let created = generator.tick(40);
    generator.summary.sessions_v2 += 1;
    let number = generator.summary.sessions_v2;
    generator.insert(
        "INSERT INTO session_v2 (id, project_id, slug, directory, path, title, version, agent, model, time_created, time_updated, \
         time_idle, idle_outcome) VALUES (?, ?, ?, ?, '', ?, '2.0.26', 'build', \
         '{\"id\":\"m1\",\"providerID\":\"mock\",\"variant\":\"default\"}', ?, ?6, ?6, 'succeeded')",
        params![
            id,
            generator.project,
            format!("v2-{number}"),
            generator.options.directory,
            format!("v2 session {number:05}"),
            created
        ],
    );
    let mut seq = 3;
    for _ in 0..=generator.random.below(5) {
        seq += 1;
        let (at, length) = (generator.tick(40), generator.size(150, 3000));
        let text = generator.text(length);
        let user = format!(r#"{{"time":{{"created":{at}}},"text":"{text}","files":[]}}"#);
        generator.write_session_message(&id, "user", seq, at, &user);
        for step in 0..=generator.random.below(7) {
            seq += if step == 0 { 1 } else { 9 };
            assistant(generator, &id, seq);
        }
        seq += 5;
        let at = generator.tick(40);
        let idle = format!(r#"{{"time":{{"created":{at}}},"outcome":"succeeded"}}"#);
        generator.write_session_message(&id, "idle", seq, at, &idle);
    }
    generator.insert("INSERT INTO event_sequence (aggregate_id, seq) VALUES (?, ?)", params![id, seq]);
}

fn assistant(generator: &mut Generator<'_>, session: &str, seq: i64) {
    let (at, length) = (generator.tick(40), generator.size(900, 20_000));
    let reasoning = generator.text(length);
    let mut content = vec![format!(
        r#"{{"type":"reasoning","text":"{reasoning}","native":{{"reasoningField":"reasoning_content"}},"time":{{"created":{at},"completed":{}}}}}"#,
        at + 5
    )];
    for _ in 0..generator.random.pick(&[0, 1, 1, 2]) {
        let (call, number) = (generator.random.bits() >> 16, generator.number());
        let (name, length) =
            (generator.random.pick(&["shell", "read", "edit"]), generator.size(6000, 51_200));
        let output = generator.text(length);
        content.push(format!(
            r#"{{"type":"tool","id":"call_{call:012x}","name":"{name}","executed":false,"state":{{"status":"completed","input":{{"path":"src/f{number}.rs"}},"content":[{{"type":"text","text":"{output}"}}],"metadata":{{"truncated":false}}}},"time":{{"created":{at},"ran":{},"completed":{}}}}}"#,
            at + 1,
            at + 9
        ));
    }
    let length = generator.size(400, 8000);
    let text = generator.text(length);
    content.push(format!(r#"{{"type":"text","text":"{text}"}}"#));
    let content = content.join(",");
    let data = format!(
        r#"{{"time":{{"created":{at},"streamed":{},"completed":{}}},"agent":"build","model":{{"id":"m1","providerID":"mock"}},"content":[{content}],"finish":"stop","rawFinish":"stop","cost":0,"tokens":{{"input":1000,"output":34,"reasoning":0,"cache":{{"read":200,"write":0}}}}}}"#,
        at + 8,
        at + 20
    );
    generator.write_session_message(session, "assistant", seq, at, &data);
}
