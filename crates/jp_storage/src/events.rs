//! `events.json`: a JSON array, one event a line (design 03, "events.json").
//!
//! [`parse`] reads any JSON array and tells a torn end, which a crash leaves, from a mistake, which a
//! person makes; [`append`] writes after the last event at the cost of what is appended.

pub mod append;
pub mod parse;
