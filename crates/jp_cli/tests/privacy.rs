//! Nothing that jp writes under `.jp/` names a place on this machine.

use std::{
    fs,
    io::{Read as _, Write as _},
    path::Path,
};

use serde_json::json;
use testing::{Sandbox, answer, assert_fields, assert_lacks, calling, items, playing, texts};

/// Reads a file; decompresses a blob.
fn content(path: &std::path::Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    if path.extension().is_none_or(|extension| extension != "gz") {
        return bytes;
    }
    let output = std::process::Command::new("gzip")
        .arg("-dc")
        .arg(path)
        .output()
        .unwrap();
    assert!(output.status.success());
    output.stdout
}

/// Checks that a file has none of these words.
#[track_caller]
fn check_private(path: &Path, bytes: &[u8], words: &[&str]) {
    for private in words {
        let mut windows = bytes.windows(private.len());
        let text = String::from_utf8_lossy(bytes);
        let found = windows.any(|window| window == private.as_bytes());
        assert!(!found, "{private:?} is in {}: {text}", path.display());
    }
}

#[test]
fn no_path_of_the_machine_is_stored() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    fs::rename(
        sandbox.path(".jp/config.toml"),
        sandbox.home.join("config.toml"),
    )
    .unwrap();
    let home = testing::shown(&sandbox.home);
    let declared = format!(
        "conversation.attachments = ['{home}/outside/style.md', '~/outside/all/', '{home}/outside/all/*.txt']\n"
    );
    let config = sandbox.home.join("config.toml");
    fs::write(&config, declared + &fs::read_to_string(&config).unwrap()).unwrap();
    let config = testing::shown(&config);
    sandbox.write("~/outside/style.md", "style");
    sandbox.write("~/outside/all/d.txt", "d");
    sandbox.write("src/main.rs", "fn main() {}");
    sandbox.write("~/outside/notes.md", "# Notes");
    sandbox.write("~/outside/more/a.txt", "a");
    sandbox.write("~/outside/more/b.txt", "b");
    sandbox.write("~/outside/glob/c.md", "c");
    sandbox.link(sandbox.home.join("outside/notes.md"), "link.md");
    let root = testing::shown(&sandbox.root);
    let jp = |arguments: &[&str]| {
        let mut all = vec!["-c", &*config];
        all.extend(arguments);
        sandbox.run(&all)
    };
    jp(&[
        "q",
        "--new",
        "-a",
        "src/",
        "-a",
        "~/outside/notes.md",
        "-a",
        "~/outside/more",
        "-a",
        "~/outside/glob/*.md",
        "-a",
        "link.md",
        "-a",
        &format!("{root}/src/main.rs"),
        "-a",
        "!*.lock",
        "one",
    ]);
    jp(&["q", "-a", "~/outside/notes.md", "two"]);
    jp(&["attachment", "add", "~/outside/more/a.txt"]);
    jp(&["attachment", "rm", "~/outside/notes.md"]);
    jp(&["conversation", "fork", "--turns", "1"]);
    jp(&["q", "three"]);

    let files = sandbox.files(".jp");
    assert!(
        files
            .iter()
            .filter(|path| path.ends_with("events.json"))
            .count()
            == 2
            && files.len() > 8
    );
    let home = testing::shown(&sandbox.home);
    for path in files {
        let mut bytes = Vec::new();
        content(&path).as_slice().read_to_end(&mut bytes).unwrap();
        check_private(&path, &bytes, &[&home, "jean", "outside/", "file:///"]);
    }
}

