use std::path::{Path, PathBuf};

use jp_resource::uri::{encode_argument, encode_program, percent_decode};

use super::words::{self, Unclosed};
use crate::{AttachError, Scheme};

/// A program with its arguments, which runs without a shell.
///
/// There are two forms. `cmd:PROGRAM ARGUMENT…` is split into words as a POSIX shell does, but
/// nothing is expanded. `cmd://PROGRAM?arg=ARGUMENT&arg=…` is a URL with percent-encoding; in its
/// query, a `+` is a space and `args` means `arg`. It may have a `description` for its resource. A
/// program with a `/` in it is relative to the workspace root; any other is looked up in `PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    uri: String,
    program: String,
    arguments: Vec<String>,
    description: Option<String>,
}

impl CommandLine {
    /// Parses either form.
    pub fn parse(input: &str) -> Result<Self, AttachError> {
        let Some((Scheme::Command, rest)) = Scheme::split(input) else {
            return Err(AttachError::invalid(input, "a command starts with `cmd:`"));
        };
        match rest.strip_prefix("//") {
            Some(url) => Self::from_url(input, url),
            None => Self::from_words(input, rest),
        }
        .and_then(Self::check)
        .map_err(|reason| AttachError::invalid(input, reason))
    }

    /// Returns the canonical URI. A URL is kept byte for byte; the other form is converted to a
    /// URL.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Returns the program, as it was written.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Returns the arguments.
    #[must_use]
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// Returns the description of the output, if there is one.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Returns the command line as a user would type it.
    #[must_use]
    pub fn name(&self) -> String {
        words::join(
            [&self.program]
                .into_iter()
                .chain(&self.arguments)
                .map(String::as_str),
        )
    }

    /// Returns the program to start: a name to look up, or a path below `root`.
    pub(super) fn executable(&self, root: &Path) -> PathBuf {
        let has_separator =
            self.program.contains('/') || (cfg!(windows) && self.program.contains('\\'));
        if has_separator {
            root.join(&self.program)
        } else {
            PathBuf::from(&self.program)
        }
    }

    fn from_words(input: &str, line: &str) -> Result<Self, String> {
        // Errors point to a character of the whole input.
        let at = input.len() - line.len();
        let mut words = words::split(line)
            .map_err(|unclosed| unclosed_reason(input, at, unclosed))?
            .into_iter();
        let program = words.next().unwrap_or_default();
        let arguments: Vec<String> = words.collect();
        let uri = uri(&program, &arguments);
        Ok(Self {
            uri,
            program,
            arguments,
            description: None,
        })
    }

    fn from_url(uri: &str, rest: &str) -> Result<Self, String> {
        if rest.contains('#') {
            return Err("write `#` in a cmd:// URL as `%23`".into());
        }
        let (program, query) = rest.split_once('?').unwrap_or((rest, ""));
        let program = decode(program)?;
        let mut command = Self {
            uri: uri.to_owned(),
            program,
            arguments: Vec::new(),
            description: None,
        };
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            command.add(parameter)?;
        }
        Ok(command)
    }

    /// Adds a parameter of the URL's query.
    fn add(&mut self, parameter: &str) -> Result<(), String> {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = decode(&value.replace('+', "%20"))?;
        match decode(name)?.as_str() {
            "arg" | "args" => self.arguments.push(value),
            "description" if self.description.is_some() => {
                return Err("it has two `description` parameters".into());
            }
            "description" => self.description = Some(value),
            name => {
                return Err(format!(
                    "{name:?} is not a parameter of a cmd:// URL; use `arg` for each argument and `description`, and write `&` in an argument as `%26`"
                ));
            }
        }
        Ok(())
    }

    fn check(self) -> Result<Self, String> {
        if self.program.is_empty() {
            return Err("it names no program; write `cmd:PROGRAM ARGUMENT…`".into());
        }
        if self.program.contains('\0')
            || self
                .arguments
                .iter()
                .any(|argument| argument.contains('\0'))
        {
            return Err("a command can't contain NUL".into());
        }
        Ok(self)
    }
}

fn uri(program: &str, arguments: &[String]) -> String {
    let mut uri = format!("cmd://{}", encode_program(program));
    for (index, argument) in arguments.iter().enumerate() {
        uri.push_str(if index == 0 { "?arg=" } else { "&arg=" });
        uri.push_str(&encode_argument(argument));
    }
    uri
}

fn decode(text: &str) -> Result<String, String> {
    percent_decode(text).map_err(|error| error.to_string())
}

