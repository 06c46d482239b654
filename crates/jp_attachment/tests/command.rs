//! The command handler on real programs.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    error::Error as _,
    fs,
    os::unix::fs::symlink,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant, SystemTime},
};

use jp_attachment::{
    AttachError, CommandError, Context, Limits, MemoryStore, Notice, Place, Reach, Resolved,
    Source, Unavailable, canonical_path, parse_configured, parse_input, parse_stored, resolve,
};
use jp_resource::BlobRef;
use tempfile::TempDir;
use testing::assert_starts;

/// Long enough for a loaded machine. Only a test that fails waits so long.
const LONG: Duration = Duration::from_secs(30);

struct World {
    _directory: TempDir,
    root: PathBuf,
    place: Place,
    store: MemoryStore,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = canonical_path(directory.path()).unwrap();
        fs::create_dir(root.join("sub")).unwrap();
        let place = Place {
            current_dir: root.join("sub"),
            ..Place::new(&root)
        };
        Self {
            _directory: directory,
            root,
            place,
            store: MemoryStore::default(),
        }
    }

    fn context(&self) -> Context<'_> {
        Context::new(&self.place, &self.store, SystemTime::now())
    }

    fn attach_with(&self, inputs: &[&str], context: &Context<'_>) -> Result<Resolved, AttachError> {
        let declared: Result<Vec<_>, _> = inputs
            .iter()
            .map(|input| parse_input(input, &self.place))
            .collect();
        resolve(&declared?, context)
    }

    fn attach(&self, inputs: &[&str]) -> Result<Resolved, AttachError> {
        self.attach_with(inputs, &self.context())
    }

    /// Attaches the inputs and returns their texts.
    fn texts(&self, inputs: &[&str]) -> Vec<String> {
        let resolved = self
            .attach(inputs)
            .unwrap_or_else(|error| panic!("{inputs:?}: {}", shown(&error)));
        resolved
            .resources
            .iter()
            .map(|resource| self.text(&resource.content))
            .collect()
    }

    fn text(&self, blob: &BlobRef) -> String {
        self.store.get(blob).unwrap().as_text().unwrap().to_owned()
    }

    /// Attaches an input, which fails, and returns the messages without the path of the temporary
    /// directory.
    fn error(&self, input: &str) -> String {
        let error = self.attach(&[input]).unwrap_err();
        assert!(error.is_unavailable(), "{error:?}");
        shown(&error).replace(self.root.to_str().unwrap(), "ROOT")
    }

    /// Attaches a command that writes its id to `pid`, which fails, and returns the error once all
    /// processes of its group have ended.
    fn wait_for_end(&self, input: &str, context: &Context<'_>) -> AttachError {
        let started = Instant::now();
        let error = self.attach_with(&[input], context).unwrap_err();
        assert!(started.elapsed() < LONG, "{error:?}");
        let pid: u32 = fs::read_to_string(self.root.join("pid"))
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        wait_until(|| living_in_group(pid) == 0);
        error
    }
}

fn shown(error: &AttachError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

fn wait_until(is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < LONG, "it does not happen");
        thread::yield_now();
    }
}

/// Counts the processes of a group that are not just waiting to be reaped.
fn living_in_group(group: u32) -> usize {
    let processes = Command::new("ps")
        .args(["-A", "-o", "pgid=,stat="])
        .output()
        .unwrap()
        .stdout;
    let processes = String::from_utf8(processes).unwrap();
    let fields = processes
        .lines()
        .filter_map(|line| line.trim().split_once(' '));
    fields
        .filter(|(pgid, state)| *pgid == group.to_string() && !state.trim().starts_with('Z'))
        .count()
}

#[test]
fn content_is_the_output() {
    let world = World::new();
    let resolved = world
        .attach(&["cmd:echo 'two  words' it\\'s \"🦀\" 'a\nb' '' '*'"])
        .unwrap();
    let [resource] = &resolved.resources[..] else {
        panic!("{resolved:?}")
    };
    assert_eq!(
        world.text(&resource.content),
        "two  words it's 🦀 a\nb  *\n"
    );
    let uri = "cmd://echo?arg=two%20%20words&arg=it's&arg=%F0%9F%A6%80&arg=a%0Ab&arg=&arg=*";
    assert_eq!(resource.uri, uri);
    assert_eq!(
        resource.name.as_deref(),
        Some("echo 'two  words' 'it'\\''s' '🦀' 'a\nb' '' '*'")
    );
    assert_eq!(resource.mime_type.as_deref(), Some("text/plain"));
    assert_eq!(resource.description, None);
    assert_eq!(resolved.delivered[0].declaration, uri);
    assert!(resolved.notices.is_empty());
}