#[test]
fn command_with_the_path_of_the_workspace_is_stored_without_it() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("a b.txt", "content");
    sandbox.write("x.sh", "#!/bin/sh\necho \"$1\"");
    let root = testing::shown(&sandbox.root);
    let commands = [
        format!("cmd:cat '{root}/a b.txt'"),
        format!("cmd:/bin/sh {root}/x.sh one"),
    ];
    sandbox.run(&["q", "--new", "-a", &commands[0], "-a", &commands[1], "?"]);
    for path in sandbox
        .files(".jp")
        .iter()
        .filter(|path| path.ends_with("events.json"))
    {
        let text = fs::read_to_string(path).unwrap();
        for private in [
            root.clone(),
            root.replace('/', "%2F"),
            sandbox
                .home
                .file_name()
                .unwrap()
                .to_string_lossy()
                .into_owned(),
        ] {
            assert!(!text.contains(&private), "{private:?} is in {text}");
        }
    }
    let rows = sandbox.json("attachment ls");
    let path = root.replace('/', "%2F");
    assert_fields!(rows[0], {"declaration": format!("cmd://cat?arg={path}%2Fa%20b.txt")});
    assert_eq!(rows[0]["name"], json!(format!("cat '{root}/a b.txt'")));
    sandbox.run("q again");
    assert_eq!(
        items(&sandbox.json("resource ls")).len(),
        2,
        "nothing is attached twice"
    );
    sandbox.run(&["attachment", "rm", &commands[0]]);
}

#[test]
fn no_result_of_a_tool_holds_where_the_workspace_is() {
    let call = |name: &str, arguments: serde_json::Value| calling(&[(name, arguments)]);
    let refresh = |uri: &str| call("refresh_resource", json!({"uri": uri}));
    let calls = [
        refresh("src/a.txt"),
        refresh("nowhere"),
        refresh("gone.txt"),
        refresh("linked.txt"),
        refresh("large.txt"),
        refresh("directory"),
        refresh("nameless.txt"),
        call("read_file", json!({"path": "src/a.txt"})),
        call("read_file", json!({"path": "src"})),
        call("read_file", json!({"path": "none.txt"})),
        call("read_file", json!({"path": "../x"})),
        call("list_files", json!({"path": "src"})),
        call("list_files", json!({"path": "none"})),
        call("search_files", json!({"pattern": "one"})),
        call("search_files", json!({"pattern": "("})),
        call("create_file", json!({"path": "src/a.txt", "content": "x"})),
        call(
            "create_file",
            json!({"path": "new/b.txt", "content": "x\n"}),
        ),
        call(
            "edit_file",
            json!({"path": "src/a.txt", "old": "none", "new": "x"}),
        ),
        call(
            "edit_file",
            json!({"path": "src/a.txt", "old": "one", "new": "two"}),
        ),
        call("move_file", json!({"path": "new/b.txt", "to": "src/a.txt"})),
        call("move_file", json!({"path": "new/b.txt", "to": "c.txt"})),
        call("delete_file", json!({"path": "src"})),
        call("delete_file", json!({"path": "c.txt"})),
        call("delete_file", json!({"path": "c.txt"})),
        call("run_command", json!({"command": "true", "path": "none"})),
        call(
            "run_command",
            json!({"command": "cat a.txt; exit 1", "path": "src"}),
        ),
        call("read_more", json!({"uri": "none"})),
    ];
    let count = calls.len();
    let replies = [answer("Seen.")]
        .into_iter()
        .chain(calls)
        .chain([answer("Done.")]);
    let (sandbox, _) = Sandbox::with_replies(replies.collect());
    let names = [
        "gone.txt",
        "linked.txt",
        "large.txt",
        "nameless.txt",
        "directory",
    ];
    names
        .iter()
        .chain(&["src/a.txt"])
        .for_each(|name| _ = sandbox.write(name, "one\n"));
    let attach = [
        "src",
        "gone.txt",
        "linked.txt",
        "large.txt",
        "nameless.txt",
        "directory",
    ];
    let arguments = attach.iter().flat_map(|name| ["-a", name]);
    sandbox.run(
        &["q", "--new", "look"]
            .into_iter()
            .chain(arguments)
            .collect::<Vec<_>>(),
    );
    let mut events = sandbox.events();
    let named = |event: &&mut serde_json::Value| event["type"] == "chat_request";
    for resource in events.iter_mut().find(named).unwrap()["resources"]
        .as_array_mut()
        .unwrap()
    {
        if resource["name"] == "nameless.txt" {
            resource.as_object_mut().unwrap().remove("name");
        }
    }
    sandbox.write_events(&events);
    ["gone.txt", "linked.txt", "nameless.txt", "directory"]
        .iter()
        .for_each(|name| fs::remove_file(sandbox.path(name)).unwrap());
    fs::create_dir(sandbox.path("directory")).unwrap();
    sandbox.link(sandbox.write("~/secret.txt", "x"), "linked.txt");
    sandbox.write("large.txt", "x".repeat(2000));
    let tools: String = [
        "create_file",
        "edit_file",
        "move_file",
        "delete_file",
        "run_command",
    ]
    .map(|tool| format!("conversation.tools.{tool}.enable = true\n"))
    .concat();
    sandbox.configure(tools);
    sandbox.run("q --yes -c conversation.attachment.max_bytes=1000 go");
    let results = sandbox
        .events()
        .into_iter()
        .filter(|event| event["type"] == "tool_call_response");
    let results: Vec<_> = results.collect();
    assert_eq!(results.len(), count);
    let errors = results
        .iter()
        .filter(|result| result["is_error"] == true)
        .count();
    assert_eq!(errors, 19, "{results:#?}");
    let home = testing::shown(sandbox.root.parent().unwrap());
    for path in sandbox
        .files(".jp")
        .iter()
        .filter(|path| !path.ends_with("config.toml"))
    {
        let text = String::from_utf8_lossy(&content(path)).into_owned();
        assert!(
            !text.contains(&home) && !text.contains("file:///"),
            "{}: {text}",
            path.display()
        );
    }
}

