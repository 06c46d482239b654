//! Finds the files of the workspace that a command line runs.
//!
//! The author of such a file decides what runs, and may be a stranger. So an approval of a command covers the command
//! line and the checksum of each of these files. The command can be a tool's, an MCP server's or an attachment's.

mod programs;

use std::{
    collections::HashSet,
    env,
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read},
    iter,
    path::{Component, Path, PathBuf},
};

use crate::scripts::programs::{PRINTERS, base_name, runs_files};
use jp_resource::Checksum;

/// Size of the pieces in which jp reads a larger file, so that a huge one doesn't fill the memory.
const PIECE_BYTES: u64 = 10_000_000;

/// A file of the workspace that a command line runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    /// Its name in the command line, or its path from the root.
    pub(crate) word: String,
    file: PathBuf,
}

/// The `PATH` that programs are looked up in.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SearchPath<'a> {
    /// A program of any directory in it may be a file of the workspace.
    Any(&'a OsStr),
    /// Programs of its absolute directories belong to the user, even below the workspace: an
    /// activated `.venv`, or `~/.local/bin` if the home directory is the workspace. Every workspace
    /// has its own relative directories.
    Users(&'a OsStr),
}

/// A program and its arguments, which start in the workspace root without a shell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandWords<'a> {
    pub(crate) program: &'a str,
    pub(crate) arguments: &'a [String],
}

