//! What a turn asks of the person at the terminal: leave for a call, and answers to what tools ask.
//!
//! Whatever a model or a tool wrote is set off by a margin, with nothing in it that is not seen: it can't be taken for
//! jp's own words.

mod editor;
mod permission;
mod question;

pub(crate) use self::{
    permission::permit,
    question::{answer, show_blocks, show_to_user},
};
use crate::terminal::{Extent, quote, quote_for_user, shortened};