#[test]
fn errors_of_jp_name_no_place_of_the_machine() {
    let sandbox = Sandbox::new();
    let [root, home] = [&sandbox.root, &sandbox.home].map(|path| testing::shown(path));
    sandbox.write("a b.txt", "content");
    let programs = ["bin/run.sh", "~/tools/run.sh"]
        .map(|name| sandbox.write_program(name, "#!/bin/sh\necho \"$@\"\n"));
    let uris = [
        format!("cmd://{root}/bin/run.sh?arg=one"),
        format!("cmd://{home}/tools/run.sh?arg=two"),
        format!("cmd://cat?arg={}%2Fa%20b.txt", root.replace('/', "%2F")),
    ];
    let refresh = |uri: &str| calling(&[("refresh_resource", json!({"uri": uri}))]);
    let calls = vec![
        answer("Seen."),
        refresh(&uris[0]),
        refresh(&uris[1]),
        refresh("nowhere"),
        refresh("cmd://cat?arg=a%20b.txt"),
        calling(&[
            ("inside", json!({})),
            ("outside", json!({})),
            ("stays", json!({"action": "spawn", "handle": "h"})),
        ]),
        answer("Done."),
    ];
    let server = playing(calls);
    let sandbox = sandbox.with_server(&server);
    let tools = format!(
        "[conversation.tools.inside]\ncommand = ['{{{{context.root}}}}/gone']\n\
         [conversation.tools.outside]\ncommand = ['{home}/tools/gone']\n\
         [conversation.tools.stays]\ncommand = ['{home}/tools/gone']\nstateful = true\n"
    );
    sandbox.configure(tools);
    let attach = [
        format!("cmd:{root}/bin/run.sh one"),
        format!("cmd:{home}/tools/run.sh two"),
        format!("cmd:cat '{root}/a b.txt'"),
    ];
    let arguments = attach.iter().flat_map(|command| ["-a", command]);
    sandbox.run(
        &["q", "--new", "look"]
            .into_iter()
            .chain(arguments)
            .collect::<Vec<_>>(),
    );
    programs
        .iter()
        .for_each(|program| fs::remove_file(program).unwrap());
    sandbox.run("q --yes go");
    let mut results = testing::results(&server);
    let refreshed = results.remove(3);
    assert!(
        refreshed.contains("content"),
        "what the list says can be asked for: {refreshed}"
    );
    insta::assert_snapshot!(results.join("\n\n"), @r#"
    The tool reported an error:
    bin/run.sh one could not be refreshed: there is no program "bin/run.sh". The conversation still has the earlier snapshot.

    The tool reported an error:
    ~/tools/run.sh two could not be refreshed: there is no program "run.sh". The conversation still has the earlier snapshot.

    The tool reported an error:
    "nowhere" is not attached to this conversation, so it was not read. You can refresh: cmd://~/tools/run.sh?arg=two, cmd://bin/run.sh?arg=one, cmd://cat?arg=a%20b.txt.

    The tool reported an error:
    The tool `inside` did not run: there is no program "gone". The user configures it with `conversation.tools.inside.command`.

    The tool reported an error:
    The tool `outside` did not run: there is no program "gone". The user configures it with `conversation.tools.outside.command`.

    The tool reported an error:
    `stays` can't start "gone": No such file or directory (os error 2).
    "#);
    for path in sandbox
        .files(".jp")
        .iter()
        .filter(|path| !path.ends_with("config.toml"))
    {
        let text = String::from_utf8_lossy(&content(path)).into_owned();
        for private in [root.clone(), root.replace('/', "%2F")] {
            assert!(
                !text.contains(&private),
                "{private:?} is in {}: {text}",
                path.display()
            );
        }
    }
    let told = results.concat();
    assert!(
        !told.contains(&home) && !told.contains(&home.replace('/', "%2F")),
        "{told}"
    );
}

/// Its content decides what runs without a prompt, and other users can create directories in the temporary one.
#[test]
#[cfg(unix)]
fn without_a_home_nothing_is_trusted_that_others_could_have_made() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let sandbox = Sandbox::new();
    sandbox.write(".jp/config.toml", "");
    let temporary = sandbox.path("~/tmp");
    let stand_in = temporary.join(format!("jp-{}", rustix::process::getuid().as_raw()));
    std::fs::create_dir_all(&temporary).unwrap();
    let list = || {
        let mut command = sandbox.command("conversation ls");
        command.env_remove("HOME").env("TMPDIR", &temporary);
        testing::run(command)
    };
    for _ in 0..2 {
        list().succeeded();
        let mode = std::fs::metadata(&stand_in).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
    let refused = [
        "there is no home directory, and ",
        "open to others",
        "hint: set HOME",
    ];
    std::fs::set_permissions(&stand_in, std::fs::Permissions::from_mode(0o755)).unwrap();
    list().failed(1).says(refused);
    std::fs::rename(&stand_in, temporary.join("elsewhere")).unwrap();
    symlink("elsewhere", &stand_in).unwrap();
    list().failed(1).says(refused);
}

/// Answers every request with a small page, for as long as the test runs.
fn page_server() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for connection in listener.incoming().take(20) {
            let mut connection = connection.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if connection.read(&mut byte).unwrap_or(0) == 0 {
                    break;
                }
                head.push(byte[0]);
            }
            let is_known = String::from_utf8_lossy(&head)
                .to_lowercase()
                .contains("authorization: basic");
            let body = if is_known {
                "<h1>Welcome</h1>"
            } else {
                "<h1>Who?</h1>"
            };
            let length = body.len();
            _ = write!(
                connection,
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
        }
    });
    port
}

