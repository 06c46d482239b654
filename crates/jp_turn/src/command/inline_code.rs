//! Detects a model's arguments inside code that a command passes to an interpreter: `sh -c 'grep
//! {{…}} notes'`.
//!
//! An argument goes into its word unchanged. The interpreter reads the whole word as code, so a
//! model that writes the argument could run anything.

mod awk_and_sed;

use super::template::holds_words_of_model;

/// The way in which an interpreter receives code.
#[derive(Clone, Copy)]
enum Code {
    /// As the first word after its options, if `c` is among these.
    Shell,
    /// With an option.
    Options(Options),
    /// As the first operand or with an option, among options that may hide which word is code.
    Awk,
    Sed,
    /// As all words after one of these options.
    Rest(&'static [&'static str]),
}

/// The options of a program that decide whether a word is code, a value or an operand.
#[derive(Clone, Copy)]
struct Options {
    /// The letters whose value is code, glued to them or as the next word.
    code: &'static str,
    /// Whole options whose value is code, after `=` or as the next word.
    code_words: &'static [&'static str],
    /// The letters that have another value, glued to them or as the next word.
    values: &'static str,
    /// Whole options that have another value.
    value_words: &'static [&'static str],
    /// The letters to which a value is always glued.
    glued: &'static str,
    /// The letters after whose value all words are the script's.
    last: &'static str,
}

const NONE: Options = Options {
    code: "",
    code_words: &[],
    values: "",
    value_words: &[],
    glued: "",
    last: "",
};

const PYTHON: Options = Options {
    code: "c",
    values: "WXm",
    value_words: &["--check-hash-based-pycs"],
    last: "cm",
    ..NONE
};
/// `-M` and `-m` begin programs, too.
const PERL: Options = Options {
    code: "eEMm",
    values: "I",
    glued: "CDFVix",
    ..NONE
};
const RUBY: Options = Options {
    code: "e",
    values: "CEIr",
    value_words: &["--encoding", "--external-encoding", "--internal-encoding"],
    glued: "FKTWix",
    ..NONE
};
const LUA: Options = Options {
    code: "e",
    values: "jl",
    ..NONE
};
/// Glues no values to letters.
const NODE: Options = Options {
    code_words: &["-e", "-p", "-pe", "--eval", "--print"],
    value_words: &[
        "-r",
        "-C",
        "--conditions",
        "--env-file",
        "--experimental-loader",
        "--import",
        "--input-type",
        "--loader",
        "--preload",
        "--require",
        "--title",
    ],
    ..NONE
};
const PHP: Options = Options {
    code: "rBRE",
    code_words: &[
        "--run",
        "--process-begin",
        "--process-code",
        "--process-end",
    ],
    values: "cdfztFS",
    value_words: &["--php-ini", "--define"],
    ..NONE
};
const FISH: Options = Options {
    code: "cC",
    code_words: &["--command", "--init-command"],
    values: "dDfop",
    value_words: &[
        "--debug",
        "--debug-output",
        "--features",
        "--profile",
        "--profile-startup",
    ],
    ..NONE
};

/// The names are without a version: `python3.12` is `python`.
const INTERPRETERS: [(&str, Code); 29] = [
    ("sh", Code::Shell),
    ("bash", Code::Shell),
    ("dash", Code::Shell),
    ("ash", Code::Shell),
    ("ksh", Code::Shell),
    ("mksh", Code::Shell),
    ("zsh", Code::Shell),
    ("csh", Code::Shell),
    ("tcsh", Code::Shell),
    ("fish", Code::Options(FISH)),
    ("python", Code::Options(PYTHON)),
    ("pypy", Code::Options(PYTHON)),
    ("awk", Code::Awk),
    ("gawk", Code::Awk),
    ("mawk", Code::Awk),
    ("nawk", Code::Awk),
    ("original-awk", Code::Awk),
    ("sed", Code::Sed),
    ("gsed", Code::Sed),
    ("perl", Code::Options(PERL)),
    ("ruby", Code::Options(RUBY)),
    ("lua", Code::Options(LUA)),
    ("luajit", Code::Options(LUA)),
    ("node", Code::Options(NODE)),
    ("bun", Code::Options(NODE)),
    ("php", Code::Options(PHP)),
    ("cmd", Code::Rest(&["/c", "/k"])),
    ("pwsh", Code::Rest(&["-c", "-command"])),
    ("powershell", Code::Rest(&["-c", "-command"])),
];

