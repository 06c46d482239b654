//! The example program `uri_template`, as a shell runs it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output};

use testing::example;

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(example("mcp_resources", "uri_template"))
        .args(arguments)
        .output();
    let Output {
        status,
        stdout,
        stderr,
    } = output.unwrap();
    (
        status.code(),
        String::from_utf8(stdout).unwrap(),
        String::from_utf8(stderr).unwrap(),
    )
}

fn assert_prints(arguments: &[&str], line: &str) {
    assert_eq!(
        run(arguments),
        (Some(0), format!("{line}\n"), String::new()),
        "{arguments:?}"
    );
}

fn assert_fails(arguments: &[&str], message: &str) {
    assert_eq!(
        run(arguments),
        (Some(1), String::new(), format!("error: {message}\n")),
        "{arguments:?}"
    );
}

#[test]
fn expand_prints_the_bare_uri() {
    assert_prints(
        &[
            "expand",
            "org://{file}/{+path}",
            r#"{"file":"a b","path":"x/y"}"#,
        ],
        "org://a%20b/x/y",
    );
    let values = r#"{"n":6,"yes":true,"none":null,"l":["1",2,null],"m":{"z":"1","a":2.5}}"#;
    assert_prints(
        &["expand", "{?n,yes,none,l*,m*}", values],
        "?n=6&yes=true&l=1&l=2&z=1&a=2.5",
    );
}

#[test]
fn match_prints_a_json_object() {
    let template = "org://{file}/headline/{+path}{?tags*}";
    assert_prints(
        &["match", template, "org://a%20b/headline/x/y?tags=1&tags=2"],
        r#"{"file":"a b","path":"x/y","tags":["1","2"]}"#,
    );
    assert_prints(&["match", "x:y{?z}", "x:y"], "{}");
}

#[test]
fn failures_exit_with_1_and_a_message() {
    assert_fails(
        &["match", "x:{a}", "x:a/b"],
        r#""x:a/b" does not match "x:{a}""#,
    );
    assert_fails(
        &["match", "x:{a}{b}", "x:y"],
        r#"the template doesn't show where "a" ends and "b" begins, so URIs can't be matched; put text between them, at byte 6: "b}""#,
    );
    assert_fails(
        &["expand", "{a", "{}"],
        r#""{" has no closing "}", at byte 0: "{a""#,
    );
    assert_fails(
        &["expand", "{a:1}", r#"{"a":["b"]}"#],
        r#"the template asks for a prefix (":1") of "a", which is a list or a map; give it a text"#,
    );
    assert_fails(
        &["expand", "{a}", r#"{"a":[["b"]]}"#],
        r#""a" has to be a text, a list of texts or an object of texts"#,
    );
    assert_fails(
        &["expand", "{a}", "["],
        "the values have to be a JSON object: invalid type: sequence, expected a map at line 1 column 0",
    );
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_nobody_takes_is_no_panic() {
    let line = |redirected: &str| {
        format!(
            "'{}' expand '{{x}}' '{{\"x\":\"{}\"}}' {redirected}",
            example("mcp_resources", "uri_template").display(),
            "a".repeat(100_000)
        )
    };
    let shell = |line: String| {
        Command::new("bash")
            .args(["-o", "pipefail", "-c", &line])
            .output()
            .unwrap()
    };
    let output = shell(line("| head -c 1"));
    assert_eq!(
        (output.status.code(), output.stderr),
        (Some(0), Vec::new()),
        "a closed pipe"
    );
    let output = shell(line("> /dev/full"));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stderr).starts_with("error: No space left"),
        "a full device"
    );
}

#[test]
fn help_is_printed() {
    let (status, stdout, _) = run(&["--help"]);
    assert_eq!(status, Some(0));
    assert!(stdout.starts_with("usage: "), "{stdout}");
}

#[test]
fn wrong_arguments_exit_with_2() {
    for arguments in [
        [].as_slice(),
        &["expand"],
        &["expand", "{a}"],
        &["match", "a", "b", "c"],
        &["other", "a", "b"],
    ] {
        let (status, stdout, stderr) = run(arguments);
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(stderr.starts_with("usage: "), "{stderr}");
    }
}
