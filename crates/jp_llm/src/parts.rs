//! What the encoders of several formats share: pieces of JSON, and what they call things in notes.

use std::io::{self, Write};

use base64::{engine::general_purpose::STANDARD, write::EncoderWriter};
use jp_conversation::ToolCallRequest;
use jp_resource::Snapshot;
use serde::Serialize;

use crate::Error;

/// The MIME type of PDF documents.
pub(crate) const PDF: &str = "application/pdf";
/// The MIME type of what says none.
pub(crate) const UNKNOWN: &str = "application/octet-stream";

pub(crate) fn write_json(value: &impl Serialize, out: &mut dyn Write) -> Result<(), Error> {
    Ok(serde_json::to_writer(out, value).map_err(io::Error::from)?)
}

/// Writes bytes as base64 (RFC 4648 §4).
pub(crate) fn write_base64(bytes: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let mut encoder = EncoderWriter::new(out, &STANDARD);
    encoder.write_all(bytes)?;
    encoder.finish().map(|_| ())
}

/// Writes a comma, but for the first time.
#[derive(Default)]
pub(crate) struct Separator {
    is_due: bool,
}

impl Separator {
    pub(crate) fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if std::mem::replace(&mut self.is_due, true) { out.write_all(b",") } else { Ok(()) }
    }
}

/// Returns what a note calls a resource.
pub(crate) fn subject(resource: &Snapshot) -> String {
    resource.name.as_ref().unwrap_or(&resource.uri).clone()
}

/// Returns what a note calls a part of a result that has no name of its own.
pub(crate) fn result_of(call: &ToolCallRequest) -> String {
    format!("a result of `{}`", call.name)
}

/// Returns type and subtype, without parameters, in lower case.
pub(crate) fn essence(mime: &str) -> String {
    mime.split(';').next().unwrap_or(mime).trim().to_ascii_lowercase()
}