/// Programs that run another: their options, and how many operands stand before its name.
const WRAPPERS: [(&str, Options, usize); 12] = [
    ("busybox", NONE, 0),
    (
        "env",
        Options {
            values: "uC",
            value_words: &["--unset", "--chdir"],
            ..NONE
        },
        0,
    ),
    (
        "doas",
        Options {
            values: "uC",
            ..NONE
        },
        0,
    ),
    (
        "ionice",
        Options {
            values: "cn",
            value_words: &["--class", "--classdata"],
            ..NONE
        },
        0,
    ),
    (
        "nice",
        Options {
            values: "n",
            value_words: &["--adjustment"],
            ..NONE
        },
        0,
    ),
    ("nohup", NONE, 0),
    ("setsid", NONE, 0),
    (
        "stdbuf",
        Options {
            values: "ioe",
            value_words: &["--input", "--output", "--error"],
            ..NONE
        },
        0,
    ),
    (
        "sudo",
        Options {
            values: "CDRTghpru",
            value_words: &["--chdir", "--group", "--host", "--prompt", "--user"],
            ..NONE
        },
        0,
    ),
    (
        "time",
        Options {
            values: "fo",
            value_words: &["--format", "--output"],
            ..NONE
        },
        0,
    ),
    (
        "timeout",
        Options {
            values: "ks",
            value_words: &["--kill-after", "--signal"],
            ..NONE
        },
        1,
    ),
    (
        "xargs",
        Options {
            values: "EILPadns",
            value_words: &[
                "--arg-file",
                "--delimiter",
                "--max-args",
                "--max-chars",
                "--max-procs",
            ],
            glued: "eil",
            ..NONE
        },
        0,
    ),
];

/// The role of a word for a program.
enum Part<'w> {
    Flag,
    /// An option whose value is the next word.
    BeforeValue,
    /// An option of code; `None` if the code is the next word. After one that is last no option
    /// follows.
    Code {
        glued: Option<&'w str>,
        is_last: bool,
    },
    /// No option, or one after which none follows.
    Operand,
}

impl Options {
    fn read<'w>(&self, word: &'w str) -> Part<'w> {
        let (name, value) = word
            .split_once('=')
            .map_or((word, None), |(name, value)| (name, Some(value)));
        if self.code_words.contains(&name) {
            return Part::Code {
                glued: value,
                is_last: false,
            };
        }
        if self.value_words.contains(&name) {
            return if value.is_some() {
                Part::Flag
            } else {
                Part::BeforeValue
            };
        }
        match word.strip_prefix('-') {
            None | Some("" | "-") => Part::Operand,
            Some(long) if long.starts_with('-') => Part::Flag,
            Some(letters) => self.read_letters(letters),
        }
    }

    fn read_letters<'w>(&self, letters: &'w str) -> Part<'w> {
        for (index, letter) in letters.char_indices() {
            let rest = &letters[index + letter.len_utf8()..];
            let is_last = self.last.contains(letter);
            if self.code.contains(letter) {
                return Part::Code {
                    glued: (!rest.is_empty()).then_some(rest),
                    is_last,
                };
            }
            if is_last {
                return Part::Operand;
            }
            if self.values.contains(letter) {
                return if rest.is_empty() {
                    Part::BeforeValue
                } else {
                    Part::Flag
                };
            }
            if self.glued.contains(letter) || !letter.is_ascii_alphanumeric() {
                return Part::Flag;
            }
        }
        Part::Flag
    }
}