impl CommandWords<'_> {
    /// Returns the files of the workspace that decide what runs, with programs of any directory in jp's `PATH`.
    pub(crate) fn scripts_in_path(self, root: &Path) -> Vec<Script> {
        self.scripts(root, env::var_os("PATH").as_deref().map(SearchPath::Any))
    }

    /// Returns the files of the workspace that decide what runs.
    ///
    /// An argument of an ordinary program is data, unless it looks like a script. An interpreter such as a shell may run
    /// any file that its arguments name. It is better to ask about data once too often than to run an unapproved file.
    pub(crate) fn scripts(self, root: &Path, path: Option<SearchPath<'_>>) -> Vec<Script> {
        let program = self.program_script(root, path);
        if program.is_none() && self.only_prints_files() {
            return Vec::new();
        }
        let directories = self.directories(root);
        let started = self.started_by_uv();
        let mut runs_any = program.is_some()
            || runs_files(self.program) && started.is_none()
            || self
                .arguments
                .iter()
                .any(|argument| starts_interpreter(argument));
        let mut scripts = Vec::from_iter(program);
        for (index, argument) in self.arguments.iter().enumerate() {
            let words = words(argument);
            // The name may be an ordinary word, as in `select time from runs`, so it counts only from this argument on.
            runs_any |= words.iter().any(|word| runs_files(word));
            let is_of_uv = started.is_some_and(|started| index <= started);
            let may_run = runs_any || is_of_uv || self.is_filter_program(index);
            let named = words
                .iter()
                .flat_map(|word| named_files(word, root, &directories));
            scripts.extend(named.filter(|script| may_run || looks_like_script(&script.file)));
        }
        let mut seen = HashSet::new();
        scripts.retain(|script| seen.insert((script.word.clone(), script.file.clone())));
        scripts
    }

    /// Returns the program, if it is a file of the workspace.
    fn program_script(self, root: &Path, path: Option<SearchPath<'_>>) -> Option<Script> {
        let has_separator =
            self.program.contains('/') || (cfg!(windows) && self.program.contains('\\'));
        let found = match has_separator {
            true => PathBuf::from(self.program),
            false => find_program(self.program, root, path)?,
        };
        Some(Script {
            word: self.program.to_owned(),
            file: workspace_file(root, &found)?,
        })
    }

    /// Returns whether an argument of `awk` or `sed` may be a program of theirs: it is an option, or follows one.
    fn is_filter_program(self, index: usize) -> bool {
        const PROGRAMS: [&str; 7] = ["awk", "gawk", "gsed", "mawk", "nawk", "original-awk", "sed"];
        PROGRAMS.contains(&base_name(self.program))
            && (self.is_option(index)
                || index
                    .checked_sub(1)
                    .is_some_and(|last| self.is_option(last)))
    }

    /// Returns whether an argument is an option; `--` only ends them.
    fn is_option(self, index: usize) -> bool {
        let argument = self.arguments.get(index);
        argument.is_some_and(|argument| argument.starts_with('-') && argument != "--")
    }

    /// Returns the index of the program in the arguments of `uv run`, if it is certain.
    ///
    /// The arguments after it are the program's. An argument before it may be a script (`-s FILE`) or name packages to
    /// install. uv also runs the program itself if it is a zip file, whatever its name.
    fn started_by_uv(self) -> Option<usize> {
        // A word after an option may be the option's value.
        let mut words = (0..self.arguments.len()).filter(|index| {
            let before = index.checked_sub(1);
            !self.arguments[*index].starts_with('-')
                && before.is_none_or(|before| !self.is_option(before))
        });
        words.find(|index| base_name(self.program) == "uv" && self.arguments[*index] == "run")?;
        words.next()
    }

    /// Returns the directories in which a program may look for a file: the root, those above it, and those that the
    /// words name, as in `cd tools && ./gen`.
    fn directories(self, root: &Path) -> Vec<PathBuf> {
        // `~/project/run` starts at the home directory, which may be above the workspace.
        let mut directories: Vec<_> = root.ancestors().map(Path::to_owned).collect();
        for word in self.arguments.iter().flat_map(|argument| words(argument)) {
            for name in spellings(&word) {
                let below = directories
                    .iter()
                    .filter_map(|directory| directory.join(name).canonicalize().ok());
                let new: Vec<_> = below
                    .filter(|below| below.is_dir() && !directories.contains(below))
                    .collect();
                directories.extend(new);
            }
        }
        directories
    }

    /// Returns whether the program only prints the files that its arguments name.
    ///
    /// No option makes one of these programs run another program or write a file, except those that are refused here. A
    /// line for a shell is not parsed, because `cat data >.git/config; git diff` runs what the data says.
    fn only_prints_files(self) -> bool {
        const GIT: [&str; 6] = ["blame", "diff", "log", "ls-files", "show", "status"];
        match (self.program, self.arguments) {
            ("git", arguments) => {
                let command = arguments.iter().find(|argument| *argument != "--no-pager");
                command.is_some_and(|command| GIT.contains(&&**command))
                    // `--output` writes a file, and git accepts it abbreviated.
                    && !arguments
                        .iter()
                        .any(|argument| argument.starts_with("--o") && argument != "--oneline")
            }
            // These options name a program.
            ("rg", arguments) => !arguments.iter().any(|argument| {
                argument.starts_with("--pre") || argument.starts_with("--hostname-bin")
            }),
            // Only line numbers and `p`: other commands of `sed` write files or run programs.
            ("sed", [option, lines, files @ ..]) => {
                option == "-n"
                    && lines
                        .chars()
                        .all(|c| c.is_ascii_digit() || ",;$p".contains(c))
                    && !files.iter().any(|file| file.starts_with('-'))
            }
            (program, _) => PRINTERS.contains(&program),
        }
    }
}

/// Returns the checksums of files for the text of an approval. Reads the files whole.
///
/// jp stores checksums of such texts, so a change of the wording would void all approvals.
pub(crate) fn describe_content(scripts: &[Script]) -> String {
    let mut text = String::new();
    for Script { word, file } in scripts {
        // An unreadable file counts as empty. It needs a new approval as soon as it is readable.
        let checksum = checksum(file).unwrap_or_else(|_| Checksum::compute(b""));
        text += &format!("; {word} as it is now ({checksum})");
    }
    text
}

