//! Lists of known programs: those that run the files that they are given, and those that only print them.

use std::{ffi::OsStr, path::Path};

/// Programs that only print files, whatever their options and operands.
///
/// These are not among them: `file` (`-C` writes), `sort` (`-o` writes, `--compress-program` runs), `tree` (`-o`),
/// `uniq` and `xxd` (they write to the second operand), `jq` (`-f` names a program).
pub(crate) const PRINTERS: [&str; 15] = [
    "cat",
    "cmp",
    "diff",
    "egrep",
    "fgrep",
    "grep",
    "head",
    "ls",
    "md5sum",
    "nl",
    "sha256sum",
    "stat",
    "tac",
    "tail",
    "wc",
];

/// Interpreters, and programs that start another program.
const RUNNERS: &[&str] = &[
    "R",
    "Rscript",
    "ansible-playbook",
    "ash",
    "bash",
    "bun",
    "busybox",
    "chroot",
    "chrt",
    "cmake",
    "cmd",
    "csh",
    "dart",
    "dash",
    "deno",
    "doas",
    "docker",
    "docker-compose",
    "dotnet",
    "dtach",
    "elixir",
    "elvish",
    "emacs",
    "entr",
    "env",
    "escript",
    "ex",
    "expect",
    "fish",
    "flock",
    "gdb",
    "gmake",
    "gnuplot",
    "go",
    "groovy",
    "guile",
    "ionice",
    "irb",
    "java",
    "jruby",
    "julia",
    "just",
    "ksh",
    "lldb",
    "ltrace",
    "lua",
    "luajit",
    "m4",
    "make",
    "mksh",
    "mono",
    "nice",
    "ninja",
    "node",
    "nodejs",
    "nohup",
    "nu",
    "nvim",
    "ocaml",
    "octave",
    "osascript",
    "parallel",
    "perl",
    "php",
    "podman",
    "powershell",
    "psql",
    "pwsh",
    "pypy",
    "python",
    "racket",
    "raku",
    "ruby",
    "runghc",
    "runhaskell",
    "runuser",
    "sbcl",
    "scala",
    "script",
    "setarch",
    "setsid",
    "sh",
    "ssh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "swift",
    "systemd-run",
    "taskset",
    "tclsh",
    "tcsh",
    "time",
    "timeout",
    "ts-node",
    "tsx",
    "unshare",
    "uv",
    "valgrind",
    "vi",
    "vim",
    "watch",
    "wish",
    "xargs",
    "yash",
    "zsh",
];

/// Returns whether a program runs files that its arguments name: an interpreter, or one that starts another program.
///
/// A version at the end of the name doesn't count: `python3.12`, `lua-5.4`.
pub(crate) fn runs_files(program: &str) -> bool {
    let name = base_name(program);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    RUNNERS.contains(&name) || RUNNERS.contains(&plain)
}

/// Returns the last part of a path: the name of a program.
pub(crate) fn base_name(program: &str) -> &str {
    Path::new(program)
        .file_name()
        .and_then(OsStr::to_str)
        .unwrap_or(program)
}
