//! Reads a program's output as a tool's response.

mod outcome;

use jp_process::{BoundedOutput, Captured, End};
use jp_tool::{ContentBlock, ToolResponse};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

use self::outcome::LegacyOutcome;
use crate::excerpt;

/// The maximum bytes that jp keeps of each output of a program, or of one line: as much as a
/// message of an MCP server may have. Models see much less; `read_more` shows the rest.
pub(crate) const MAX_PRINTED: usize = 64_000_000;

/// The warning about a program whose output another process still had open when it ended.
pub(crate) const HELD_OUTPUT: &str =
    "a process that it started still had its output open; jp did not wait for that process";

/// The maximum number of warnings about a result. The tool decides how many there are, and they
/// are part of each later request.
const MAX_WARNINGS: usize = 10;
/// The maximum length of a warning, in characters.
pub(crate) const MAX_WARNING_LENGTH: usize = 300;

/// A response, and warnings about its faults.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The response.
    pub response: ToolResponse,
    /// The faults in it, for the tool's author.
    pub warnings: Vec<String>,
}

/// Reads what a program printed (seed RFD 058, "Response parsing").
///
/// A JSON object with a `content` array is a response of blocks: one that is malformed costs itself
/// and a warning. The older format (`LegacyOutcome`) becomes blocks, too. Everything else is text,
/// even half a JSON document. Bytes that are not UTF-8 are replaced. Output that is not complete is
/// an error, so that the model does not take it for the whole.
///
/// A program that failed gives an error, with what it printed to stderr and how it ended as text:
/// by an exit status other than 0, unless its JSON says `isError` itself; by a signal, or because
/// it was ended, in any case, and then its questions are dropped. Of a program that did not fail
/// stderr counts only where stdout has nothing, as with programs that report there.
#[must_use]
pub fn parse_command_output(captured: Captured) -> Parsed {
    let Captured {
        stdout,
        stderr,
        end,
        was_held,
    } = captured;
    let mut warnings = Vec::new();
    let is_whole = stdout.left_out() == 0;
    let is_stderr_whole = stderr.left_out() == 0;
    let stdout = decode_output(stdout, "standard output", &mut warnings);
    let structured = if is_whole {
        parse_structured(&stdout, &mut warnings)
    } else {
        None
    };
    let mut of_stderr = None;
    let stderr = || {
        stderr_block(decode_output(
            stderr,
            "standard error",
            of_stderr.insert(Vec::new()),
        ))
    };
    let mut response = match structured {
        Some(Structured { response, is_error }) => match (end, is_error) {
            // A tool may exit with another status than 0 and still say that it succeeded, as `grep`
            // does without a match.
            (End::Exited(0), _) | (End::Exited(_), Some(false)) => response,
            _ => to_failed(response, end, stderr()),
        },
        None => {
            let blocks = if stdout.trim().is_empty() {
                None
            } else {
                Some(ContentBlock::text(stdout))
            };
            match end {
                End::Exited(0) => ToolResponse::new(blocks.or_else(stderr)),
                _ => to_failed(ToolResponse::new(blocks), end, stderr()),
            }
        }
    };
    response.is_error |= !is_whole || (of_stderr.is_some() && !is_stderr_whole);
    // Invalid UTF-8 on stderr is no reason to warn, because stderr is not the result.
    warnings.extend(of_stderr.filter(|_| !is_stderr_whole).unwrap_or_default());
    if was_held {
        warnings.push(HELD_OUTPUT.to_owned());
    }
    let mut response = with_uris(response, &mut warnings);
    let is_nothing = response.content.is_empty() && response.structured_content.is_none();
    if let (End::Exited(status), true, true) = (end, is_nothing, warnings.is_empty()) {
        let text = format!("The tool returned nothing and exited with status {status}.");
        response.content.push(ContentBlock::text(text));
    }
    Parsed { response, warnings }
}

/// A response that was printed as JSON.
struct Structured {
    response: ToolResponse,
    /// The program's own `isError`, if there is one.
    is_error: Option<bool>,
}

/// Fields that distinguish a response from other JSON.
#[derive(Deserialize)]
struct Envelope {
    content: Option<IgnoredAny>,
    r#type: Option<IgnoredAny>,
}

impl Envelope {
    fn is_response(&self) -> bool {
        self.content.is_some() || self.r#type.is_some()
    }
}

fn parse_structured(stdout: &str, warnings: &mut Vec<String>) -> Option<Structured> {
    // Programs on Windows often write a byte order mark.
    let json = stdout.strip_prefix('\u{feff}').unwrap_or(stdout).trim();
    if !json.starts_with('{') {
        return None;
    }
    // Don't build a value of other JSON: it may be large, and a value takes several times the
    // memory of its text.
    if serde_json::from_str::<Envelope>(json).is_ok_and(|envelope| !envelope.is_response()) {
        return None;
    }
    let value: Value = serde_json::from_str(json).ok()?;
    let is_error = value.get("isError").and_then(Value::as_bool);
    if let Some(outcome) = LegacyOutcome::from_json(&value) {
        return Some(Structured {
            response: outcome.into(),
            is_error,
        });
    }
    let (response, of_blocks) = ToolResponse::from_json(value).ok()?;
    warnings.extend(of_blocks);
    Some(Structured { response, is_error })
}