#[test]
fn no_kind_of_attachment_stores_a_place_or_a_credential() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    fs::rename(
        sandbox.path(".jp/config.toml"),
        sandbox.home.join("config.toml"),
    )
    .unwrap();
    let config = testing::shown(&sandbox.home.join("config.toml"));
    sandbox.write("src/main.rs", "fn main() {}");
    sandbox.write("~/outside/notes.md", "# Notes");
    sandbox.write("~/stdin.txt", "piped");
    let port = page_server();
    let url = format!("http://hans:hunter2@127.0.0.1:{port}/a/../page");
    let attach = [
        "src/",
        "~/outside/notes.md",
        &url,
        "cmd:ls src",
        "data:text/plain,hello",
        "-",
    ];
    let jp = |arguments: &[&str]| {
        let mut command = sandbox.command(&["-c", &config]);
        command
            .args(arguments)
            .stdin(fs::File::open(sandbox.home.join("stdin.txt")).unwrap());
        testing::run(command).succeeded()
    };
    let mut arguments = vec!["q", "--new", "one"];
    attach
        .iter()
        .for_each(|input| arguments.extend(["-a", input]));
    assert_lacks(jp(&arguments).stderr, "hunter2");
    let message = testing::last_message(&server);
    for part in [
        "fn main",
        "# Notes",
        "# Welcome",
        "main.rs\n",
        "hello",
        "piped",
    ] {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
    let rows = sandbox.json(&["-c", &config, "attachment", "ls"]);
    let kinds = texts(items(&rows), "kind");
    assert_eq!(
        kinds,
        ["workspace", "external", "url", "command", "data", "stdin"]
    );
    let shown = format!("http://127.0.0.1:{port}/page");
    assert_eq!(
        (&rows[2]["uri"], &rows[2]["name"]),
        (&shown.clone().into(), &shown.clone().into())
    );
    jp(&["resource", "refresh", &shown]);
    jp(&["attachment", "rm", &url]);
    jp(&["conversation", "fork", "--turns", "0"]);
    jp(&["q", "two"]);
    assert_lacks(testing::last_message(&server), "Who?");

    let files = sandbox.files(".jp");
    assert!(
        files
            .iter()
            .filter(|path| path.ends_with("events.json"))
            .count()
            == 2
            && files.len() > 8
    );
    let root = testing::shown(&sandbox.root);
    let home = testing::shown(&sandbox.home);
    for path in files {
        let private = [&home, &root, "jean", "outside/", "hans", "hunter2"];
        check_private(&path, &content(&path), &private);
    }
}

