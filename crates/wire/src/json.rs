//! A strict scanner over JSON text (RFC 8259) that yields byte ranges.
//!
//! [`Reader`] pulls one value after another and never copies: a member is a key and the range of its value. It refuses what the
//! grammar refuses, text that is not UTF-8, and nesting beyond [`crate::limits::JSON_DEPTH_MAX`]. It does not look for repeated
//! keys and accepts `\uD800` escapes without a partner, as RFC 8259 and `JSON.parse` do; [`crate::canonical`] refuses both.
//!
//! ```
//! use headwater_wire::json::{JsonError, Reader};
//!
//! fn text_of(part: &[u8]) -> Result<Option<std::ops::Range<usize>>, JsonError> {
//!     let mut reader = Reader::new(part);
//!     let mut text = None;
//!     reader.begin_object()?;
//!     while let Some(key) = reader.next_member()? {
//!         let value = reader.skip()?;
//!         if key.is("text") {
//!             text = Some(value);
//!         }
//!     }
//!     reader.finish()?;
//!     Ok(text)
//! }
//! assert_eq!(text_of(br#"{"type":"text", "text": "hi"}"#), Ok(Some(24..28)));
//! ```

mod error;
mod reader;
pub(crate) mod scan;
mod text;

pub use error::{JsonError, JsonErrorKind};
pub use reader::{Kind, Reader, ensure_json};
pub(crate) use text::Characters;
pub use text::{LoneSurrogate, Text};
