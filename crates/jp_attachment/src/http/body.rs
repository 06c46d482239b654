use std::io::{self, ErrorKind, Write};

use flate2::write::MultiGzDecoder;

/// The content of a response: decompressed while it arrives, and never longer than allowed.
pub(super) enum Body {
    Plain(Capped),
    Gzip(Box<MultiGzDecoder<Capped>>),
}

/// A buffer with a limited length.
pub(super) struct Capped {
    bytes: Vec<u8>,
    limit: u64,
}

/// An error of receiving content.
#[derive(Debug)]
pub(super) enum BodyError {
    /// It is longer than allowed.
    TooLong,
    /// It does not decompress.
    Malformed(io::Error),
}

impl Body {
    /// Creates an empty body. `encoding` is the `Content-Encoding`; returns `None` if it is
    /// unknown.
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
        written.map_err(BodyError::from_io)
    }

    /// Returns the content. Fails if compressed content is cut off.
    pub(super) fn finish(self) -> Result<Vec<u8>, BodyError> {
        match self {
            Self::Plain(capped) => Ok(capped.bytes),
            Self::Gzip(decoder) => decoder
                .finish()
                .map(|capped| capped.bytes)
                .map_err(BodyError::from_io),
        }
    }
}

impl BodyError {
    /// Distinguishes the error of [`Capped`], which passes through the decoder, from the decoder's
    /// own.
    fn from_io(error: io::Error) -> Self {
        if error.kind() == ErrorKind::FileTooLarge {
            Self::TooLong
        } else {
            Self::Malformed(error)
        }
    }
}

impl Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The limit is checked before the bytes are kept, so a decompression bomb can't use more
        // memory.
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
