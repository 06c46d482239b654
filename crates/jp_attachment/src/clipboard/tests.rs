use super::*;

#[test]
fn tool_is_chosen_by_the_platform() {
    let table: [(bool, bool, &str, &[&str]); 7] = [
        (true, true, "linux", &["wl-paste", "xclip", "xsel"]),
        (true, false, "linux", &["wl-paste"]),
        (false, true, "freebsd", &["xclip", "xsel"]),
        (false, false, "linux", &[]),
        (false, false, "macos", &["pbpaste"]),
        (false, true, "macos", &["pbpaste"]),
        (false, false, "windows", &["powershell"]),
    ];
    for (has_wayland, has_x11, os, programs) in table {
        let tools = tools(has_wayland, has_x11, os);
        let found: Vec<&str> = tools.iter().map(|tool| tool.program).collect();
        assert_eq!(found, programs, "{has_wayland} {has_x11} {os}");
    }
}

#[test]
fn errors_of_tools_are_not_content() {
    let content = |tool: Tool, stdout: &str, stderr: &str, status| {
        let output = Output {
            stdout: stdout.into(),
            stderr: stderr.into(),
            status,
            was_held: false,
        };
        tool.content(output).map_err(|error| error.to_string())
    };
    assert_eq!(content(XCLIP, "x", "a warning", 0), Ok(b"x".to_vec()));
    assert_eq!(content(XSEL, "", "", 0), Err("it is empty".into()));
    assert_eq!(
        content(WL_PASTE, "", "Nothing is copied\n", 1),
        Err("it is empty".into())
    );
    let refused = Err(r#"`xclip` reports "Error: Can't open display: :9""#.into());
    assert_eq!(
        content(XCLIP, "", "Error: Can't open display: :9\n", 1),
        refused
    );
    assert_eq!(
        content(PBPASTE, "", "", 2),
        Err(r#"`pbpaste` reports "exit status: 2""#.into())
    );
}

#[cfg(target_os = "linux")]
mod real {
    use std::{
        error::Error as _,
        io::{BufRead as _, BufReader, Write as _},
        process::{Child, Stdio},
        time::SystemTime,
    };

    use jp_resource::Checksum;

    use super::*;
    use crate::{Nowhere, Place, Source, canonical_path, parse_input, parse_stored};

    /// An X server without a screen.
    struct Server {
        process: Child,
        displays: Displays,
    }

    impl Server {
        fn start() -> Option<Self> {
            let mut command = Command::new("Xvfb");
            command.args([
                "-displayfd",
                "1",
                "-nolisten",
                "tcp",
                "-screen",
                "0",
                "64x64x8",
            ]);
            let mut process = command
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .ok()?;
            let mut number = String::new();
            BufReader::new(process.stdout.take()?)
                .read_line(&mut number)
                .unwrap();
            let displays = Displays {
                wayland: None,
                x11: Some(format!(":{}", number.trim()).into()),
            };
            Some(Self { process, displays })
        }

        /// Copies, with a program that serves the clipboard until the server ends.
        fn copy(&self, text: &str) {
            let mut command = Command::new("xclip");
            self.displays.pass(&mut command);
            command
                .args(["-selection", "clipboard", "-i"])
                .stdin(Stdio::piped());
            let mut copying = command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            copying
                .stdin
                .take()
                .unwrap()
                .write_all(text.as_bytes())
                .unwrap();
            assert!(copying.wait().unwrap().success());
        }
    }

    impl Drop for Server {
        fn drop(&mut self) {
            self.process.kill().unwrap();
            self.process.wait().unwrap();
        }
    }

    fn place(directory: &tempfile::TempDir) -> Place {
        Place::new(canonical_path(directory.path()).unwrap())
    }

    fn attach(displays: &Displays, inputs: &[&str]) -> Result<Resolved, String> {
        let directory = tempfile::tempdir().unwrap();
        let place = place(&directory);
        let declared: Vec<_> = inputs
            .iter()
            .map(|input| parse_input(input, &place).unwrap())
            .collect();
        let displays = Some(displays);
        let context = Context {
            displays,
            ..Context::new(&place, &Nowhere, SystemTime::now())
        };
        resolve(&declared, &context)
            .map_err(|error| format!("{error}: {}", error.source().unwrap()))
    }

    #[test]
    fn clipboard_of_an_x_server_is_read_once() {
        let is_installed = Command::new("xclip")
            .arg("-version")
            .stderr(Stdio::null())
            .status()
            .is_ok();
        let Some(server) = is_installed.then(Server::start).flatten() else {
            eprintln!("skipped: Xvfb and xclip are not both installed");
            return;
        };
        let empty = attach(&server.displays, &["clip:"]).unwrap_err();
        assert_eq!(empty, "attach the clipboard: it is empty");

        server.copy("copied\n🦀");
        let resolved = attach(&server.displays, &["clip:", "CLIP:"]).unwrap();
        let [resource] = &resolved.resources[..] else {
            panic!("{resolved:?}")
        };
        let uri = format!("clip:{}", Checksum::compute("copied\n🦀".as_bytes()));
        assert_eq!(resource.uri, uri);
        assert_eq!(resource.name.as_deref(), Some("clipboard"));
        assert_eq!(resource.mime_type.as_deref(), Some("text/plain"));
        assert_eq!(resolved.delivered[0].declaration, uri);
    }

    #[test]
    fn missing_clipboard_is_an_error() {
        let none = attach(&Displays::default(), &["clip:"]).unwrap_err();
        assert_eq!(
            none,
            "attach the clipboard: there is no display: neither WAYLAND_DISPLAY nor DISPLAY is set"
        );
        let error = ClipboardError::NoTool {
            tried: "wl-paste".into(),
        };
        assert_eq!(
            error.to_string(),
            "no program to read it is installed (tried wl-paste); install wl-clipboard, xclip or xsel"
        );
    }

    #[test]
    fn only_the_clipboard_itself_can_be_declared() {
        let directory = tempfile::tempdir().unwrap();
        let place = place(&directory);
        let declared = parse_input("clip:", &place).unwrap();
        assert_eq!(
            (declared.declaration, declared.source),
            (None, Source::Clipboard)
        );
        let stored = format!("clip:{}", Checksum::compute(b"x"));
        assert!(matches!(
            parse_stored(&stored, &place),
            Err(AttachError::Snapshot { .. })
        ));
    }
}
