//! Prompts of a turn: the permission for a call, and the questions of tools.
//!
//! A margin sets off all text from a model or a tool, and control characters are shown as escapes, so that such text can't
//! pass for jp's own words.

mod editor;
mod permission;
mod question;

pub(crate) use self::{
    permission::permit,
    question::{ask_question, show_blocks, show_to_user},
};
use crate::terminal::{Extent, quote, quote_for_user, shorten};
use serde::Serialize;

/// Formats a value as JSON that a person can edit.
fn to_pretty_json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}
