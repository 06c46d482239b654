use std::io::{self, ErrorKind, Write};

use flate2::write::MultiGzDecoder;

/// Content as it arrives, decompressed, and never longer than allowed.
pub(super) enum Body {
    Plain(Capped),
    Gzip(Box<MultiGzDecoder<Capped>>),
}

/// Takes so many bytes and no more.
pub(super) struct Capped {
    bytes: Vec<u8>,
    limit: u64,
}

/// Why content can't be taken.
#[derive(Debug)]
pub(super) enum BodyError {
    /// There is more than allowed.
    TooLong,
    /// It does not decompress.
    Malformed(io::Error),
}

impl Body {
    /// Starts with nothing; `encoding` is the `Content-Encoding`. There is none for one that is not known.
    pub(super) fn new(encoding: Option<&str>, limit: u64) -> Option<Self> {
        let capped = Capped {
            bytes: Vec::new(),
            limit,
        };
        match encoding.map(str::to_ascii_lowercase).as_deref() {
            None | Some("" | "identity") => Some(Self::Plain(capped)),
            Some("gzip" | "x-gzip") => Some(Self::Gzip(Box::new(MultiGzDecoder::new(capped)))),
            Some(_) => None,
        }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<(), BodyError> {
        let written = match self {
            Self::Plain(capped) => capped.write_all(chunk),
            Self::Gzip(decoder) => decoder.write_all(chunk),
        };
        written.map_err(BodyError::of)
    }

    /// Returns what arrived; compressed content must have its end.
    pub(super) fn finish(self) -> Result<Vec<u8>, BodyError> {
        match self {
            Self::Plain(capped) => Ok(capped.bytes),
            Self::Gzip(decoder) => decoder
                .finish()
                .map(|capped| capped.bytes)
                .map_err(BodyError::of),
        }
    }
}

impl BodyError {
    fn of(error: io::Error) -> Self {
        if error.kind() == ErrorKind::FileTooLarge {
            Self::TooLong
        } else {
            Self::Malformed(error)
        }
    }
}

impl Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.bytes.len() + bytes.len()) as u64 > self.limit {
            return Err(ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