/// Makes the response of a program that failed: what it returned, its stderr and how it ended.
fn to_failed(mut response: ToolResponse, end: End, stderr: Option<ContentBlock>) -> ToolResponse {
    if !matches!(end, End::Exited(_)) {
        response
            .content
            // A program that was ended did not get to say all that it wanted, so its questions
            // don't count.
            .retain(|block| !matches!(block, ContentBlock::Question { .. }));
    }
    response.content.extend(stderr);
    let nothing = if response.content.is_empty() {
        " It printed nothing."
    } else {
        ""
    };
    response
        .content
        .push(ContentBlock::text(describe_end("tool", end) + nothing));
    ToolResponse {
        is_error: true,
        ..response
    }
}

/// Describes how a program ended, in a sentence.
pub(crate) fn describe_end(what: &str, end: End) -> String {
    match end {
        End::Exited(status) => format!("The {what} exited with status {status}."),
        End::Signal(status) => format!("The {what} was ended by a {status}."),
        End::TimedOut(limit) => format!(
            "The {what} ran for more than {} seconds and was ended with every process that it had started.",
            limit.as_secs_f64()
        ),
        End::Stopped => {
            format!("The {what} tried to read from a terminal. It has none, so it was ended.")
        }
        End::Moot => format!("The call was interrupted, and the {what} was ended."),
    }
}

/// Makes a block with the text of stderr, unless it is blank.
pub(crate) fn stderr_block(stderr: String) -> Option<ContentBlock> {
    let is_blank = stderr.trim().is_empty();
    (!is_blank).then(|| ContentBlock::text(format!("[stderr]\n{stderr}")))
}

/// Returns the first warnings, each shortened, and the number of the others.
pub(crate) fn limit_warnings(warnings: &[String]) -> Vec<String> {
    let more = warnings.len().saturating_sub(MAX_WARNINGS);
    warnings
        .iter()
        .take(MAX_WARNINGS)
        .map(|warning| excerpt::beginning(warning, MAX_WARNING_LENGTH))
        .chain((more > 0).then(|| format!("and {more} more")))
        .collect()
}

/// Makes a block with the warnings about a result, unless there are none.
pub(crate) fn warning_block(warnings: &[String]) -> Option<ContentBlock> {
    let lines: String = warnings
        .iter()
        .map(|warning| format!("- {warning}\n"))
        .collect();
    let text = format!("Warnings about this result:\n{lines}");
    (!warnings.is_empty()).then(|| ContentBlock::text(text))
}

/// Drops resources whose URI has no scheme.
pub(crate) fn with_uris(mut response: ToolResponse, warnings: &mut Vec<String>) -> ToolResponse {
    response.content.retain(|block| match block {
        ContentBlock::Resource { resource, .. } if !has_scheme(&resource.uri) => {
            let uri = &resource.uri;
            warnings.push(format!(
                "a content block was skipped: its URI {uri:?} has no scheme; use `file:PATH` for a file of the workspace"
            ));
            false
        }
        _ => true,
    });
    response
}

/// Returns whether a URI has a scheme (RFC 3986 §3.1); one letter before a path is a drive of
/// Windows.
fn has_scheme(uri: &str) -> bool {
    uri.split_once(':').is_some_and(|(scheme, rest)| {
        let is_drive = scheme.len() == 1 && rest.starts_with(['/', '\\']);
        !is_drive
            && !rest.is_empty()
            && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    })
}

/// Returns output as text, with a line in place of bytes that were not kept.
pub(crate) fn decode_output(
    output: BoundedOutput,
    name: &str,
    warnings: &mut Vec<String>,
) -> String {
    let mut left_out = output.left_out();
    let text = if left_out == 0 {
        decode(output.into_bytes())
    } else {
        let (mut head, tail) = output.into_parts();
        let (whole, rest) = (whole_characters(&head), broken_character(&tail));
        left_out += (head.len() - whole + rest) as u64;
        head.truncate(whole);
        let (head, head_is_text) = decode(head);
        let (tail, tail_is_text) = decode(tail[rest..].to_vec());
        warnings.push(format!(
            "it printed {} bytes to its {name}, and jp keeps at most {MAX_PRINTED}: {left_out} bytes in the middle are lost; make it print less, or write to a file",
            left_out + (head.len() + tail.len()) as u64
        ));
        let gap = format!("\n[{left_out} bytes of the output are missing here]\n");
        (head + &gap + &tail, head_is_text && tail_is_text)
    };
    let (text, is_text) = text;
    if !is_text {
        warnings.push(format!(
            "its {name} is not valid UTF-8; invalid bytes are shown as \u{fffd}"
        ));
    }
    text
}

fn decode(bytes: Vec<u8>) -> (String, bool) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, true),
        Err(error) => (
            String::from_utf8_lossy(error.as_bytes()).into_owned(),
            false,
        ),
    }
}

/// Returns the start of an incomplete character at the end, or the length.
fn whole_characters(bytes: &[u8]) -> usize {
    // A character has at most 4 bytes, so at most 3 of them can stand before the cut.
    (bytes.len().saturating_sub(3)..bytes.len())
        .find(|from| is_incomplete(&bytes[*from..]))
        .unwrap_or(bytes.len())
}

/// Returns whether bytes are the beginning of one character.
fn is_incomplete(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes)
        .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
}

/// Returns how many bytes at the beginning are the rest of a character.
fn broken_character(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take(3)
        .take_while(|byte| **byte & 0xC0 == 0x80)
        .count()
}

#[cfg(test)]
mod tests;
