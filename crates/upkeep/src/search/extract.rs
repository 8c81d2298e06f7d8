//! Walks the JSON of one stored row and finds the fields that hold the query.

use std::io::BufRead;

use super::excerpt::Excerpt;
use super::field::Field;
use super::reader::{Kind, ReadError, Reader, Short, Sink};
use super::shape::{Shape, Slot, Visit};
use super::text::{Found, TextSearch};

/// Most hits that one row can have (a 2.x message has one per field of each item). Further ones are counted.
pub(crate) const HITS_PER_ROW_MAX: usize = 1024;

/// One field of a row that holds the query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldHit {
    /// Which field.
    pub(crate) field: Field,
    /// Position in the content array, 2.x only.
    pub(crate) item: Option<u32>,
    /// The tool, where the field belongs to a call.
    pub(crate) tool: Option<String>,
    /// Around the first match.
    pub(crate) excerpt: Excerpt,
    /// Matches in all strings of the field.
    pub(crate) occurrences: u64,
}

/// What one row holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowHits {
    /// By position in the row, at most [`HITS_PER_ROW_MAX`].
    pub(crate) hits: Vec<FieldHit>,
    /// Fields beyond that limit.
    pub(crate) unlisted: u64,
    /// What the row says of itself.
    pub(crate) facts: RowFacts,
}

/// Members of a row that a hit is labelled with. Of nested objects the innermost named one wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowFacts {
    /// `role` of a message.
    pub(crate) role: Option<String>,
    /// Whether `summary` is `true`: the answer of a 1.x compaction.
    pub(crate) is_summary: bool,
    /// `id` of the part or message in an event.
    pub(crate) id: Option<String>,
    /// `messageID` in an event.
    pub(crate) message: Option<String>,
    /// Whether OpenCode wrote the text of a 1.x part.
    pub(crate) is_synthetic: bool,
}

/// What an object says of itself while it is read.
#[derive(Default)]
struct Own {
    kind: Option<String>,
    tool: Option<String>,
}

/// Finds what `text` looks for in the row that `input` holds; technical fields only where asked for.
pub(crate) fn row(
    input: impl BufRead,
    shape: Shape,
    text: &mut TextSearch<'_>,
    with_technical: bool,
) -> Result<RowHits, ReadError> {
    text.clear();
    let mut walk = Walk {
        reader: Reader::new(input),
        text,
        with_technical,
        found: RowHits::default(),
        scope: 0,
        item: None,
    };
    if walk.reader.kind()? == Kind::Object {
        walk.object(shape)?;
    } else {
        walk.tree(Field::Other)?;
    }
    walk.reader.finish()?;
    Ok(walk.found)
}

struct Walk<'t, 'q, R> {
    reader: Reader<R>,
    text: &'t mut TextSearch<'q>,
    with_technical: bool,
    found: RowHits,
    /// Where the hits of the innermost part or item begin.
    scope: usize,
    item: Option<u32>,
}

impl<R: BufRead> Walk<'_, '_, R> {
    fn object(&mut self, shape: Shape) -> Result<(), ReadError> {
        self.reader.open(Kind::Object)?;
        let outer = self.scope;
        let is_entity = matches!(shape, Shape::Part | Shape::Item);
        if is_entity {
            self.scope = self.found.hits.len();
        }
        let (mut own, mut key, mut is_first) = (Own::default(), Short::default(), true);
        while self.reader.member(is_first, &mut key)? {
            is_first = false;
            let visit = key.as_str().map_or(Visit::Skip, |key| shape.member(key));
            if let Visit::Keep(slot) = visit {
                self.keep(slot, shape, &mut own)?;
            } else {
                self.value(visit)?;
            }
        }
        if is_entity {
            self.settle(shape, &own);
            self.scope = outer;
        }
        Ok(())
    }

    fn value(&mut self, visit: Visit) -> Result<(), ReadError> {
        let kind = self.reader.kind()?;
        match (visit, kind) {
            (Visit::Text(field) | Visit::Tree(field), Kind::String) => self.search(field),
            (Visit::Tree(field), _) => self.tree(field),
            (Visit::Object(shape), Kind::Object) => self.object(shape),
            (Visit::Object(shape), Kind::Array) => self.elements(|walk, _| walk.value_of(shape)),
            (Visit::Items, Kind::Array) => self.elements(|walk, index| {
                walk.item = Some(index);
                let read = walk.value_of(Shape::Item);
                walk.item = None;
                read
            }),
            (Visit::Synthetic, Kind::Scalar) => {
                self.found.facts.is_synthetic = self.reader.scalar()? == Some(true);
                Ok(())
            }
            // `summary: true` marks a compaction; the object is the diff summary of a user message.
            (Visit::Object(Shape::Summary), Kind::Scalar) => {
                self.found.facts.is_summary = self.reader.scalar()? == Some(true);
                Ok(())
            }
            _ => self.reader.skip(),
        }
    }

