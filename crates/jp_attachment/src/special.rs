use std::fs::FileType;

use crate::SpecialFile;

/// Returns what kind of special file it is, if it is neither file, directory nor link.
pub(crate) fn special_file(kind: FileType) -> Option<SpecialFile> {
    let is_ordinary = kind.is_file() || kind.is_dir() || kind.is_symlink();
    (!is_ordinary).then(|| name(kind))
}

#[cfg(unix)]
fn name(kind: FileType) -> SpecialFile {
    use std::os::unix::fs::FileTypeExt;
    match kind {
        _ if kind.is_fifo() => SpecialFile::Pipe,
        _ if kind.is_socket() => SpecialFile::Socket,
        _ if kind.is_block_device() || kind.is_char_device() => SpecialFile::Device,
        _ => SpecialFile::Other,
    }
}

#[cfg(not(unix))]
fn name(_: FileType) -> SpecialFile {
    SpecialFile::Other
}
