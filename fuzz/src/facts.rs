use headwater_prune::{Facts, completion, event_entity, message_facts, part_facts};

use crate::scanner::cuts;

/// Every prefix of a row answers as the whole row does, or asks for more.
///
/// # Panics
/// Where it answers otherwise.
pub fn facts(input: &[u8]) {
    agree(input, part_facts);
    agree(input, message_facts);
    agree(input, completion);
    agree(input, |prefix, is_whole| event_entity("message.part.updated.1", prefix, is_whole));
    agree(input, |prefix, is_whole| event_entity("message.updated.1", prefix, is_whole));
}

fn agree<T: PartialEq + std::fmt::Debug>(input: &[u8], ask: impl Fn(&[u8], bool) -> Facts<T>) {
    let whole = ask(input, true);
    assert_ne!(whole, Facts::NeedMore, "the whole row is enough");
    let mut decided = false;
    for cut in cuts(input.len()) {
        let found = ask(&input[..cut], false);
        decided |= found != Facts::NeedMore;
        assert!(!decided || found == whole, "{found:?} at {cut}, {whole:?} in all");
    }
}