/// Returns the names of the files, for people.
pub(crate) fn names(scripts: &[Script]) -> String {
    scripts
        .iter()
        .map(|script| script.word.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Returns whether an argument is an interpreter, its command line, or an option that names it.
///
/// The file that it runs may come before it: `find run -exec sh {} ;`, `rg x data --pre=sh`.
fn starts_interpreter(argument: &str) -> bool {
    if argument.starts_with('-') || !argument.contains(char::is_whitespace) {
        return words(argument).iter().any(|word| runs_files(word));
    }
    // Variables and `exec` may come before the program: `LANG=C exec sh`.
    argument
        .split_whitespace()
        .find(|word| *word != "exec" && !word.contains('='))
        .is_some_and(runs_files)
}

/// Returns an argument with its pieces, and the pieces of a short option's value.
fn words(argument: &str) -> Vec<String> {
    let option = argument
        .strip_prefix('-')
        .filter(|option| !option.starts_with('-'));
    // The value may be a line itself (`tar '-Ish run'`), but not a further option: `-a-a-a` is one with a long value.
    let value = option.and_then(|option| option.get(1..));
    let lines = iter::once(argument).chain(value);
    let mut seen = HashSet::new();
    lines
        .flat_map(|line| iter::once(line.to_owned()).chain(pieces(line)))
        .filter(|word| !word.is_empty() && seen.insert(word.clone()))
        .collect()
}

/// Returns the pieces of a line that may be paths: those of a line for a shell, and of `--option=FILE`.
fn pieces(line: &str) -> Vec<String> {
    // The first split keeps `a=b`, which may be the name of a file. Other white space of Unicode is part of a word.
    let mut pieces = split_line(line, " \t\n;|&<>()'\"`$");
    pieces.extend(split_line(line, " \t\n;|&<>()'\"`$[]{}=,:!"));
    // Quotes and backslashes may split or join the words of a path.
    let plain: HashSet<_> = line.split([' ', '\t', '\n']).collect();
    let unquoted = shlex::split(line).unwrap_or_default().into_iter();
    pieces.extend(unquoted.filter(|word| !plain.contains(word.as_str())));
    pieces
}

/// Splits a line for a shell, and leaves out the files that it only writes: those after `>`.
fn split_line(line: &str, separators: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut before = "";
    let mut rest = line;
    while !rest.is_empty() {
        let (gap, after) =
            rest.split_at(rest.find(|c| !separators.contains(c)).unwrap_or(rest.len()));
        let (piece, after) = after.split_at(
            after
                .find(|c| separators.contains(c))
                .unwrap_or(after.len()),
        );
        // The end of a line ends a redirection, so a `>` before it belongs to a comment.
        let redirects = gap.trim_end_matches([' ', '\t', '&', '|']);
        // `<>` also opens a file for reading.
        let is_written =
            redirects.ends_with('>') && !redirects.ends_with("<>") && !before.ends_with('\\');
        // In `$HOME/x`, the path below the variable counts too.
        let piece_below = piece
            .split_once('/')
            .filter(|_| gap.ends_with('$'))
            .map(|(_, below)| below);
        pieces.extend(
            [Some(piece), piece_below]
                .into_iter()
                .flatten()
                .filter(|_| !is_written)
                .map(str::to_owned),
        );
        (before, rest) = (piece, after);
    }
    pieces
}

/// Returns a word, and the path in it that follows a variable, a command or `~`: `"$PWD"/x`, `~/x`.
fn spellings(word: &str) -> impl Iterator<Item = &str> {
    iter::once(word).chain(word.strip_prefix('/').or_else(|| word.strip_prefix("~/")))
}

/// Returns the files of the workspace that a word names, from each of the directories. The first of these is the root.
fn named_files(word: &str, root: &Path, directories: &[PathBuf]) -> Vec<Script> {
    let mut scripts: Vec<Script> = Vec::new();
    for name in spellings(word) {
        for directory in directories {
            let named = directory.join(name);
            let Some(file) = workspace_file(root, &named) else {
                continue;
            };
            // An empty file runs nothing, and filling it is a change.
            if is_empty(&file) || scripts.iter().any(|script| script.file == file) {
                continue;
            }
            let word = match without_dots(&named).strip_prefix(root) {
                Ok(path) if directory != root => path.display().to_string(),
                _ => name.to_owned(),
            };
            scripts.push(Script { word, file });
        }
    }
    scripts
}

/// Returns the file of a path from the root, if it is in the workspace or a link in the workspace leads to it.
fn workspace_file(root: &Path, path: &Path) -> Option<PathBuf> {
    let named = root.join(path);
    let file = named.canonicalize().ok().filter(|file| file.is_file())?;
    (file.starts_with(root) || without_dots(&named).starts_with(root)).then_some(file)
}

/// Removes `.` and `..` from a path without reading the file system.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => _ = plain.pop(),
            component => plain.push(component),
        }
    }
    plain
}

