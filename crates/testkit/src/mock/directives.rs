use std::collections::BTreeSet;

/// What one prompt asks of the model. See [`super`] for the words.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a word that stands in a prompt or does not")]
pub(super) struct Directives {
    pub(super) text: usize,
    pub(super) reasoning: usize,
    pub(super) tools: usize,
    pub(super) parallel: usize,
    pub(super) out: usize,
    pub(super) lines: usize,
    pub(super) tool: String,
    pub(super) path: Option<String>,
    pub(super) size: usize,
    pub(super) fail: bool,
    pub(super) fail_at: Option<usize>,
    pub(super) sleep: f64,
    pub(super) drip: f64,
    pub(super) until: Option<String>,
    pub(super) delay: f64,
    pub(super) hold: Option<String>,
    pub(super) hang: bool,
    pub(super) stall: f64,
    pub(super) http: Option<u16>,
    pub(super) http_once: Option<u16>,
    pub(super) cut: bool,
    pub(super) subagent: usize,
    pub(super) sub: String,
    pub(super) usage: Option<usize>,
    pub(super) todo: bool,
}

impl Default for Directives {
    fn default() -> Self {
        Self {
            text: 80,
            reasoning: 0,
            tools: 0,
            parallel: 1,
            out: 200,
            lines: 100,
            tool: "bash".to_owned(),
            path: None,
            size: 400,
            fail: false,
            fail_at: None,
            sleep: 0.0,
            drip: 0.0,
            until: None,
            delay: 0.0,
            hold: None,
            hang: false,
            stall: 0.0,
            http: None,
            http_once: None,
            cut: false,
            subagent: 0,
            sub: "text=60".to_owned(),
            usage: None,
            todo: false,
        }
    }
}

impl Directives {
    /// The directives in `prompt`, or `None` if it has none.
    ///
    /// # Errors
    /// The word that is no directive, or whose value is not of its kind: a misspelt test must not pass.
    pub(super) fn parse(prompt: &str) -> Result<Option<Self>, String> {
        let mut body = String::new();
        let mut rest = prompt;
        while let Some((_, tail)) = rest.split_once("[[") {
            let Some((inside, tail)) = tail.split_once("]]") else { break };
            body.push_str(inside);
            body.push(' ');
            rest = tail;
        }
        if body.is_empty() {
            return Ok(None);
        }
        let mut found = Self::default();
        if let Some((before, tail)) = body.split_once("sub(") {
            let (inside, after) = tail.split_once(')').ok_or("sub( without its end")?;
            inside.trim().clone_into(&mut found.sub);
            body = format!("{before} {after}");
        }
        let mut seen = BTreeSet::new();
        for word in body.split_whitespace() {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            if !seen.insert(key) {
                return Err(format!("{key} stands twice"));
            }
            found.set(key, value).map_err(|()| format!("no such directive: {word}"))?;
        }
        Ok(Some(found))
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), ()> {
        match key {
            "text" => self.text = number(value)?,
            "reasoning" => self.reasoning = number(value)?,
            "tools" => self.tools = number(value)?,
            "parallel" => self.parallel = number(value)?,
            "out" => self.out = number(value)?,
            "lines" => self.lines = number(value)?,
            "tool" => self.tool = some(value)?,
            "path" => self.path = Some(some(value)?),
            "size" => self.size = number(value)?,
            "fail" => self.fail = bare(value)?,
            "failat" => self.fail_at = Some(number(value)?),
            "sleep" => self.sleep = number(value)?,
            "drip" => self.drip = number(value)?,
            "until" => self.until = Some(some(value)?),
            "delay" => self.delay = number(value)?,
            "hold" => self.hold = Some(some(value)?),
            "hang" => self.hang = bare(value)?,
            "stall" => self.stall = number(value)?,
            "http" => self.http = Some(number(value)?),
            "httponce" => self.http_once = Some(number(value)?),
            "cut" => self.cut = bare(value)?,
            "subagent" => self.subagent = number(value)?,
            "usage" => self.usage = Some(number(value)?),
            "todo" => self.todo = bare(value)?,
            _ => return Err(()),
        }
        Ok(())
    }

    /// How many tool steps the turn has before its last answer.
    pub(super) fn steps(&self) -> usize {
        let at_least = self.subagent.max(usize::from(self.todo || self.fail));
        self.tools.max(at_least)
    }
}

fn number<T: std::str::FromStr>(value: &str) -> Result<T, ()> {
    value.parse().map_err(|_| ())
}

fn some(value: &str) -> Result<String, ()> {
    if value.is_empty() { Err(()) } else { Ok(value.to_owned()) }
}

fn bare(value: &str) -> Result<bool, ()> {
    if value.is_empty() { Ok(true) } else { Err(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_brackets_are_directives_and_the_rest_is_talk() {
        assert_eq!(Directives::parse("just text [x]"), Ok(None));
        let found = Directives::parse("go [[tools=2 out=500]] on [[fail sub(text=5 tools=1) delay=0.5]]")
            .unwrap()
            .unwrap();
        assert_eq!((found.tools, found.out, found.fail, found.delay), (2, 500, true, 0.5));
        assert_eq!(found.sub, "text=5 tools=1");
        assert_eq!(found.steps(), 2);
        assert_eq!(Directives { fail: true, ..Directives::default() }.steps(), 1);
    }

    #[test]
    fn a_misspelt_directive_is_refused() {
        for prompt in
            ["[[tool]]", "[[tols=1]]", "[[tools=x]]", "[[fail=1]]", "[[text=1 text=2]]", "[[sub(text=1]]"]
        {
            assert!(Directives::parse(prompt).is_err(), "{prompt}");
        }
    }
}
