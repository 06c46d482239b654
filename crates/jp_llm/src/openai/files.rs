//! The files beside images and PDF that the API reads (its guide "File inputs", "Accepted file types").

use std::borrow::Cow;

/// Office documents and spreadsheets, each with its usual extension.
const OFFICE: [(&str, &str); 23] = [
    ("application/csv", "csv"),
    ("application/msword", "doc"),
    ("application/pdf", "pdf"),
    ("application/rtf", "rtf"),
    ("application/vnd.apple.iwork", "iwork"),
    ("application/vnd.apple.keynote", "key"),
    ("application/vnd.apple.pages", "pages"),
    ("application/vnd.ms-excel", "xls"),
    ("application/vnd.ms-powerpoint", "ppt"),
    ("application/vnd.oasis.opendocument.text", "odt"),
    (
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "pptx",
    ),
    (
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "xlsx",
    ),
    (
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "docx",
    ),
    ("application/x-iif", "iif"),
    ("message/rfc822", "eml"),
    ("text/calendar", "ics"),
    ("text/csv", "csv"),
    ("text/rtf", "rtf"),
    ("text/srt", "srt"),
    ("text/tsv", "tsv"),
    ("text/vtt", "vtt"),
    ("text/x-iif", "iif"),
    ("text/x-vcard", "vcf"),
];

/// Code and other text in an encoding that is not UTF-8: all else of it goes as text.
#[rustfmt::skip]
const TEXT: [&str; 51] = [
    "application/javascript", "application/json", "application/toml", "application/typescript",
    "application/x-ndjson", "application/x-patch", "application/x-powershell", "application/x-rust",
    "application/x-scala", "application/x-sql", "application/x-yaml", "application/yaml", "text/css",
    "text/html", "text/javascript", "text/jsx", "text/markdown", "text/plain", "text/tsx", "text/vbscript",
    "text/x-asm", "text/x-bash", "text/x-c", "text/x-c++", "text/x-clojure", "text/x-csharp", "text/x-diff",
    "text/x-elixir", "text/x-erlang", "text/x-go", "text/x-golang", "text/x-haskell", "text/x-java",
    "text/x-kotlin", "text/x-lisp", "text/x-lua", "text/x-makefile", "text/x-patch", "text/x-perl",
    "text/x-php", "text/x-python", "text/x-r", "text/x-rst", "text/x-ruby", "text/x-rust", "text/x-scala",
    "text/x-sh", "text/x-shellscript", "text/x-sql", "text/x-swift", "text/xml",
];

/// Returns whether the API reads files of a type, which is without parameters and in lower case.
pub(super) fn is_read(mime: &str) -> bool {
    extension(mime).is_some()
}

/// Returns a file's name with an extension, by which the API tells types apart too.
pub(super) fn with_extension<'n>(name: &'n str, mime: &str) -> Cow<'n, str> {
    match extension(mime) {
        Some(extension) if !name.contains('.') => format!("{name}.{extension}").into(),
        _ => name.into(),
    }
}

fn extension(mime: &str) -> Option<&'static str> {
    let office = OFFICE
        .iter()
        .find(|(known, _)| *known == mime)
        .map(|(_, extension)| *extension);
    office.or_else(|| TEXT.contains(&mime).then_some("txt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readable_types_are_told_from_others() {
        assert!(
            ["application/msword", "text/csv", "text/x-rust"]
                .into_iter()
                .all(is_read)
        );
        assert!(
            ![
                "application/zip",
                "audio/wav",
                "application/octet-stream",
                ""
            ]
            .into_iter()
            .any(is_read)
        );
    }

    #[test]
    fn extension_is_added_where_there_is_none() {
        assert_eq!(with_extension("spec", "application/pdf"), "spec.pdf");
        assert_eq!(with_extension("spec.dot", "application/msword"), "spec.dot");
        assert_eq!(with_extension("main", "text/x-rust"), "main.txt");
        assert_eq!(with_extension("blob", "application/zip"), "blob");
    }
}