/// Looks up a program that may be a file of the workspace.
///
/// Like the system, it takes the first match in `PATH`, and a relative directory from where the
/// program starts. If this match belongs to the user, a later one doesn't run.
fn find_program(name: &str, root: &Path, search: Option<SearchPath<'_>>) -> Option<PathBuf> {
    let (SearchPath::Any(path) | SearchPath::Users(path)) = search?;
    let program = env::split_paths(path)
        .map(|directory| (directory.is_absolute(), root.join(directory).join(name)))
        .find(|(_, file)| file.is_file() && is_executable(file));
    let (is_absolute, file) = program?;
    let is_users = matches!(search, Some(SearchPath::Users(_))) && is_absolute;
    (!is_users).then_some(file)
}

fn is_empty(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|metadata| metadata.len() == 0)
}

/// Returns whether a file is executable, or is a script by its extension or its first line.
fn looks_like_script(file: &Path) -> bool {
    const EXTENSIONS: [&str; 32] = [
        "awk", "bash", "bat", "cjs", "cmd", "csh", "cts", "el", "exp", "fish", "groovy", "jl",
        "jq", "js", "ksh", "lua", "mjs", "mk", "mts", "php", "pl", "ps1", "py", "r", "rb", "sed",
        "sh", "sql", "tcl", "ts", "vim", "zsh",
    ];
    let extension = file
        .extension()
        .and_then(OsStr::to_str)
        .map(str::to_ascii_lowercase);
    extension.is_some_and(|extension| EXTENSIONS.contains(&&*extension))
        || is_executable(file)
        || has_shebang(file)
}

fn has_shebang(file: &Path) -> bool {
    let mut first = [0; 2];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut first));
    read.is_ok() && first == *b"#!"
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(file).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok()
}

