use jp_process::Output;
use jp_resource::{Resource, ResourceContent};

use super::CommandLine;
use crate::classify::classify;

/// How much of stderr goes into the description of binary output.
const DESCRIBED_BYTES: usize = 2048;

/// Makes the resource of what a command printed.
///
/// Text in another charset than UTF-8 is shown with what could not be read replaced. Its content is what came through
/// stdout, and nothing else if that is all there was. Else text goes on with stderr and the exit status, so that
/// another status is another checksum; beside binary content they are in the description.
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
        && let Some(text) = as_text(bytes)
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
            Some(described(&stderr, status)),
        ),
        content => (content, None),
    };
    let descriptions = line
        .description()
        .map(str::to_owned)
        .into_iter()
        .chain(description);
    let description = descriptions.collect::<Vec<_>>().join("\n");
    let mut resource = Resource::new(line.uri(), content)
        .with_mime_type(mime_type)
        .with_name(line.name());
    resource.description = (!description.is_empty()).then_some(description);
    resource
}

/// Reads what is text but for some bytes, such as a diff of a file in another charset.
fn as_text(bytes: &[u8]) -> Option<String> {
    const GARBLED_AT_MOST: usize = 10;
    if bytes.contains(&0) || infer::get(bytes).is_some() {
        return None;
    }
    let text = String::from_utf8_lossy(bytes).into_owned();
    let (garbled, all) = (text.matches('\u{fffd}').count(), text.chars().count());
    (garbled * GARBLED_AT_MOST <= all).then_some(text)
}

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

fn described(stderr: &[u8], status: i32) -> String {
    let status = (status != 0).then(|| format!("exit status: {status}"));
    let stderr = (!stderr.is_empty()).then(|| format!("stderr: {}", beginning(stderr).trim_end()));
    status
        .into_iter()
        .chain(stderr)
        .collect::<Vec<_>>()
        .join("\n")
}

fn beginning(stderr: &[u8]) -> String {
    match stderr.get(..DESCRIBED_BYTES) {
        Some(beginning) if stderr.len() > DESCRIBED_BYTES => readable(beginning) + "…",
        _ => readable(stderr),
    }
}

/// Replaces what is not text.
fn readable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

    fn made(stdout: &[u8], stderr: &[u8], status: i32) -> Resource {
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
    fn text_goes_on_with_stderr_and_status() {
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
            let resource = made(stdout.as_bytes(), stderr, status);
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
            let resource = made(PNG, stderr, status);
            assert_eq!(resource.content.as_bytes(), PNG);
            assert_eq!(resource.mime_type.as_deref(), Some("image/png"));
            assert_eq!(resource.description.as_deref(), Some(description));
        }
        let long = made(PNG, &[b'x'; 9000], 0).description.unwrap();
        assert_eq!(long, format!("Pixels\nstderr: {}…", "x".repeat(2048)));
    }

    #[test]
    fn text_in_another_charset_is_shown_as_far_as_it_can_be_read() {
        let resource = made(b"+ the caf\xe9 is open\n", b"", 1);
        assert_eq!(resource.mime_type.as_deref(), Some("text/plain"));
        assert_eq!(resource.content.as_bytes(), b"+ the caf\xe9 is open\n");
        assert_eq!(
            resource.formatted.as_deref(),
            Some("+ the caf\u{fffd} is open\n[exit status: 1]\n")
        );
        let noise = made(b"\xe9\xff\xfe\xfd", b"", 0);
        assert_eq!(
            (noise.mime_type.as_deref(), noise.formatted),
            (Some("application/octet-stream"), None)
        );
    }
}
