use jp_process::Output;
use jp_resource::{Resource, ResourceContent};

use super::CommandLine;
use crate::classify::classify;

/// The most bytes of stderr in the description of binary output. Descriptions are sent with each
/// reference, so they are short.
const MAX_DESCRIBED_STDERR: usize = 2048;

/// Creates the resource of a command's output.
///
/// If stderr and the exit status say something, text ends with them, so that another status gives
/// another checksum. For binary content they are in the description. Text in another charset than
/// UTF-8 keeps its bytes as content; the model sees it with unreadable bytes replaced.
pub(super) fn resource(line: &CommandLine, output: Output) -> Resource {
    let Output {
        stdout,
        stderr,
        status,
        ..
    } = output;
    let (content, mime_type) = classify(stdout, "");
    let is_plain = status == 0 && stderr.is_empty();
    if let ResourceContent::Blob(bytes) = &content
        && let Some(text) = text_with_garbage(bytes)
    {
        let mut resource = Resource::new(line.uri(), content).with_mime_type("text/plain");
        resource.formatted = Some(with_ending(text, &stderr, status));
        resource.description = line.description().map(str::to_owned);
        return resource.with_name(line.name());
    }
    let (content, description) = match content {
        ResourceContent::Text(text) if !is_plain => (
            ResourceContent::Text(with_ending(text, &stderr, status)),
            None,
        ),
        ResourceContent::Blob(bytes) if !is_plain => (
            ResourceContent::Blob(bytes),
            Some(describe(&stderr, status)),
        ),
        content => (content, None),
    };
    let descriptions: Vec<&str> = line
        .description()
        .into_iter()
        .chain(description.as_deref())
        .collect();
    let description = descriptions.join("\n");
    let mut resource = Resource::new(line.uri(), content)
        .with_mime_type(mime_type)
        .with_name(line.name());
    resource.description = (!description.is_empty()).then_some(description);
    resource
}

/// Decodes bytes that are text except for some of them, such as a diff of a file in another
/// charset.
fn text_with_garbage(bytes: &[u8]) -> Option<String> {
    /// At most one in so many characters may be unreadable. Western European texts have about one
    /// in 20 that is not ASCII; binary formats have far more.
    const READABLE_PER_GARBLED: usize = 10;
    if bytes.contains(&0) || infer::get(bytes).is_some() {
        return None;
    }
    let text = String::from_utf8_lossy(bytes).into_owned();
    let (garbled, all) = (text.matches('\u{fffd}').count(), text.chars().count());
    (garbled * READABLE_PER_GARBLED <= all).then_some(text)
}

/// Appends stderr and a failing exit status to the text of stdout.
fn with_ending(mut text: String, stderr: &[u8], status: i32) -> String {
    if !stderr.is_empty() {
        start_line(&mut text);
        text.push_str("[stderr]\n");
        text.push_str(&readable(stderr));
    }
    if status != 0 {
        start_line(&mut text);
        text.push_str(&format!("[exit status: {status}]\n"));
    }
    text
}

fn start_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// Describes a failing exit status and stderr.
fn describe(stderr: &[u8], status: i32) -> String {
    let mut lines = Vec::new();
    if status != 0 {
        lines.push(format!("exit status: {status}"));
    }
    if !stderr.is_empty() {
        lines.push(format!("stderr: {}", beginning(stderr).trim_end()));
    }
    lines.join("\n")
}

fn beginning(stderr: &[u8]) -> String {
    match stderr.get(..MAX_DESCRIBED_STDERR) {
        Some(beginning) if stderr.len() > MAX_DESCRIBED_STDERR => readable(beginning) + "…",
        _ => readable(stderr),
    }
}

/// Decodes bytes and replaces those that are not text.
fn readable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

    fn make(stdout: &[u8], stderr: &[u8], status: i32) -> Resource {
        let line = CommandLine::parse("cmd://x?description=Pixels").unwrap();
        resource(
            &line,
            Output {
                stdout: stdout.into(),
                stderr: stderr.into(),
                status,
                was_held: false,
            },
        )
    }

    #[test]
    fn text_ends_with_stderr_and_the_status() {
        let table: [(&str, &[u8], i32, &str); 8] = [
            ("out", b"", 0, "out"),
            ("", b"", 0, ""),
            ("out", b"err", 0, "out\n[stderr]\nerr"),
            (
                "out\n",
                b"err\n",
                3,
                "out\n[stderr]\nerr\n[exit status: 3]\n",
            ),
            ("out", b"", 1, "out\n[exit status: 1]\n"),
            ("", b"", 1, "[exit status: 1]\n"),
            ("", b"err", 1, "[stderr]\nerr\n[exit status: 1]\n"),
            ("", b"a\xff\0", 0, "[stderr]\na\u{fffd}\u{fffd}"),
        ];
        for (stdout, stderr, status, text) in table {
            let resource = make(stdout.as_bytes(), stderr, status);
            assert_eq!(resource.content.as_text(), Some(text));
            assert_eq!(resource.mime_type.as_deref(), Some("text/plain"));
            assert_eq!(resource.description.as_deref(), Some("Pixels"));
        }
    }

    #[test]
    fn binary_content_is_stdout_alone() {
        let table: [(&[u8], i32, &str); 4] = [
            (b"", 0, "Pixels"),
            (b"", 3, "Pixels\nexit status: 3"),
            (b"odd \xff\n", 0, "Pixels\nstderr: odd \u{fffd}"),
            (b"odd", 3, "Pixels\nexit status: 3\nstderr: odd"),
        ];
        for (stderr, status, description) in table {
            let resource = make(PNG, stderr, status);
            assert_eq!(resource.content.as_bytes(), PNG);
            assert_eq!(resource.mime_type.as_deref(), Some("image/png"));
            assert_eq!(resource.description.as_deref(), Some(description));
        }
        let long = make(PNG, &[b'x'; 9000], 0).description.unwrap();
        assert_eq!(long, format!("Pixels\nstderr: {}…", "x".repeat(2048)));
    }

    #[test]
    fn unreadable_bytes_of_text_are_replaced() {
        let resource = make(b"+ the caf\xe9 is open\n", b"", 1);
        assert_eq!(resource.mime_type.as_deref(), Some("text/plain"));
        assert_eq!(resource.content.as_bytes(), b"+ the caf\xe9 is open\n");
        assert_eq!(
            resource.formatted.as_deref(),
            Some("+ the caf\u{fffd} is open\n[exit status: 1]\n")
        );
        let noise = make(b"\xe9\xff\xfe\xfd", b"", 0);
        assert_eq!(
            (noise.mime_type.as_deref(), noise.formatted),
            (Some("application/octet-stream"), None)
        );
    }
}
