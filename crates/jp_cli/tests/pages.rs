//! Pages from a real server: Python's `http.server`.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use testing::{
    Background, Sandbox, assert_contains, assert_fields, assert_lacks, assert_starts, column,
    items, last_message, skip,
};

/// Serves a directory until it is dropped.
struct Files {
    _server: Background,
    url: String,
}

impl Files {
    /// Starts the server; prints the reason and returns `None` without Python.
    fn serve(directory: &Path) -> Option<Self> {
        let script = "import functools, http.server, sys\n\
            handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])\n\
            server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)\n\
            print(server.server_port, flush=True)\n\
            server.serve_forever()\n";
        if Command::new("python3").arg("--version").output().is_err() {
            skip("python3 is not installed");
            return None;
        }
        let mut command = Command::new("python3");
        command.args(["-c", script]).arg(directory);
        let (_server, port) = Background::announce(command.stderr(Stdio::null()));
        let url = format!("http://127.0.0.1:{port}");
        Some(Self { _server, url })
    }
}

#[test]
fn page_is_shown_as_markdown_but_kept_as_it_is() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    let html = "<html><head><title>Guide</title><script>evil()</script></head>\
        <body><h1>Start</h1><p>Read <a href=\"/more\">more</a>.</p></body></html>";
    sandbox.write("~/site/index.html", html);
    sandbox.write("~/site/data.json", "{\"a\": 1}");
    sandbox.write("~/site/a.pdf", b"%PDF-1.4 \xff");
    let Some(files) = Files::serve(&sandbox.home.join("site")) else {
        return;
    };
    let [page, data, pdf] = ["", "data.json", "a.pdf"].map(|name| format!("{}/{name}", files.url));
    sandbox.run(&["q", "--new", "-a", &page, "-a", &data, "-a", &pdf, "what?"]);
    let message = last_message(&server);
    assert_contains(&message, "# Start");
    assert_contains(&message, "[more](/more)");
    assert_lacks(&message, "evil");
    assert_contains(&message, "{\"a\": 1}");
    let rows = sandbox.json("resource ls");
    let types = column(items(&rows), "mimeType");
    assert_eq!(types, ["text/html", "application/json", "application/pdf"]);
    assert_eq!(sandbox.run(&["resource", "show", &page]).stdout, html);
    let printed = sandbox.run(&["attachment", "print", &page]);
    assert_starts(&printed.stdout, "# Start");
    let event = sandbox.events_of("chat_request").remove(0);
    let resource = &event["resources"][0];
    assert_eq!(resource["title"], "Guide");
    assert!(
        resource["annotations"]["lastModified"].is_string(),
        "{resource}"
    );

    sandbox.write("~/site/data.json", "{\"a\": 2}");
    assert_eq!(sandbox.json("resource refresh")["refreshed"], json!([data]));
    sandbox
        .fail(&["q", "-a", &format!("{}/missing", files.url), "x"], 1)
        .says(["404", "/missing"]);
    sandbox
        .fail(
            &[
                "q",
                "-c",
                "conversation.attachment.max_bytes=10B",
                "-a",
                &page,
                "x",
            ],
            1,
        )
        .says(["10 bytes"]);
    assert_eq!(sandbox.json("conversation show")["turns"], 1);
}

#[test]
fn private_address_is_reached_only_by_who_typed_it() {
    let (sandbox, server) = Sandbox::with_answer("Yes.");
    sandbox.write("~/site/secret.txt", "internal");
    let Some(files) = Files::serve(&sandbox.home.join("site")) else {
        return;
    };
    let url = format!("{}/secret.txt", files.url);
    sandbox.prepend_config(format!("conversation.attachments = [\"{url}\"]"));
    sandbox.fail("q --new x", 1).says(["127.0.0.1", "private"]);
    sandbox.run(&["q", "--new", "-a", &url, "mine"]);
    assert_contains(last_message(&server), "internal");
    let run = sandbox
        .fail("attachment add http://hans:hunter2@127.0.0.1:1/x", 1)
        .says(["credentials", "jp query --attach"]);
    assert_lacks(&run.stderr, "hunter2");
    let run = sandbox
        .fail("attachment rm http://hans:hunter2@127.0.0.1:1/x", 1)
        .says(["not attached"]);
    assert_lacks(&run.stderr, "hunter2");
    for input in [
        "!http://hans:hunter2@h/x",
        "mcp+s+http://hans:hunter2@h/x",
        "ftp://hans:hunter2@h/x",
    ] {
        let run = sandbox
            .fail(&["q", "-a", input, "x"], 1)
            .says(["failed to attach"]);
        assert_lacks(&run.stderr, "hunter2");
    }
    // Once the user has typed it in this checkout, it is their own.
    sandbox.run("q --new again");
    assert_contains(last_message(&server), "internal");
    let rows: Value = sandbox.json("attachment ls");
    assert_fields!(rows[0], {"kind": "url", "uri": url});
}
