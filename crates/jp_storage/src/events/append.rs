//! Appends events to a file.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
};

/// Returns the text of a new file with these events.
#[must_use]
pub fn whole_file(events: &[String]) -> String {
    match events {
        [] => "[\n]\n".to_owned(),
        events => ["[\n", &events.join(",\n"), "\n]\n"].concat(),
    }
}

/// Appended events that aren't durable yet.
#[derive(Debug)]
pub struct Appended {
    file: File,
    end: End,
}

/// Appends events to a file that is open for reading and writing.
///
/// The cost depends on the size of the events, not of the file. The file must end in `]`. If writing
/// fails, the old end is restored.
pub fn append(mut file: File, events: &[String]) -> io::Result<Appended> {
    let end = find_end(&mut file)?;
    let separator = if end.is_empty_array { "\n" } else { ",\n" };
    let text = [separator, &events.join(",\n"), "\n]\n"].concat();
    let written = write_at(&mut file, end.offset, text.as_bytes());
    let mut appended = Appended { file, end };
    written.or_else(|error| appended.take_back(error))?;
    Ok(appended)
}

impl Appended {
    /// Makes the events durable. If that fails, they are removed.
    pub fn sync(mut self) -> io::Result<()> {
        self.file.sync_data().or_else(|error| self.take_back(error))
    }

    fn take_back(&mut self, error: io::Error) -> io::Result<()> {
        restore(&mut self.file, &self.end)?;
        Err(error)
    }
}

#[derive(Debug)]
struct End {
    /// The offset for the next event: after the last one, or after the opening bracket.
    offset: u64,
    is_empty_array: bool,
}

/// Finds the end of the last event from the file's last bytes.
fn find_end(file: &mut File) -> io::Result<End> {
    // Enough for every file that jp wrote: the end is `\n]\n`.
    const WINDOW: u64 = 64;
    let length = file.seek(SeekFrom::End(0))?;
    let mut window = WINDOW.min(length);
    loop {
        let start = length - window;
        let mut bytes = vec![0; usize::try_from(window).map_err(io::Error::other)?];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut bytes)?;
        let trimmed = bytes.trim_ascii_end();
        let before = trimmed
            .strip_suffix(b"]")
            .unwrap_or(trimmed)
            .trim_ascii_end();
        // Only whitespace so far, as after formatting by hand.
        if before.is_empty() && window < length {
            window = (window * 8).min(length);
        } else if trimmed.ends_with(b"]") && !before.is_empty() {
            let offset = start + before.len() as u64;
            return Ok(End {
                offset,
                is_empty_array: before.ends_with(b"["),
            });
        } else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the file does not end in `]`",
            ));
        }
    }
}

fn write_at(file: &mut File, offset: u64, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(bytes)?;
    // The old end was longer if another program formatted the file.
    let end = offset + bytes.len() as u64;
    if file.metadata()?.len() > end {
        file.set_len(end)
    } else {
        Ok(())
    }
}

fn restore(file: &mut File, end: &End) -> io::Result<()> {
    file.set_len(end.offset)?;
    file.seek(SeekFrom::Start(end.offset))?;
    file.write_all(b"\n]\n")?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::parse::parse;

    fn open(path: &std::path::Path) -> File {
        File::options().read(true).write(true).open(path).unwrap()
    }

    fn appended(before: &str, events: &[&str]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.json");
        std::fs::write(&path, before).unwrap();
        let events: Vec<String> = events.iter().map(ToString::to_string).collect();
        append(open(&path), &events).unwrap().sync().unwrap();
        std::fs::read_to_string(&path).unwrap()
    }

    #[test]
    fn event_follows_the_last_one() {
        let file = whole_file(&["{\"a\":1}".to_owned()]);
        assert_eq!(
            appended(&file, &["{\"b\":2}", "{\"c\":3}"]),
            "[\n{\"a\":1},\n{\"b\":2},\n{\"c\":3}\n]\n"
        );
        assert_eq!(appended(&whole_file(&[]), &["{}"]), "[\n{}\n]\n");
        assert_eq!(appended("[]", &["{}"]), "[\n{}\n]\n");
    }

    #[test]
    fn hand_formatted_file_is_appended_to() {
        let spaces = " ".repeat(1000);
        let file = format!("[\n  {{ \"a\": 1 }}{spaces}\n]{spaces}\n");
        let text = appended(&file, &["{}"]);
        assert_eq!(text, "[\n  { \"a\": 1 },\n{}\n]\n");
        assert_eq!(parse(text.as_bytes()).unwrap().events.len(), 2);
    }

    #[test]
    fn file_without_its_end_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.json");
        std::fs::write(&path, "[\n{\"a\":").unwrap();
        assert!(append(open(&path), &["{}".to_owned()]).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[\n{\"a\":");
    }
}