#[test]
fn both_forms_declare_the_same() {
    let world = World::new();
    let typed = parse_input("cmd:git diff 'a b'", &world.place).unwrap();
    assert_eq!(
        typed.declaration.as_deref(),
        Some("cmd://git?arg=diff&arg=a%20b")
    );
    assert_eq!(typed.source.reach(&world.place), Reach::Program);
    for declaration in ["cmd:git diff 'a b'", "cmd://git?arg=diff&arg=a%20b"] {
        let stored = parse_stored(declaration, &world.place).unwrap();
        assert_eq!((&stored.source, stored.is_trusted), (&typed.source, false));
        let configured = parse_configured(declaration, &world.place).unwrap();
        assert_eq!(
            (&configured.source, &configured.declaration),
            (&typed.source, &typed.declaration)
        );
    }
    let Source::Command(line) = typed.source else {
        panic!()
    };
    assert_eq!(
        (line.program(), line.arguments()),
        ("git", &["diff".to_owned(), "a b".to_owned()][..])
    );
    let described = world
        .attach(&["cmd://echo?description=A%20greeting&arg=hi"])
        .unwrap();
    assert_eq!(
        described.resources[0].description.as_deref(),
        Some("A greeting")
    );
}

#[test]
fn program_runs_in_the_workspace_root() {
    let world = World::new();
    fs::create_dir(world.root.join("scripts")).unwrap();
    symlink("/bin/pwd", world.root.join("scripts/where am i")).unwrap();
    let root = format!("{}\n", world.root.display());
    let inputs = [
        "cmd:pwd -P",
        "cmd:'scripts/where am i' -P",
        "cmd://scripts/where%20am%20i?arg=-P",
        "cmd:/bin/pwd -P",
    ];
    assert_eq!(world.texts(&inputs), [&root[..]; 3]);
}

#[test]
fn shell_runs_only_if_it_is_the_program() {
    let world = World::new();
    let home = format!("{}\n", std::env::var("HOME").unwrap_or_default());
    let inputs = ["cmd:sh -c 'echo $HOME'", "cmd:echo $HOME | cat > x #y"];
    assert_eq!(world.texts(&inputs), [&home[..], "$HOME | cat > x #y\n"]);
    assert!(!world.root.join("x").exists());
}

#[test]
fn output_of_git_is_unchanged() {
    let world = World::new();
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command
            .args(["-c", "user.name=A", "-c", "user.email=a@example.com"])
            .args(arguments);
        let output = command.current_dir(&world.root).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "--quiet"]);
    fs::write(world.root.join("a b.txt"), "one\n").unwrap();
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "First\n\nWith a body."]);
    fs::write(world.root.join("a b.txt"), "one\ntwo\n").unwrap();
    let diff = git(&["diff"]);
    assert!(diff.contains("+two"));
    let inputs = [
        "cmd:git diff",
        "cmd:git log",
        "cmd:git --no-pager log --format='%s by %an'",
        "cmd://git?arg=show&arg=HEAD:a%20b.txt",
        "cmd:git diff --cached",
    ];
    assert_eq!(
        world.texts(&inputs),
        [&diff, &git(&["log"]), "First by A\n", "one\n", ""]
    );
    let failed = &world.texts(&["cmd:git show gone"])[0];
    assert!(
        failed.starts_with("[stderr]\nfatal: ") && failed.ends_with("\n[exit status: 128]\n"),
        "{failed}"
    );
}

#[test]
fn ripgrep_finds() {
    if Command::new("rg").arg("--version").output().is_err() {
        eprintln!("skipped: rg is not installed");
        return;
    }
    let world = World::new();
    fs::write(world.root.join("sub/a.txt"), "#include <x>\n").unwrap();
    let texts = world.texts(&[
        "cmd:rg --no-heading --no-line-number #include",
        "cmd:rg nothing-like-it",
    ]);
    assert_eq!(texts, ["sub/a.txt:#include <x>\n", "[exit status: 1]\n"]);
}

#[test]
fn failed_command_is_attached_with_its_status() {
    let world = World::new();
    let inputs = [
        "cmd:sh -c 'echo out; echo err >&2; exit 3'",
        "cmd:sh -c 'echo out; echo err >&2'",
        "cmd:false",
    ];
    let texts = [
        "out\n[stderr]\nerr\n[exit status: 3]\n",
        "out\n[stderr]\nerr\n",
        "[exit status: 1]\n",
    ];
    assert_eq!(world.texts(&inputs), texts);
}