#[test]
fn moved_workspace_finds_its_files() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("a.txt", "abc");
    sandbox.run("q --new -a a.txt one");
    let moved = Sandbox {
        root: sandbox.home.join("elsewhere"),
        ..sandbox
    };
    fs::rename(moved.home.join("work/project"), &moved.root).unwrap();
    let uri = moved.json(&["resource", "ls"])[0]["uri"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(uri.ends_with("/elsewhere/a.txt"), "{uri}");
    moved.jp(&["q", "-a", "a.txt", "two"]).succeeded();
    let rows = moved.json(&["resource", "ls"]);
    assert_eq!(rows[0]["uri"], rows[1]["uri"]);
}

#[test]
fn key_outside_the_workspace_makes_external_uris_unguessable() {
    let (sandbox, _) = Sandbox::with_answer("Yes.");
    sandbox.write("~/outside/notes.md", "x");
    sandbox.write("~/key", "secret\n");
    sandbox.write(".jp/key", "secret\n");
    let uri = |key: &str| {
        let key = format!("conversation.attachment.external_key={key}");
        sandbox.run(&["q", "--new", "-c", &key, "-a", "~/outside/notes.md", "x"]);
        sandbox.json("resource ls")[0]["uri"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let keyed = uri("~/key");
    sandbox.run("q --new -a ~/outside/notes.md x");
    assert_ne!(
        sandbox.json("resource ls")[0]["uri"].as_str().unwrap(),
        keyed
    );
    assert_eq!(uri("~/key"), keyed);
    sandbox
        .fail(
            "q --new -c conversation.attachment.external_key=.jp/key -a ~/outside/notes.md x",
            1,
        )
        .says(["inside the workspace"]);
}

#[test]
fn secrets_of_the_configuration_are_not_shown() {
    let sandbox = Sandbox::new();
    sandbox.configure("[providers.mcp.docs]\nurl = 'http://127.0.0.1:9/mcp'\nheaders.Authorization = 'Bearer hush-1'\n\
         [providers.mcp.notes]\ncommand = 'notes'\nenvironment.NOTES = 'hush-2'\n\
         [providers.llm.work]\nbase_url = 'http://127.0.0.1:9'\napi_key_command = ['echo', 'hush-3']\n\
         [providers.llm.other]\nbase_url = 'http://127.0.0.1:9'\napi_key_command = 'hush-4'\n");
    let typed = [
        "providers.mcp.docs.headers.X-Key=hush-5",
        "providers.mcp.more={ command = 'x', environment = { A = 'hush-6' } }",
    ];
    let flags: Vec<&str> = typed.iter().flat_map(|typed| ["-c", *typed]).collect();
    let show = [&["config", "show"][..], &flags].concat();
    let text = sandbox.run(&show).stdout;
    for line in [
        "providers.mcp.docs.headers.Authorization = \"…\"",
        "providers.mcp.docs.headers.X-Key = \"…\"",
        "# `-c providers.mcp.docs.headers.X-Key=…`",
        "providers.mcp.notes.environment.NOTES = \"…\"",
        "providers.mcp.notes.command = \"notes\"",
        "providers.llm.work.api_key_command = [\"…\",\"…\"]",
        "# `-c providers.mcp.more=…`",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    let document = sandbox.json(&show).to_string();
    let mcp = sandbox.jp(&[&["mcp", "ls"][..], &flags].concat());
    let key = sandbox
        .fail("q -m other/m x", 1)
        .says(["providers.llm.other.api_key_command gave no API key"]);
    let malformed = sandbox.jp(&[
        "config",
        "show",
        "-c",
        "providers.mcp.docs.headers:={\"A\": \"hush-7\"",
    ]);
    let wrong = sandbox.jp(&[
        "config",
        "show",
        "-c",
        "providers.mcp.docs.headers=['hush-8']",
    ]);
    let unknown = sandbox.jp(&[
        "config",
        "show",
        "-c",
        "providers.mcp.docs={ headers = { A = 'hush-9' }, x = 1 }",
    ]);
    let bad = [&malformed, &wrong, &unknown].map(|run| run.code);
    assert_eq!(bad, [2, 2, 2], "{malformed:?} {wrong:?} {unknown:?}");
    let runs = [&mcp, &key, &malformed, &wrong, &unknown]
        .map(|run| format!("{}{}", run.stdout, run.stderr));
    for shown in [text, document].iter().chain(&runs) {
        assert_lacks(shown, "hush");
    }
}

#[test]
fn secrets_of_servers_are_not_shown() {
    let sandbox = Sandbox::new();
    // Put together here, so that nothing finds one in this file.
    let token = ["ghp", "_", "16C7e42F292c6912E7710c838347Ae178B4a"].concat();
    sandbox.configure(format!(
            "[providers.mcp.notes]\ncommand = 'notes --token=hush-1 --quiet'\n\
             arguments = ['--api-key=hush-2', '--token', 'hush-3', '--header', 'Authorization: Bearer hush-4', '-v', '{token}']\n\
             [providers.mcp.words]\ncommand = ['words', '--password', 'hush-5']\narguments = ['plain', '--port=80']\n\
             [providers.mcp.docs]\nurl = 'https://me:hush-6@docs.example/mcp?key=hush-7&v=hush-8#x'\n"
        ));
    let typed = [
        "providers.mcp.a.arguments=[\"--token\", \"hush-9\"]",
        "providers.mcp.a.command=a --secret hush-10",
        "providers.mcp.b.url=https://docs.example/mcp?key=hush-11",
        "providers.mcp.c={ command = 'c', arguments = ['--api-key=hush-12'] }",
    ];
    let flags: Vec<&str> = typed.iter().flat_map(|typed| ["-c", *typed]).collect();
    let show = [&["config", "show", "providers.mcp"][..], &flags].concat();
    let text = sandbox.run(&show).stdout;
    for line in [
        "providers.mcp.notes.command = \"notes --token=… --quiet\"",
        "[\"--api-key=…\",\"--token\",\"…\",\"--header\",\"Authorization: …\",\"-v\",\"…\"]",
        "providers.mcp.words.command = [\"words\",\"--password\",\"…\"]",
        "providers.mcp.words.arguments = [\"plain\",\"--port=80\"]",
        "providers.mcp.docs.url = \"https://…@docs.example/mcp?key=…&v=…#x\"",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    for shown in [text, sandbox.json(&show).to_string()] {
        assert_lacks(&shown, "hush");
        assert_lacks(&shown, &token);
    }
}
