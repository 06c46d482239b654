use std::{fs, io, path::PathBuf};

use crate::{ConversationId, files};

/// Stores the current conversation: the one that the user last used in this workspace, and in this
/// terminal session if there is one.
#[derive(Debug, Clone)]
pub struct Sessions {
    directory: PathBuf,
    session: Option<String>,
}

const LAST: &str = "last";

impl Sessions {
    /// Makes the store in `directory` for a terminal session, if there is one.
    #[must_use]
    pub fn new(directory: PathBuf, session: Option<&str>) -> Self {
        Self {
            directory,
            session: session.map(|session| format!("session-{}", file_name(session))),
        }
    }

    /// Returns the current conversation. A new session continues with the last one of any session.
    #[must_use]
    pub fn current(&self) -> Option<ConversationId> {
        let names = self.session.as_deref().into_iter().chain([LAST]);
        names.filter_map(|name| self.read(name)).next()
    }

    /// Makes a conversation the current one.
    pub fn set_current(&self, id: ConversationId) -> io::Result<()> {
        let names = self.session.as_deref().into_iter().chain([LAST]);
        for name in names.filter(|name| self.read(name) != Some(id)) {
            files::replace_cache(&self.directory.join(name), format!("{id}\n").as_bytes())?;
        }
        Ok(())
    }

    fn read(&self, name: &str) -> Option<ConversationId> {
        fs::read_to_string(self.directory.join(name))
            .ok()?
            .trim()
            .parse()
            .ok()
    }
}

/// Replaces characters that a file's name can't have. A session's name may contain anything.
fn file_name(session: &str) -> String {
    session.replace(
        |c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c),
        "_",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_has_its_own_current_conversation() {
        let directory = tempfile::tempdir().unwrap();
        let sessions = |session| Sessions::new(directory.path().join("sessions"), session);
        let id = |text: &str| text.parse::<ConversationId>().unwrap();
        assert_eq!(sessions(None).current(), None);
        sessions(Some("/dev/pts/1:7"))
            .set_current(id("11"))
            .unwrap();
        sessions(Some("/dev/pts/2:8"))
            .set_current(id("12"))
            .unwrap();
        assert_eq!(sessions(Some("/dev/pts/1:7")).current(), Some(id("11")));
        assert_eq!(sessions(None).current(), Some(id("12")));
        assert_eq!(sessions(Some("new")).current(), Some(id("12")));
    }
}
