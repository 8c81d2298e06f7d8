use headwater_wire::json::{JsonErrorKind, Reader, ensure_json};
use serde::de::IgnoredAny;

/// The scanner accepts what serde_json accepts, never panics, and reads a prefix as the beginning of the whole.
///
/// # Panics
/// Where it does not.
pub fn scanner(input: &[u8]) {
    let found = ensure_json(input);
    match serde_json::from_slice::<IgnoredAny>(input) {
        // serde_json skips strings without a look at their encoding, and has no bound on what it skips.
        Ok(IgnoredAny) => assert!(
            found.is_ok()
                || found.is_err_and(|error| matches!(
                    error.kind,
                    JsonErrorKind::InvalidUtf8 | JsonErrorKind::TooDeep
                )),
            "serde_json accepts what the scanner refuses: {found:?}"
        ),
        Err(error) => assert!(found.is_err(), "serde_json refuses what the scanner accepts: {error}"),
    }
    if let Err(error) = found {
        assert!(error.offset <= input.len(), "{error} beyond {}", input.len());
    }
    for cut in cuts(input.len()) {
        let mut reader = Reader::prefix(&input[..cut]);
        match reader.skip() {
            Ok(range) => assert!(range.end <= cut),
            Err(error) if error.is_end() => {}
            // A fault that is seen in a prefix is a fault of the whole.
            Err(error) => assert!(found.is_err(), "{error} in a prefix of {cut}"),
        }
    }
    let is_early = found.is_err_and(|error| error.kind == JsonErrorKind::UnexpectedEnd);
    assert!(!is_early || found.is_err_and(|error| error.offset == input.len()), "an early end is at the end");
}

/// Places to cut a text: all of a short one, some of a long one.
pub(crate) fn cuts(length: usize) -> impl Iterator<Item = usize> {
    (0..=length).step_by(1 + length / 64)
}