/// Describes an unclosed quote with its place in the whole input. `line` is the offset of the
/// command line in it.
fn unclosed_reason(input: &str, line: usize, unclosed: Unclosed) -> String {
    // As much as helps to recognise the place.
    const SHOWN_CHARS: usize = 20;
    let (before, after) = input.split_at(line + unclosed.at);
    let (column, shown) = (
        before.chars().count() + 1,
        after.chars().take(SHOWN_CHARS).collect::<String>(),
    );
    let problem = if unclosed.mark == '\\' {
        "escapes nothing"
    } else {
        "is not closed"
    };
    format!(
        "the `{}` at character {column} {problem}: {shown}",
        unclosed.mark
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(input: &str) -> (String, Vec<String>, String) {
        let line = CommandLine::parse(input).unwrap_or_else(|error| panic!("{error}"));
        (line.program.clone(), line.arguments.clone(), line.uri)
    }

    #[test]
    fn shorthand_is_stored_as_a_url() {
        let table: [(&str, &str); 12] = [
            ("cmd:git diff --cached", "cmd://git?arg=diff&arg=--cached"),
            ("CMD: git  'a b'", "cmd://git?arg=a%20b"),
            ("cmd:true", "cmd://true"),
            ("cmd:scripts/x y", "cmd://scripts/x?arg=y"),
            ("cmd:/usr/bin/git", "cmd:///usr/bin/git"),
            ("cmd:'//x'", "cmd:////x"),
            (
                "cmd:g++ a+b=c&d#e%20",
                "cmd://g%2B%2B?arg=a%2Bb%3Dc%26d%23e%2520",
            ),
            ("cmd:a:b?c '' x", "cmd://a%3Ab%3Fc?arg=&arg=x"),
            ("cmd:sh -c 'echo $HOME'", "cmd://sh?arg=-c&arg=echo%20$HOME"),
            ("cmd:./é 🦀", "cmd://./%C3%A9?arg=%F0%9F%A6%80"),
            ("cmd:echo 'a\nb'", "cmd://echo?arg=a%0Ab"),
            ("cmd:rg #include", "cmd://rg?arg=%23include"),
        ];
        for (input, uri) in table {
            assert_eq!(read(input).2, uri, "{input:?}");
            assert_eq!(read(uri), read(input), "{input:?}");
        }
    }

    #[test]
    fn url_is_kept_byte_for_byte() {
        let table: [(&str, &str, &[&str]); 9] = [
            (
                "cmd://git?arg=diff&arg=--cached",
                "git",
                &["diff", "--cached"],
            ),
            (
                "cmd://git?args=diff&arg=%2D%2Dcached",
                "git",
                &["diff", "--cached"],
            ),
            ("cmd://scripts/x?arg=", "scripts/x", &[""]),
            ("cmd://scripts%2Fx?&arg=a+b&", "scripts/x", &["a b"]),
            ("cmd:///usr/bin/git", "/usr/bin/git", &[]),
            ("Cmd://g++?arg=a%2Bb=c", "g++", &["a+b=c"]),
            ("cmd://git?", "git", &[]),
            ("cmd://git?arg", "git", &[""]),
            ("cmd://git?arg=--format=%h", "git", &["--format=%h"]),
        ];
        for (uri, program, arguments) in table {
            let arguments = arguments.iter().map(ToString::to_string).collect();
            assert_eq!(read(uri), (program.to_owned(), arguments, uri.to_owned()));
        }
        let described = CommandLine::parse("cmd://git?description=What+I%20did&arg=diff").unwrap();
        assert_eq!(
            (described.description(), described.name()),
            (Some("What I did"), "git diff".into())
        );
    }

    #[test]
    fn mistakes_are_explained() {
        let table = [
            ("cmd:", "it names no program; write `cmd:PROGRAM ARGUMENT…`"),
            (
                "cmd:''",
                "it names no program; write `cmd:PROGRAM ARGUMENT…`",
            ),
            (
                "cmd://?arg=x",
                "it names no program; write `cmd:PROGRAM ARGUMENT…`",
            ),
            (
                "cmd:é 'git diff --cached | less",
                "the `'` at character 7 is not closed: 'git diff --cached |",
            ),
            (
                "cmd:git diff\\",
                "the `\\` at character 13 escapes nothing: \\",
            ),
            (
                "cmd://git?arg=a&b",
                r#""b" is not a parameter of a cmd:// URL; use `arg` for each argument and `description`, and write `&` in an argument as `%26`"#,
            ),
            (
                "cmd://git?description=a&description=b",
                "it has two `description` parameters",
            ),
            ("cmd://git?arg=#x", "write `#` in a cmd:// URL as `%23`"),
            ("cmd://git?arg=%ff", r#""%ff" does not decode to UTF-8"#),
            ("cmd://git?arg=%00", "a command can't contain NUL"),
            ("git diff", "a command starts with `cmd:`"),
        ];
        for (input, reason) in table {
            let error = CommandLine::parse(input).unwrap_err();
            assert_eq!(error.to_string(), format!("attach {input:?}: {reason}"));
            assert!(!error.is_unavailable());
        }
    }

    #[test]
    fn program_with_a_slash_is_relative_to_the_root() {
        let executable = |input| {
            CommandLine::parse(input)
                .unwrap()
                .executable(Path::new("/w"))
        };
        assert_eq!(executable("cmd:git"), Path::new("git"));
        assert_eq!(executable("cmd:./git"), Path::new("/w/./git"));
        assert_eq!(executable("cmd:/usr/bin/git"), Path::new("/usr/bin/git"));
    }

    proptest! {
        #[test]
        fn stored_command_is_the_typed_one(program in "[^\0]{1,12}", arguments in proptest::collection::vec("[^\0]{0,12}", 0..5)) {
            let all = || [&program].into_iter().chain(&arguments).map(String::as_str);
            let typed = CommandLine::parse(&format!("cmd: {}", words::join(all()))).unwrap();
            prop_assert_eq!((typed.program(), typed.arguments()), (program.as_str(), arguments.as_slice()));
            prop_assert!(typed.uri().is_ascii() && !typed.uri().contains(['#', ' ', '+', '\n']), "{}", typed.uri());
            prop_assert_eq!(CommandLine::parse(typed.uri()).unwrap(), typed.clone());
            let named = CommandLine::parse(&format!("cmd: {}", typed.name())).unwrap();
            prop_assert_eq!(named, typed);
        }

        #[test]
        fn reading_never_panics(input: String, url in "[/?&=+%#a-c2EF\0é']{0,16}") {
            let _ = (CommandLine::parse(&format!("cmd:{input}")), CommandLine::parse(&format!("cmd://{url}")));
        }
    }
}