/// Returns the first word that is code and contains the model's words, also if other programs run
/// the interpreter (`env`, `nice`, `timeout 5`, `find -exec`).
pub(super) fn find(words: &[String]) -> Option<&str> {
    if let Some(argument) = find_in_env(words) {
        return Some(argument);
    }
    let (program, rest) = unwrap_all(words).split_first()?;
    let code = match code_of(program) {
        Some(Code::Shell) => find_in_shell(rest),
        Some(Code::Options(options)) => find_in_options(rest, &options),
        Some(Code::Awk) => awk_and_sed::find_in_awk(rest),
        Some(Code::Sed) => awk_and_sed::find_in_sed(rest),
        Some(Code::Rest(options)) => find_in_rest(rest, options),
        None if base_name(program) == "find" => find_in_find(rest),
        None if SEARCHERS.contains(&base_name(program).as_str()) => None,
        // A program that isn't known may run what its words name: `docker exec web sh -c …`.
        None => {
            return (0..rest.len())
                .map(|index| &rest[index..])
                .find_map(|words| match &words[0] {
                    start if code_of(start).is_some() => find(words),
                    // An interpreter that env runs is found as a start itself, so only `env -S`
                    // matters here.
                    start if base_name(start) == "env" => find_in_env(words),
                    _ => None,
                });
        }
    };
    code.filter(|code| holds_words_of_model(code))
}

/// Programs with options that take the name of a language, and run nothing: `rg -t ruby -e …`.
const SEARCHERS: [&str; 6] = ["ack", "ag", "egrep", "fgrep", "grep", "rg"];

/// Returns the words from the program on that wrappers run at last.
fn unwrap_all(words: &[String]) -> &[String] {
    let mut words = words;
    while let Some(inner) = unwrap_program(words) {
        words = inner;
    }
    words
}

/// Returns the words that a wrapper runs, if they begin with one.
fn unwrap_program(words: &[String]) -> Option<&[String]> {
    let (first, mut rest) = words.split_first()?;
    let name = base_name(first);
    let (_, options, operands) = WRAPPERS.iter().find(|(known, ..)| *known == name)?;
    while let Some((word, after)) = rest.split_first() {
        rest = match options.read(word) {
            Part::BeforeValue => after.get(1..).unwrap_or_default(),
            // Variables, too, stand before the program.
            Part::Operand if word.starts_with('-') || word.contains('=') => after,
            Part::Operand => break,
            Part::Flag | Part::Code { .. } => after,
        };
    }
    Some(rest.get(*operands..).unwrap_or_default())
}

/// Returns an argument of the model's that `env -S` splits into words, and so may make any command
/// of, also where another wrapper runs env.
fn find_in_env(words: &[String]) -> Option<&str> {
    let (program, rest) = words.split_first()?;
    if base_name(program) == "env" && splits_words(rest) {
        return rest
            .iter()
            .map(String::as_str)
            .find(|word| holds_words_of_model(word));
    }
    find_in_env(unwrap_program(words)?)
}

/// Returns whether an option of env's is `-S` or `--split-string`.
fn splits_words(words: &[String]) -> bool {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let letters = word.strip_prefix('-').unwrap_or_default();
        if letters.starts_with("-s") {
            return true;
        }
        // `u` and `C` have a value: the rest of the word, or the next word.
        match letters
            .find(['S', 'u', 'C'])
            .filter(|_| !letters.starts_with('-'))
        {
            Some(index) if letters[index..].starts_with('S') => return true,
            Some(index) if index + 1 == letters.len() => _ = words.next(),
            Some(_) => {}
            None if word == "--unset" || word == "--chdir" => _ = words.next(),
            None if word.starts_with('-') || word.contains('=') => {}
            None => return false,
        }
    }
    false
}