    fn value_of(&mut self, shape: Shape) -> Result<(), ReadError> {
        if self.reader.kind()? == Kind::Object { self.object(shape) } else { self.reader.skip() }
    }

    fn elements(
        &mut self,
        mut each: impl FnMut(&mut Self, u32) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        self.reader.open(Kind::Array)?;
        let mut index = 0;
        while self.reader.element(index == 0)? {
            each(self, index)?;
            index = index.saturating_add(1);
        }
        Ok(())
    }

    /// Searches every string below the value that comes next.
    fn tree(&mut self, field: Field) -> Result<(), ReadError> {
        match self.reader.kind()? {
            Kind::String => self.search(field),
            Kind::Scalar => self.reader.scalar().map(drop),
            Kind::Array => self.elements(|walk, _| walk.tree(field)),
            Kind::Object => {
                self.reader.open(Kind::Object)?;
                let (mut key, mut is_first) = (Short::default(), true);
                while self.reader.member(is_first, &mut key)? {
                    is_first = false;
                    self.tree(field)?;
                }
                Ok(())
            }
        }
    }

    fn search(&mut self, field: Field) -> Result<(), ReadError> {
        if field.is_technical() && !self.with_technical {
            return self.reader.skip();
        }
        let query = self.text.query();
        if !self.reader.string_where(self.text, |stored| query.may_stand_in(stored))? {
            return Ok(());
        }
        if field == Field::Attachment && self.text.is_inline_data() {
            self.text.clear();
            return Ok(());
        }
        if let Some(found) = self.text.finish() {
            self.add(field, found);
        }
        Ok(())
    }

    fn add(&mut self, field: Field, found: Found) {
        let same =
            self.found.hits[self.scope..].iter_mut().find(|hit| hit.field == field && hit.item == self.item);
        if let Some(hit) = same {
            hit.occurrences += found.occurrences;
        } else if self.found.hits.len() < HITS_PER_ROW_MAX {
            self.found.hits.push(FieldHit {
                field,
                item: self.item,
                tool: None,
                excerpt: found.excerpt,
                occurrences: found.occurrences,
            });
        } else {
            self.found.unlisted += 1;
        }
    }

    fn keep(&mut self, slot: Slot, shape: Shape, own: &mut Own) -> Result<(), ReadError> {
        if self.reader.kind()? != Kind::String {
            return self.reader.skip();
        }
        let mut value = Short::default();
        self.reader.string(&mut value)?;
        let value = value.as_str().map(str::to_owned);
        match slot {
            Slot::Type => own.kind = value,
            Slot::Tool => {
                if let (Some(name), true) = (&value, self.with_technical) {
                    self.text.piece(name.as_bytes());
                    if let Some(found) = self.text.finish() {
                        self.add(Field::ToolName, found);
                    }
                }
                own.tool = value;
            }
            Slot::Role => self.found.facts.role = value,
            Slot::Id if matches!(shape, Shape::Part | Shape::Message) => self.found.facts.id = value,
            Slot::Id => {}
            Slot::MessageId => self.found.facts.message = value,
        }
        Ok(())
    }

    /// Gives the hits of a part or item their final fields.
    fn settle(&mut self, shape: Shape, own: &Own) {
        let mut hits = self.found.hits.split_off(self.scope);
        hits.retain_mut(|hit| {
            let Some(field) = shape.settle(hit.field, own.kind.as_deref()) else { return false };
            hit.field = field;
            if own.kind.as_deref() == Some("tool") {
                hit.tool.clone_from(&own.tool);
            }
            true
        });
        // Metadata repeats what the call says elsewhere.
        let is_repeated = hits.iter().any(|hit| hit.field != Field::ToolMetadata);
        hits.retain(|hit| hit.field != Field::ToolMetadata || !is_repeated);
        self.found.hits.append(&mut hits);
    }
}

#[cfg(test)]
mod tests {
    use super::super::needle::Query;
    use super::*;

