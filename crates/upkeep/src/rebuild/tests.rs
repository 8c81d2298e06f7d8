//! Tests of the whole rebuild: what comes out, and every cell of `docs/spec/rebuild-protocol.md`.

mod content;
mod crashes;
mod faults;
mod openers;
mod paused;
mod room;
mod sample;
mod verified;