/// Returns the code that `find` has an interpreter run.
fn find_in_find(words: &[String]) -> Option<&str> {
    const RUNS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];
    let starts = (0..words.len()).filter(|index| RUNS.contains(&words[*index].as_str()));
    starts.into_iter().find_map(|index| {
        // What stands behind the `;` is find's own.
        let run = words[index + 1..].split(|word| word == ";").next()?;
        // The `-exec` of a nested find is among these starts. Following the nested find as well
        // would take exponential time.
        let is_find = unwrap_all(run)
            .first()
            .is_some_and(|program| base_name(program) == "find");
        if is_find { None } else { find(run) }
    })
}

fn base_name(program: &str) -> String {
    let name = program
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or(program)
        .to_ascii_lowercase();
    name.strip_suffix(".exe").unwrap_or(&name).to_owned()
}

fn code_of(program: &str) -> Option<Code> {
    let name = base_name(program);
    let name = name
        .trim_end_matches(|character: char| character.is_ascii_digit() || ".-".contains(character));
    INTERPRETERS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, code)| *code)
}

/// Returns a shell's code (POSIX, "sh": options may follow `-c`).
fn find_in_shell(words: &[String]) -> Option<&str> {
    const WITH_VALUE: [&str; 2] = ["--rcfile", "--init-file"];
    let mut is_code = false;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !word.starts_with(['-', '+']) {
            return is_code.then_some(word);
        }
        is_code |= is_cluster(word, 'c');
        // The name of a setting: `-o pipefail`.
        if word.ends_with(['o', 'O']) && !word.starts_with("--")
            || WITH_VALUE.contains(&word.as_str())
        {
            words.next();
        }
    }
    None
}

/// Returns the code of the first option whose code has words of the model's; what stands behind a
/// script is the script's own.
fn find_in_options<'w>(words: &'w [String], options: &Options) -> Option<&'w str> {
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        let next = after.first().map(String::as_str);
        rest = match options.read(word) {
            Part::Operand => return None,
            Part::Flag => after,
            Part::BeforeValue => after.get(1..).unwrap_or_default(),
            Part::Code { glued, is_last } => {
                let code = glued.or(next)?;
                if is_last || holds_words_of_model(code) {
                    return Some(code);
                }
                // node takes an option in the place of code for an option: `-p -e 1`.
                let is_code = glued.is_none() && !code.starts_with('-');
                if is_code { &after[1..] } else { after }
            }
        };
    }
    None
}

fn find_in_rest<'w>(words: &'w [String], options: &[&str]) -> Option<&'w str> {
    let from = words
        .iter()
        .position(|word| options.contains(&word.to_ascii_lowercase().as_str()))?;
    words[from + 1..]
        .iter()
        .map(String::as_str)
        .find(|word| holds_words_of_model(word))
}