    fn found(json: &str, shape: Shape, query: &str, technical: bool) -> Vec<(Field, Option<u32>, u64)> {
        let query = Query::new(query).unwrap();
        let hits = row(json.as_bytes(), shape, &mut TextSearch::new(&query), technical).unwrap().hits;
        hits.into_iter().map(|hit| (hit.field, hit.item, hit.occurrences)).collect()
    }

    #[test]
    fn fields_of_a_tool_part() {
        let json = r#"{"type":"tool","tool":"needle-tool","callID":"needle","state":{"status":"completed",
            "input":{"needle":"x","a":["Needle",{"b":"needle"}]},"output":"a needle\nneedle","title":"needle",
            "metadata":{"output":"needle"},"time":{"start":1,"end":2}}}"#;
        let all = [
            (Field::ToolName, None, 1),
            (Field::ToolInput, None, 2),
            (Field::ToolOutput, None, 2),
            (Field::ToolTitle, None, 1),
        ];
        assert_eq!(found(json, Shape::Part, "NEEDLE", true), all);
        assert_eq!(found(json, Shape::Part, "NEEDLE", false), []);
    }

    #[test]
    fn metadata_counts_where_nothing_else_matches() {
        let json = r#"{"state":{"metadata":{"diff":"+needle"}},"type":"tool","tool":"edit"}"#;
        assert_eq!(found(json, Shape::Part, "needle", true), [(Field::ToolMetadata, None, 1)]);
    }

    #[test]
    fn provider_state_of_reasoning_is_not_text() {
        let json = r#"{"text":"needle","metadata":{"x":"needle"},"type":"reasoning"}"#;
        assert_eq!(found(json, Shape::Part, "needle", true), [(Field::Reasoning, None, 1)]);
        let json = r#"{"content":[{"type":"reasoning","text":"","native":{"s":"needle"}},{"type":"text","text":"Needle"},
            {"type":"reasoning","text":"x","state":{"output":"needle"}}]}"#;
        assert_eq!(found(json, Shape::Assistant, "needle", true), [(Field::Text, Some(1), 1)]);
    }

    #[test]
    fn keys_ids_and_escape_letters_do_not_match() {
        let json = r#"{"id":"needle","needle":1,"type":"text","text":"a\needle","messageID":"needle"}"#;
        assert_eq!(found(json, Shape::Part, "needle", true), []);
        assert_eq!(found(json, Shape::Part, "eedle", true), [(Field::Text, None, 1)]);
    }

    #[test]
    fn an_inline_file_is_not_text() {
        let json = r#"{"type":"file","mime":"a/b","filename":"needle.pdf","url":"data:x;base64,needle"}"#;
        assert_eq!(found(json, Shape::Part, "needle", true), [(Field::Attachment, None, 1)]);
        assert_eq!(found(json, Shape::Part, "base64", true), []);
    }

    #[test]
    fn a_call_of_an_item_has_its_tool_and_position() {
        let json = r#"{"content":[{"type":"text","text":"x"},{"type":"tool","id":"needle","name":"shell","state":{
            "status":"completed","input":{"command":"x"},"content":[{"type":"text","text":"needle"}]}}]}"#;
        let query = Query::new("needle").unwrap();
        let hits = row(json.as_bytes(), Shape::Assistant, &mut TextSearch::new(&query), true).unwrap().hits;
        assert_eq!(hits.len(), 1);
        assert_eq!((hits[0].item, hits[0].tool.as_deref()), (Some(1), Some("shell")));
    }

    #[test]
    fn a_row_with_many_hits_is_bounded() {
        let items = vec![r#"{"type":"text","text":"needle"}"#; HITS_PER_ROW_MAX + 5].join(",");
        let json = format!("{{\"content\":[{items}]}}");
        let query = Query::new("needle").unwrap();
        let found = row(json.as_bytes(), Shape::Assistant, &mut TextSearch::new(&query), true).unwrap();
        assert_eq!((found.hits.len(), found.unlisted), (HITS_PER_ROW_MAX, 5));
    }

    #[test]
    fn snapshots_in_events_keep_their_names() {
        let json = r#"{"sessionID":"s","part":{"id":"prt_1","messageID":"msg_1","type":"text","text":"needle"},"time":1}"#;
        let query = Query::new("needle").unwrap();
        let found = row(json.as_bytes(), Shape::Event, &mut TextSearch::new(&query), false).unwrap();
        assert_eq!(found.hits[0].field, Field::Text);
        assert_eq!(
            (found.facts.id.as_deref(), found.facts.message.as_deref()),
            (Some("prt_1"), Some("msg_1"))
        );
    }
}