/// Returns the checksum of a file, or of the checksums of its pieces if it is large.
fn checksum(path: &Path) -> io::Result<Checksum> {
    let mut file = File::open(path)?;
    let mut pieces = Vec::new();
    let mut piece = Vec::new();
    while file.by_ref().take(PIECE_BYTES).read_to_end(&mut piece)? > 0 {
        pieces.push(Checksum::compute(&piece));
        piece.clear();
    }
    Ok(match pieces[..] {
        [] => Checksum::compute(b""),
        [only] => only,
        ref several => Checksum::compute(
            &several
                .iter()
                .flat_map(Checksum::as_bytes)
                .copied()
                .collect::<Vec<u8>>(),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace with scripts, data and links.
    fn workspace() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap().join("w");
        fs::create_dir_all(root.join("bin")).unwrap();
        for (path, text) in [
            ("a.py", "print()\n"),
            ("run", "#!/bin/sh\n"),
            ("data", "text\n"),
            ("bin/tool", "#!/bin/sh\n"),
            ("empty", ""),
            ("../outside.sh", "echo\n"),
        ] {
            fs::write(root.join(path), text).unwrap();
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::{PermissionsExt as _, symlink};
            fs::set_permissions(root.join("bin/tool"), fs::Permissions::from_mode(0o755)).unwrap();
            symlink("../outside.sh", root.join("link.sh")).unwrap();
        }
        (directory, root)
    }

    fn found(line: &str, root: &Path, path: &str) -> Vec<String> {
        let words = shlex::split(line).unwrap();
        let command = CommandWords {
            program: &words[0],
            arguments: &words[1..],
        };
        let path = Some(SearchPath::Any(OsStr::new(path)));
        command
            .scripts(root, path)
            .into_iter()
            .map(|script| script.word)
            .collect()
    }

    #[test]
    #[cfg(unix)]
    fn files_of_the_workspace_are_found() {
        let (_directory, root) = workspace();
        let inside = root.join("a.py");
        let absolute = inside.to_str().unwrap();
        for (line, path, expected) in [
            ("sh run", "/usr/bin", &["run"][..]),
            ("./run", "/usr/bin", &["./run"]),
            ("bin/../run x", "/usr/bin", &["bin/../run"]),
            ("python3 -u a.py data", "/usr/bin", &["a.py", "data"]),
            ("env X=1 ./run", "/usr/bin", &["./run"]),
            ("node --require=./a.py x", "/usr/bin", &["./a.py"]),
            (
                "sh -c 'cd .; ./run|sort >data && . ./a.py'",
                "/usr/bin",
                &["./run", "./a.py"],
            ),
            ("sh link.sh", "/usr/bin", &["link.sh"]),
            ("sh ../outside.sh", "/usr/bin", &[]),
            ("sh no.sh bin", "/usr/bin", &[]),
            ("tool", "/usr/bin", &[]),
            ("tool", "/usr/bin:bin", &["tool"]),
            ("data", ".", &[]),
        ] {
            assert_eq!(found(line, &root, path), expected, "{line}");
        }
        assert_eq!(found(&format!("sh {absolute}"), &root, "/bin"), [absolute]);
    }

    #[test]
    #[cfg(unix)]
    fn printed_files_are_data() {
        let (_directory, root) = workspace();
        for (line, path, expected) in [
            ("cat data run", "/usr/bin", &[][..]),
            ("git diff a.py", "/usr/bin", &[]),
            (
                "git -c core.pager=./run diff a.py",
                "/usr/bin",
                &["./run", "a.py"],
            ),
            ("git bisect start ./run", "/usr/bin", &["./run"]),
            ("./run data", "/usr/bin", &["./run", "data"]),
            ("python3 a.py data", "/usr/bin", &["a.py", "data"]),
        ] {
            assert_eq!(found(line, &root, path), expected, "{line}");
        }
        fs::rename(root.join("bin/tool"), root.join("bin/cat")).unwrap();
        assert_eq!(found("cat data", &root, "bin:/usr/bin"), ["cat", "data"]);
    }

    #[test]
    fn any_file_in_a_line_for_a_shell_may_run() {
        let (_directory, root) = workspace();
        for (line, expected) in [
            ("sh -c '. ./data && x'", &["./data"][..]),
            ("sh -c 'source data; zsh \"data\"'", &["data"]),
            ("sh -c 'python3 data 2>&1 >run >> run &>run'", &["data"]),
            ("sh -c 'sh <data'", &["data"]),
            ("sh -c 'sh <>data'", &["data"]),
            ("m4 data", &["data"]),
            ("rg --hostname-bin=bin/tool x", &["bin/tool"]),
            ("sh -c 'echo x >>data; wc -l <data'", &["data"]),
            ("sh -c '# >\n./data'", &["./data"]),
            ("sh -c 'cat data | head'", &["data"]),
            ("sh -c 'cat <data | sh'", &["data"]),
            ("sh -c 'echo $(. ./data)'", &["./data"]),
            ("sh -c 'cd bin && ./tool'", &["bin/tool"]),
            (
                "sh -c '. $PWD/data; . \"${PWD}\"/bin/tool'",
                &["data", "bin/tool"],
            ),
            ("sh -c './da\"\"ta'", &["./data"]),
            ("env -C bin ./tool", &["bin/tool"]),
            ("env --chdir=bin tool", &["bin/tool"]),
            ("env PATH=bin:/bin tool", &["bin/tool"]),
            ("sh -c 'touch empty; . data'", &["data"]),
            ("make -fdata", &["data"]),
            ("python3.12 -c 'open(\"data\")'", &["data"]),
            ("/usr/bin/timeout 5 sh data", &["data"]),
            ("unknown-wrapper sh data", &["data"]),
            ("unknown-wrapper 'sh data'", &["data"]),
            ("find data -exec sh {} ;", &["data"]),
            ("git -c alias.x='!sh data' x", &["data"]),
            ("tar '-Ish data' -cf x y", &["data"]),
            ("ssh -F data host", &["data"]),
            ("bash -c 'printf -v PATH bin; cat data'", &["data"]),
            ("unknown-wrapper data 'sh {}'", &["data"]),
            ("unknown-wrapper 'cat data | sh'", &["data"]),
            ("unknown-wrapper 'exec sh' data", &["data"]),
        ] {
            assert_eq!(found(line, &root, "/usr/bin"), expected, "{line}");
        }
    }

    #[test]
    fn script_may_have_an_unusual_name_or_path() {
        let (_directory, root) = workspace();
        for name in ["a=b", "a,b:c", "x[1]", "nbsp\u{a0}"] {
            fs::write(root.join(name), "echo\n").unwrap();
            assert!(
                found(&format!("sh -c 'true;./{name}'"), &root, "/usr/bin")
                    .contains(&format!("./{name}"))
            );
        }
        // The parent of the workspace is a home directory here.
        for (line, expected) in [
            ("sh -c '~/w/data'", "data"),
            ("sh -c '\"$HOME\"/w/data'", "data"),
            ("sh -c 'cd ~/w/bin && ./tool'", "bin/tool"),
        ] {
            assert_eq!(found(line, &root, "/usr/bin"), [expected], "{line}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn lines_that_only_print_run_nothing() {
        let (_directory, root) = workspace();
        for (line, expected) in [
            ("sed -n 1,9p a.py", &[][..]),
            ("sed -n 1p x -f data", &["data"]),
            ("sed -n '1e sh data' x", &["data"]),
            ("tail -n 5 a.py", &[]),
            ("git --no-pager diff a.py", &[]),
            ("git log --oneline a.py", &[]),
            ("sh -c 'git diff | head'", &[]),
            ("rg --pre a.py x", &["a.py"]),
            // These may write what git, for one, runs next.
            ("git log --output=a.py", &["a.py"]),
            ("git log --outp a.py", &["a.py"]),
            ("sort -o x a.py", &["a.py"]),
            ("sort --compress-prog=./run data", &["./run"]),
            ("uniq a.py x", &["a.py"]),
            ("tree -o x a.py", &["a.py"]),
            ("file -C -m a.py", &["a.py"]),
            ("sh -c 'cat data > .git/config; git status'", &["data"]),
            ("sh -c 'sort -o .git/config data; git status'", &["data"]),
            ("sh -c 'uniq data .git/config; git diff'", &["data"]),
            // `{cat` is a word, and `>|` writes to a file.
            ("sh -c 'rg x {cat --pre ./run notes'", &["./run"]),
            ("sh -c 'rg x notes >|cat --pre ./run'", &["./run"]),
            ("sh -c 'rg x notes >&cat --pre ./run'", &["./run"]),
            ("sh -c 'sort x {cat --compress-program=./run'", &["./run"]),
            ("sh -c 'rg --pre ./run x'", &["./run"]),
            ("sh -c 'rg \"--pre\" ./run x'", &["./run"]),
            ("bash -c \"rg $'\\x2d-pre' ./run x\"", &["./run"]),
        ] {
            assert_eq!(found(line, &root, "/usr/bin"), expected, "{line}");
        }
        // A directory of `PATH` that is relative depends on where the line is by then.
        fs::rename(root.join("bin/tool"), root.join("bin/cat")).unwrap();
        assert_eq!(
            found("sh -c 'cd bin; cat data'", &root, ".:/usr/bin"),
            ["bin/cat", "data"]
        );
    }

    #[test]
    fn long_argument_is_split_once() {
        let (_directory, root) = workspace();
        let options = "-a".repeat(500_000);
        assert_eq!(
            found(&format!("tool {options} a.py"), &root, "/usr/bin"),
            ["a.py"]
        );
        let distinct: String = (100_000..250_000)
            .map(|number| format!("{number} "))
            .collect();
        assert_eq!(words(&distinct).len(), 150_001);
    }

    #[test]
    fn data_of_an_ordinary_program_may_change() {
        let (_directory, root) = workspace();
        fs::write(root.join("filter.jq"), ".\n").unwrap();
        for (line, expected) in [
            ("jq .version data", &[][..]),
            ("jq -f filter.jq data", &["filter.jq"]),
            ("sed -n 1,9p data", &[]),
            ("sed -f data a.txt", &["data"]),
            ("awk -fdata a.txt", &["data"]),
            ("rg print a.py data", &[]),
            ("rg --pre ./run x data", &["./run"]),
            ("sqlite3 data 'select 1'", &[]),
            ("sqlite3 data 'select time from runs'", &[]),
            ("sqlite3 --init=data data", &[]),
            ("rg x data --pre=sh", &["data"]),
            ("tar -xf data --to-command=sh", &["data"]),
            ("sort data --compress-program=sh", &["data"]),
            ("unknown data --exec='sh {}'", &["data"]),
            ("unknown data 'exec sh {}'", &["data"]),
            ("unknown data shell=/bin/sh", &["data"]),
            ("original-awk -f data a.txt", &["data"]),
            ("unknown data 'LANG=C sh {}'", &["data"]),
            ("curl -d @data x", &[]),
            ("lint a.py", &["a.py"]),
        ] {
            assert_eq!(found(line, &root, "/usr/bin"), expected, "{line}");
        }
    }

    #[test]
    fn data_of_a_launched_program_may_change() {
        let (_directory, root) = workspace();
        fs::remove_file(root.join("run")).unwrap();
        for (line, expected) in [
            ("uv run notes --db data", &[][..]),
            ("uv run --with notes notes -- data", &[]),
            ("uv run -q -- notes data", &[]),
            ("uv tool run notes data", &[]),
            ("uvx notes --db=data", &[]),
            ("npx -y notes data", &[]),
            ("uv run notes a.py", &["a.py"]),
            ("uv run data", &["data"]),
            ("uv run python -m notes data", &["data"]),
            ("uv run -s data notes", &["data"]),
            ("uv run --script=data", &["data"]),
            ("uv --directory run run -s data", &["data"]),
            ("uv pip install -r data", &["data"]),
            // `notes` may be the value of `-q`.
            ("uv run -q notes data", &["data"]),
        ] {
            assert_eq!(found(line, &root, "/usr/bin"), expected, "{line}");
        }
    }

    #[test]
    fn change_at_the_end_of_a_large_file_changes_its_checksum() {
        let (_directory, root) = workspace();
        let mut bytes = vec![0; usize::try_from(PIECE_BYTES).unwrap() + 1];
        let write_and_sum = |bytes: &[u8]| {
            fs::write(root.join("data"), bytes).unwrap();
            checksum(&root.join("data")).unwrap()
        };
        assert_eq!(write_and_sum(&bytes[1..]), Checksum::compute(&bytes[1..]));
        let before = write_and_sum(&bytes);
        *bytes.last_mut().unwrap() = 1;
        assert_ne!(write_and_sum(&bytes), before);
    }
}
