use infer::MatcherType;
use jp_resource::{ResourceContent, mime};

/// Decides whether the bytes of the file `name` are text, and returns their MIME type.
///
/// The name decides the type of text. For binary content the first bytes do, then the name.
#[must_use]
pub fn classify(bytes: Vec<u8>, name: &str) -> (ResourceContent, &'static str) {
    // A PDF can be ASCII, but its text is not readable.
    if bytes.starts_with(b"%PDF-") {
        return (ResourceContent::Blob(bytes), "application/pdf");
    }
    let content = ResourceContent::from_bytes(bytes);
    let mime_type = match &content {
        ResourceContent::Text(_) => mime::from_path(name).unwrap_or("text/plain"),
        ResourceContent::Blob(bytes) => binary_type(bytes, name),
    };
    (content, mime_type)
}

/// Returns the type of binary content by its first bytes, then by its name.
#[must_use]
pub fn binary_type(bytes: &[u8], name: &str) -> &'static str {
    let by_name = binary_type_of_name(name);
    match magic_type(bytes) {
        Some(container) if is_container(container) => by_name.unwrap_or(container),
        Some(magic) => magic,
        None => by_name.unwrap_or("application/octet-stream"),
    }
}

/// The container of old Office files, thumbnails and installers.
const OLE: &str = "application/x-ole-storage";

/// Returns the type of content by its first bytes.
pub(crate) fn magic_type(bytes: &[u8]) -> Option<&'static str> {
    // Enough to distinguish office files from other archives, by the names of their first entries.
    const HEAD: usize = 64 * 1024;
    let kind = infer::get(&bytes[..bytes.len().min(HEAD)])?;
    match kind.mime_type() {
        // `infer` doesn't look inside an OLE file; old Office files are only some of them.
        "application/msword" => Some(OLE),
        _ if kind.matcher_type() == MatcherType::Text => None,
        mime_type => Some(mime_type),
    }
}

/// Returns whether other formats use this one as a container, so that the name can be more
/// specific.
fn is_container(mime_type: &str) -> bool {
    ["application/zip", OLE, "application/gzip"].contains(&mime_type)
}

/// Returns the type of a name, unless it is one of text.
fn binary_type_of_name(name: &str) -> Option<&'static str> {
    if mime::from_path(name).is_some() {
        return None;
    }
    mime_guess::from_path(name)
        .first_raw()
        .filter(|guess| !mime::is_text(guess))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_decides_before_the_name() {
        const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        const ZIP: &[u8] = b"PK\x03\x04\x14\0\0\0\0\0 other";
        const OLE_FILE: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0";
        let table: [(&[u8], &str, &str, bool); 24] = [
            (b"fn main() {}", "src/main.rs", "text/x-rust", true),
            (b"hello", "hello", "text/plain", true),
            (b"", "empty.png", "text/plain", true),
            (b"<svg/>", "a.svg", "image/svg+xml", true),
            (b"not an image", "a.png", "text/plain", true),
            (b"<html>", "a.txt", "text/plain", true),
            (b"#!/bin/sh\n", "run", "text/plain", true),
            (b"%PDF-1.4\n", "a.txt", "application/pdf", false),
            (b"%PDF-1.4\n\xff\0", "a", "application/pdf", false),
            (OLE_FILE, "a.xls", "application/vnd.ms-excel", false),
            (OLE_FILE, "a.doc", "application/msword", false),
            (OLE_FILE, "Thumbs", OLE, false),
            (PNG, "a.png", "image/png", false),
            (PNG, "a.txt", "image/png", false),
            (b"\xff\xd8\xff\xe0\0", "x", "image/jpeg", false),
            (ZIP, "a.zip", "application/zip", false),
            (ZIP, "a", "application/zip", false),
            (
                ZIP,
                "a.docx",
                "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
                false,
            ),
            (
                ZIP,
                "a.xlsx",
                "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
                false,
            ),
            (
                ZIP,
                "a.pptx",
                "application/vnd.openxmlformats-officedocument.presentationml.presentation",
                false,
            ),
            (ZIP, "a.txt", "application/zip", false),
            (b"caf\xe9", "a.txt", "application/octet-stream", false),
            (b"\0\x01", "main.rs", "application/octet-stream", false),
            (b"\0\x01", "a.woff", "application/font-woff", false),
        ];
        for (bytes, name, mime_type, is_text) in table {
            let (content, found) = classify(bytes.to_vec(), name);
            assert_eq!(
                (found, content.as_text().is_some()),
                (mime_type, is_text),
                "{name:?} {bytes:?}"
            );
        }
    }
}
