use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::directives::Directives;
use crate::random::filler;

/// A call that the model makes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: Value,
}

/// The `k`-th call of tool step `step` (from 0). Only tools among `offered` are called, but for the invalid one.
pub(super) fn call(directives: &Directives, step: usize, k: usize, offered: &BTreeSet<String>) -> Call {
    let named = |name: &str, arguments| Call { name: name.to_owned(), arguments };
    if directives.todo && step == 0 && offered.contains("todowrite") {
        let todo = |i| json!({"content": format!("item {i}"), "status": "pending", "priority": "medium"});
        return named("todowrite", json!({"todos": [todo(0), todo(1), todo(2)]}));
    }
    if step < directives.subagent && offered.contains("task") {
        let prompt = format!("Do the child work {step}.{k} [[{}]]", directives.sub);
        let description = format!("child {}", step + 1);
        return named(
            "task",
            json!({"description": description, "prompt": prompt, "subagent_type": "general"}),
        );
    }
    if directives.fail || directives.fail_at == Some(step + 1) {
        return named("read", json!({"filePath": format!("/nonexistent/mock-{step}-{k}.txt")}));
    }
    let path = directives.path.clone().unwrap_or_else(|| format!("mock-{}.txt", step + 1));
    match directives.tool.as_str() {
        "invalid" => named("no_such_tool", json!({"x": 1})),
        "read" => named("read", json!({"filePath": path})),
        "write" => {
            let content = filler(directives.size, &format!("file {step}.{k}"));
            named("write", json!({"filePath": path, "content": content}))
        }
        "edit" => {
            let arguments =
                json!({"filePath": path, "oldString": "alpha", "newString": "omega", "replaceAll": true});
            named("edit", arguments)
        }
        "glob" => named("glob", json!({"pattern": "**/*"})),
        _ => {
            let description = format!("print {} bytes", directives.out);
            named("bash", json!({"command": command(directives, step, k), "description": description}))
        }
    }
}

/// A shell command that prints `out` bytes in numbered lines of `lines` bytes, as the directives say.
fn command(directives: &Directives, step: usize, k: usize) -> String {
    let seed = step * 31 + k + 1;
    let print = |bytes: usize| {
        format!(
            "awk -v n={bytes} -v w={} -v s={seed} 'BEGIN {{ while (t < n) {{ s = (s * 16807) % 2147483647; \
             l = sprintf(\"%06d %d\", ++i, s); while (length(l) < w - 1) l = l \" row\" (s % 9973); l = substr(l, 1, w - 1); \
             if (t + length(l) + 1 > n) l = substr(l, 1, n - t - 1); print l; t += length(l) + 1 }} }}'",
            directives.lines.max(10)
        )
    };
    let mut command = print(directives.out);
    if directives.drip > 0.0 {
        let piece = print((directives.out / 20).max(1));
        command = format!("for i in $(seq 20); do {piece}; sleep {:.3}; done", directives.drip / 20.0);
    }
    if directives.sleep > 0.0 {
        command = format!("sleep {}; {command}", directives.sleep);
    }
    if let Some(file) = &directives.until {
        // Ends by itself when the project folder is gone, so that a killed test leaves no process behind.
        command = format!("while [ -d .git ] && [ ! -e {file} ]; do sleep 0.05; done; {command}");
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directives(text: &str) -> Directives {
        Directives::parse(&format!("[[{text}]]")).unwrap().unwrap()
    }

    #[test]
    fn a_shell_call_prints_exactly_the_bytes_asked_for() {
        for (out, lines) in [(1, 100), (200, 100), (5000, 37), (99, 100)] {
            let call = call(&directives(&format!("out={out} lines={lines}")), 0, 0, &BTreeSet::new());
            let script = call.arguments["command"].as_str().unwrap().to_owned();
            let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(output.stdout.len(), out, "{script}");
            assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }

    #[test]
    fn the_directives_choose_the_tool() {
        let all: BTreeSet<String> = ["task", "todowrite", "bash"].map(str::to_owned).into();
        for (text, step, name) in [
            ("tools=1", 0, "bash"),
            ("tool=write", 0, "write"),
            ("tool=invalid", 0, "no_such_tool"),
            ("todo", 0, "todowrite"),
            ("todo", 1, "bash"),
            ("subagent=1", 0, "task"),
            ("subagent=1", 1, "bash"),
            ("fail", 0, "read"),
            ("tools=3 failat=2", 1, "read"),
            ("tools=3 failat=2", 2, "bash"),
        ] {
            assert_eq!(call(&directives(text), step, 0, &all).name, name, "{text} step {step}");
        }
        assert_eq!(
            call(&directives("subagent=1"), 0, 0, &BTreeSet::new()).name,
            "bash",
            "a child has no task tool"
        );
    }
}