/// Returns whether a word is options of a letter each, among them this one: `-c`, `-euc`.
fn is_cluster(word: &str, letter: char) -> bool {
    word.strip_prefix('-').is_some_and(|letters| {
        letters.contains(letter) && letters.chars().all(|letter| letter.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Option<String> {
        let words = shlex::split(line).unwrap();
        find(&words).map(str::to_owned)
    }

    #[test]
    fn arguments_inside_code_are_found() {
        let lines = [
            "docker exec web sh -c 'grep {{tool.arguments.word}} notes'",
            "uv run python -c 'print({{tool.arguments.word}})'",
            "flock lock sh -c '{{tool.arguments.command}}'",
            "sh -c 'grep {{tool.arguments.word}} notes'",
            "/usr/bin/env -i LANG=C bash -o pipefail -euc 'grep {{ tool.arguments.word }} notes' sh",
            "zsh -c -f {{tool.arguments.command}}",
            "timeout 5 dash -c 'echo {{context}}'",
            "bash --rcfile x -c 'echo {{tool}} {{tool.answers.q}}'",
            "python3.12 -I -c 'print({{tool.arguments}})'",
            "perl -ne 'print if /{{tool.arguments.word}}/' notes",
            "node --eval '{{tool.arguments.code}}'",
            "node --eval='{{tool.arguments.code}}'",
            "node -r x -e {{tool.arguments.code}}",
            "node -p {{tool.arguments.code}}",
            "node -p -e {{tool.arguments.code}}",
            "python3 -W ignore -c 'print({{tool.arguments}})'",
            "python3 -Wignore -Ic'print({{tool.arguments}})'",
            "ruby -r json -e 'puts {{tool.arguments}}'",
            "perl -E 'say {{tool.arguments.word}}'",
            "perl -I lib -e 1 -e 'print {{tool.arguments.word}}'",
            "fish --command='echo {{tool.arguments.word}}'",
            "csh -fc 'echo {{tool.arguments.word}}'",
            "awk '/{{tool.arguments.word}}/' notes",
            "awk -F , -vx=1 '/{{tool.arguments.word}}/' notes",
            "gawk -e '/{{tool.arguments.word}}/' notes",
            "sed -n '/{{tool.arguments.word}}/p' notes",
            "sed -i.bak -e p -e '/{{tool.arguments.word}}/d' notes",
            "gawk -i inplace '{ gsub(/{{tool.arguments.word}}/, \"\") } 1' notes",
            "env -S 'sh -c {{tool.arguments.word}}'",
            "env -i -S 'tool {{tool.arguments.word}}'",
            "nice env -S 'sh -c {{tool.arguments.word}}'",
            "env -u HOME -S 'sh -c {{tool.arguments.word}}'",
            "env -C /tmp A=b -S 'sh -c {{tool.arguments.word}}'",
            "docker exec web env -S 'sh -c {{tool.arguments.word}}'",
            "find . -exec pwsh -exec bypass -c {{tool.arguments.word}} ';'",
            "env --split-string='tool {{tool.arguments.word}}'",
            "find . -exec find {} -exec sh -c {{tool.arguments.word}} ';' ';'",
            "gawk -l readdir '/{{tool.arguments.word}}/' notes",
            "gawk --include inplace '/{{tool.arguments.word}}/' notes",
            "gawk --inc inplace '/{{tool.arguments.word}}/' notes",
            "gawk -f lib.awk -e '/{{tool.arguments.word}}/' notes",
            "gawk --file=lib.awk --source '/{{tool.arguments.word}}/' notes",
            "gawk -W source='/{{tool.arguments.word}}/' notes",
            "gawk --sandbox '/{{tool.arguments.word}}/' notes",
            "awk '/{{tool.arguments.word}}/' --sandbox",
            "awk -- '/{{tool.arguments.word}}/' notes",
            "awk -v '{{tool.arguments.word}}' 1 notes",
            "awk -F {{tool.arguments.separator}} 1 notes",
            "awk -F -v word='{{tool.arguments.word}}' 1 notes",
            // The original awk ignores `--assign`: the next word is the program.
            "awk --assign word={{tool.arguments.word}} 1 notes",
            "awk -csv word={{tool.arguments.word}} 1 notes",
            "awk {{tool.options.flag}} '/{{tool.arguments.word}}/' notes",
            // The value may be an option: `-eBEGIN { … }`.
            "awk -f find.awk {{tool.arguments.path}}",
            "awk --file=find.awk -- {{tool.arguments.path}}",
            "awk --exec=find.awk -n {{tool.arguments.path}}",
            "busybox awk -f {{tool.arguments.path}} notes",
            "sed -nf find.sed {{tool.arguments.path}}",
            "sed 1p {{tool.arguments.path}}",
            "sed -f a.sed -e '/{{tool.arguments.word}}/p' notes",
            "sed -n notes -e '/{{tool.arguments.word}}/p'",
            "sed -n -- '/{{tool.arguments.word}}/p' --sandbox",
            "sed -e '/{{tool.arguments.word}}/p' --sandbox notes",
            "sed {{tool.arguments.path}} --sandbox",
            "sed -l --sandbox '/{{tool.arguments.word}}/p' notes",
            "sed -i --sandbox -n '{{tool.arguments.line}}p' notes",
            "sed -n --sandbox '{{tool.arguments.line}}p' notes",
            "original-awk '/{{tool.arguments.word}}/' notes",
            "sed -l -e -- '/{{tool.arguments.word}}/p' notes",
            "sed -i .bak -- '/{{tool.arguments.word}}/p' notes",
            "sed --expr p -- {{tool.arguments.path}}",
            "sed -n 1p -- {{tool.arguments.path}}",
            "find . -exec sed -n '/{{tool.arguments.word}}/p' {} ;",
            "pypy3 -c 'print({{tool.arguments}})'",
            "tcsh -c {{tool.arguments.word}}",
            "php -d a=b -r 'echo {{tool.arguments.word}};'",
            "nice -n 5 nohup sh -c 'echo {{tool.arguments.word}}'",
            "sudo -u me LANG=C stdbuf -oL busybox sh -c 'echo {{tool.arguments.word}}'",
            "timeout -k 1 5 xargs -n 1 sh -c 'echo {{tool.arguments.word}}'",
            "find . -exec sh -c 'grep {{tool.arguments.word}} $1' sh {} ;",
            "cmd.exe /C type {{tool.arguments.path}}",
            "pwsh -NoProfile -Command Get-Item {{tool.arguments.path}}",
        ];
        let missed: Vec<_> = lines.iter().filter(|line| found(line).is_none()).collect();
        assert!(missed.is_empty(), "{missed:#?}");
    }

    #[test]
    fn arguments_outside_code_are_not_found() {
        for line in [
            "sh -c 'grep -- \"$1\" notes' sh {{tool.arguments.word}}",
            "sh -c 'cd \"$0\"; echo {{tool.name}} {{tool.options.to}}' {{context.root}}",
            "sh notes.sh -c {{tool.arguments.word}}",
            "python3 notes.py -c {{tool.arguments.word}}",
            "python3 -c 'import sys; print(sys.argv[1])' {{tool.arguments.word}}",
            "grep -c {{tool.arguments.word}} notes",
            "awk -v word={{tool.arguments.word}} '$0 ~ word' notes",
            "awk '$0 ~ ENVIRON[\"x\"]' {{tool.arguments.path}}",
            "awk -F , -vword={{tool.arguments.word}} -f find.awk",
            "awk --assign=word={{tool.arguments.word}} -- 1 {{tool.arguments.path}}",
            "awk -f find.awk -- {{tool.arguments.path}}",
            "awk -f find.awk notes/{{tool.arguments.path}}",
            "gawk -i inplace -v word={{tool.arguments.word}} '{ gsub(word, \"\") } 1' {{tool.arguments.path}}",
            "gawk --lint=fatal --posix -E find.awk {{tool.arguments.path}}",
            "gawk -e 1 --source 2 -- {{tool.arguments.path}}",
            "sed -e 1p -- {{tool.arguments.path}}",
            "sed -i.bak -nf find.sed -- {{tool.arguments.path}}",
            "sed -n --quiet -- 1p {{tool.arguments.path}}",
            "sed -s --expression=1p --in-place=.bak -- {{tool.arguments.path}}",
            "sed -n 1p notes",
            "find . -exec sed -n 1p {} ; -name {{tool.arguments.name}}",
            "sed --sandbox -n '{{tool.arguments.line}}p' notes",
            "env -uSSH_AUTH_SOCK tool {{tool.arguments.path}}",
            "env -C /Srv -i tool -S {{tool.arguments.path}}",
            "rg env -S {{tool.arguments.word}}",
            "rg -t ruby -e {{tool.arguments.pattern}}",
            "rg -t sh -c {{tool.arguments.pattern}}",
            "python3 -m notes -c {{tool.arguments.word}}",
            "perl -i.e -ne 'print' {{tool.arguments.path}}",
            "node -r x notes.js -e {{tool.arguments.word}}",
            "timeout 5 rg -t ruby -e {{tool.arguments.pattern}}",
            "sh -c 'echo {{.Names}}'",
            "sh",
        ] {
            assert_eq!(found(line), None, "{line}");
        }
    }
}