#[test]
fn empty_output_gives_a_notice() {
    let world = World::new();
    // Stdin is empty, so `cat` does not wait.
    let resolved = world.attach(&["cmd:true", "cmd:cat"]).unwrap();
    assert_eq!(resolved.totals.bytes, 0);
    let notices: Vec<String> = resolved.notices.iter().map(ToString::to_string).collect();
    assert_eq!(
        notices,
        [r#""true" printed nothing"#, r#""cat" printed nothing"#]
    );
}

#[test]
fn binary_output_keeps_its_type() {
    let world = World::new();
    fs::write(world.root.join("a"), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").unwrap();
    let resolved = world
        .attach(&["cmd:cat a", "cmd:cat a gone", "cmd:printf 'caf\\351'"])
        .unwrap();
    let [image, failed, latin] = &resolved.resources[..] else {
        panic!("{resolved:?}")
    };
    assert_eq!(
        (image.mime_type.as_deref(), &image.description),
        (Some("image/png"), &None)
    );
    assert_eq!(
        (&failed.mime_type, failed.content),
        (&image.mime_type, image.content)
    );
    let description = failed.description.as_deref().unwrap();
    assert_starts(description, "exit status: 1\nstderr: cat: ");
    assert_eq!(latin.mime_type.as_deref(), Some("application/octet-stream"));
}

#[test]
fn missing_program_is_an_error() {
    let world = World::new();
    fs::write(world.root.join("plain"), "echo").unwrap();
    fs::write(world.root.join("orphan"), "").unwrap();
    let table = [
        (
            "cmd:no-such-program x",
            r#"there is no program "no-such-program" in PATH"#,
        ),
        ("cmd:sub", r#"there is no program "sub" in PATH"#),
        ("cmd:./gone", r#"there is no program at "ROOT/./gone""#),
        (
            "cmd:./sub",
            r#""ROOT/./sub" can't be started: is a directory"#,
        ),
        (
            "cmd:./plain",
            r#""ROOT/./plain" can't be started: Permission denied (os error 13)"#,
        ),
        (
            "cmd:sh -c 'kill -9 $$'",
            "it was ended by a signal: 9 (SIGKILL)",
        ),
    ];
    for (input, message) in table {
        assert_eq!(world.error(input), format!("attach {input:?}: {message}"));
    }
    assert_eq!(
        world.error("cmd://git status"),
        r#"attach "cmd://git status" (write the arguments of a cmd:// URL as `?arg=…&arg=…`): there is no program "git status" in PATH"#
    );
}

#[test]
fn endless_output_is_ended() {
    let world = World::new();
    let limits = Limits {
        max_bytes: 1_000_000,
        ..Limits::default()
    };
    let context = Context {
        limits,
        timeout: LONG * 2,
        ..world.context()
    };
    for script in [
        "exec yes",
        "yes >&2 & yes",
        "exec head -c 1000000000 /dev/zero",
    ] {
        let input = format!("cmd:sh -c 'echo $$ >pid; {script}'");
        let error = shown(&world.wait_for_end(&input, &context));
        let message = "it printed more than the limit of 1000000 bytes";
        assert_eq!(error, format!("attach {input:?}: {message}"));
    }
    let exact = Context {
        limits: Limits {
            max_bytes: 6,
            ..limits
        },
        ..context
    };
    assert!(world.attach_with(&["cmd:echo 12345"], &exact).is_ok());
    assert!(world.attach_with(&["cmd:echo 123456"], &exact).is_err());
    // Output and exit status together exceed the limit.
    assert!(
        world
            .attach_with(&["cmd:sh -c 'echo 12345; exit 1'"], &exact)
            .is_err()
    );
}

#[cfg(target_os = "linux")]
#[test]
fn much_output_takes_little_memory() {
    let peak = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap()
            .to_owned();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    let world = World::new();
    let before = peak();
    assert!(world.attach(&["cmd:head -c 1000000000 /dev/zero"]).is_err());
    assert!(peak() - before < 60_000, "{} kB", peak() - before);
}

#[test]
fn slow_command_is_ended_with_its_processes() {
    let world = World::new();
    let context = Context {
        timeout: Duration::from_millis(300),
        ..world.context()
    };
    for script in [
        "sleep 100 & sleep 100",
        "trap : TERM; while :; do sleep 100; done",
        // It has closed its output.
        "exec >&- 2>&-; sleep 100",
    ] {
        let error = world.wait_for_end(&format!("cmd:sh -c 'echo $$ >pid; {script}'"), &context);
        assert!(
            shown(&error).ends_with(": it ran for more than 0.3 seconds and was ended"),
            "{error:?}"
        );
        assert!(error.is_unavailable());
    }
}

#[test]
fn interruption_ends_running_commands() {
    let world = World::new();
    let cancelled = AtomicBool::new(false);
    let context = Context {
        cancelled: Some(&cancelled),
        ..world.context()
    };
    let error = thread::scope(|scope| {
        scope.spawn(|| {
            wait_until(|| {
                fs::read_to_string(world.root.join("pid")).is_ok_and(|pid| pid.ends_with('\n'))
            });
            cancelled.store(true, Ordering::Relaxed);
        });
        world.wait_for_end("cmd:sh -c 'echo $$ >pid; sleep 100'", &context)
    });
    assert!(matches!(error, AttachError::Interrupted), "{error:?}");
    let error = world
        .attach_with(&["cmd:sh -c 'echo >started'"], &context)
        .unwrap_err();
    assert!(matches!(error, AttachError::Interrupted) && !world.root.join("started").exists());
}

#[test]
fn background_process_does_not_hold_the_output() {
    let world = World::new();
    let started = Instant::now();
    let resolved = world
        .attach(&["cmd:sh -c 'echo $$ >pid; sleep 100 & echo done'"])
        .unwrap();
    assert!(started.elapsed() < LONG);
    assert_eq!(world.text(&resolved.resources[0].content), "done\n");
    let [Notice::HeldOutput { name }] = &resolved.notices[..] else {
        panic!("{:?}", resolved.notices)
    };
    assert_eq!(name, "sh -c 'echo $$ >pid; sleep 100 & echo done'");
    let pid = fs::read_to_string(world.root.join("pid"))
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    wait_until(|| living_in_group(pid) == 0);
}

#[cfg(target_os = "linux")]
#[test]
fn process_that_left_the_group_is_not_waited_for() {
    let world = World::new();
    fs::write(world.root.join("daemon"), "echo $$ >pid; exec sleep 100").unwrap();
    let input = "cmd:sh -c 'setsid sh daemon & until [ -s pid ]; do sleep 0.01; done; echo done'";
    let started = Instant::now();
    let resolved = world.attach(&[input]);
    let pid = fs::read_to_string(world.root.join("pid"))
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    assert!(started.elapsed() < LONG);
    let resolved = resolved.unwrap();
    assert_eq!(world.text(&resolved.resources[0].content), "done\n");
    assert!(matches!(resolved.notices[..], [Notice::HeldOutput { .. }]));
}

#[test]
fn results_are_in_declared_order() {
    let world = World::new();
    let wait = |file: &str, text: &str| {
        format!("cmd:sh -c 'until [ -e {file} ]; do sleep 0.01; done; touch {text}; echo {text}'")
    };
    // Each waits for the next one, so the first four run at once.
    let commands = [
        wait("b", "a"),
        wait("c", "b"),
        wait("d", "c"),
        "cmd:sh -c 'touch d; echo d'".into(),
    ];
    let more = ["cmd:echo e".to_owned(), "cmd:echo f".into()];
    let inputs: Vec<&str> = commands.iter().chain(&more).map(String::as_str).collect();
    assert_eq!(
        world.texts(&inputs),
        ["a\n", "b\n", "c\n", "d\n", "e\n", "f\n"]
    );
}

#[test]
fn one_failure_ends_the_others() {
    let world = World::new();
    let started = Instant::now();
    let error = world
        .attach(&["cmd:echo x", "cmd:no-such-program", "cmd:sleep 100"])
        .unwrap_err();
    let is_first = matches!(
        error,
        AttachError::Command {
            source: CommandError::NotFound { .. },
            ..
        }
    );
    assert!(is_first && started.elapsed() < LONG, "{error:?}");

    let context = Context {
        unavailable: Unavailable::Skip,
        ..world.context()
    };
    let resolved = world
        .attach_with(&["cmd:no-such-program", "cmd:echo x"], &context)
        .unwrap();
    assert_eq!(resolved.resources[0].uri, "cmd://echo?arg=x");
    assert!(matches!(
        &resolved.notices[..],
        [Notice::Skipped(AttachError::Command { .. })]
    ));
    assert_eq!(resolved.delivered[0].declared, 1);
}

#[test]
fn repeated_command_runs_once() {
    let world = World::new();
    let script = "cmd:sh -c 'echo x >>runs; wc -l <runs'";
    let resolved = world
        .attach(&["cmd:echo a", script, "cmd:echo b", script])
        .unwrap();
    let given: Vec<_> = resolved
        .delivered
        .iter()
        .map(|delivered| (delivered.declared, &delivered.resources[..]))
        .collect();
    assert_eq!(given, [(0, &[0][..]), (1, &[1]), (2, &[2])]);
    assert_eq!(world.text(&resolved.resources[1].content).trim(), "1");
}

#[test]
fn file_with_the_name_of_a_command_wins() {
    let world = World::new();
    fs::write(world.root.join("sub/cmd:echo x"), "file").unwrap();
    assert_eq!(world.texts(&["cmd:echo x"]), ["file"]);
}
