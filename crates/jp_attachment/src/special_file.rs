use std::fs::FileType;

use crate::SpecialFile;

/// Returns the kind of special file, if it is neither a file, a directory nor a link.
pub(crate) fn special_file(kind: FileType) -> Option<SpecialFile> {
    let is_ordinary = kind.is_file() || kind.is_dir() || kind.is_symlink();
    (!is_ordinary).then(|| classify(kind))
}

#[cfg(unix)]
fn classify(kind: FileType) -> SpecialFile {
    use std::os::unix::fs::FileTypeExt;
    match kind {
        _ if kind.is_fifo() => SpecialFile::Pipe,
        _ if kind.is_socket() => SpecialFile::Socket,
        _ if kind.is_block_device() || kind.is_char_device() => SpecialFile::Device,
        _ => SpecialFile::Other,
    }
}

#[cfg(not(unix))]
fn classify(_: FileType) -> SpecialFile {
    SpecialFile::Other
}
