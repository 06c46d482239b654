//! A server of a directory's Markdown files:
//!
//! ```text
//! $ notes ~/notes                         # one client, on standard input and output
//! $ notes --http 127.0.0.1:8080 ~/notes   # many, at http://127.0.0.1:8080/mcp; NOTES_TOKEN is the token, if set
//! ```
//!
//! Each file is a resource, `notes://todo.md`; templates give files below, `notes:///{+path}`, the headlines of a
//! file, `notes://{file}/outline`, and what stands under one, `notes://{file}/headline/{+path}`. Files that come,
//! go and change are announced.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that prints"
)]

use std::collections::BTreeSet;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use mcp_resources::template::UriTemplate;
use mcp_resources::{
    Annotations, Bundle, FileWatch, Http, Parameters, Partial, PathParam, ReadError, Registry,
    Resource, ResourceTemplate, Role, Root, Server,
};

/// The interval of the check for new and removed files.
const INTERVAL: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        [directory] => serve(directory, None),
        ["--http", address, directory] => serve(directory, Some(address)),
        _ => {
            eprintln!("usage: notes [--http ADDRESS] DIRECTORY");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(directory: &str, address: Option<&str>) -> Result<(), Box<dyn Error>> {
    let root = Arc::new(Root::open(directory)?);
    let registry = Registry::new();
    registry.register_server("notes", templates(&root))?;
    let mut directory = Directory {
        root,
        registry: registry.clone(),
        listed: BTreeSet::new(),
    };
    directory.look()?;
    std::thread::spawn(move || directory.follow());
    let _watch = FileWatch::start(&registry, |error| eprintln!("notes: {error}"))?;
    let server = Server::new("notes", env!("CARGO_PKG_VERSION"), registry)
        .title("Notes")
        .instructions(
            "Markdown notes. Read notes://FILE/outline first, then the headline you need.",
        );
    match address {
        Some(address) => serve_http(server, address.parse()?),
        None => Ok(server.run_stdio()?),
    }
}

#[tokio::main]
async fn serve_http(server: Server, address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let mut http = Http::new(server);
    if let Some(token) = std::env::var_os("NOTES_TOKEN") {
        http = http.token(token);
    }
    let bound = http.bind(address).await?;
    println!("http://{}/mcp", bound.address());
    Ok(bound.serve().await?)
}

fn templates(root: &Arc<Root>) -> Bundle {
    let (files, outlines, headlines) = (Arc::clone(root), Arc::clone(root), Arc::clone(root));
    let (sources, names_of) = (Arc::clone(root), Arc::clone(root));
    let complete = move |partial: Partial| {
        let names = names(&names_of).unwrap_or_default();
        names
            .into_iter()
            .filter(|name| name.starts_with(&partial.value))
            .collect()
    };
    Bundle::new()
        .template(
            ResourceTemplate::new("notes:///{+path}", "File", move |parameters: Parameters| {
                files.read_text(&parameters.path("path")?).map_err(ReadError::from)
            })
            .description("A file below the directory")
            .source(move |parameters| sources.source(&parameters.path("path").ok()?)),
        )
        .template(
            ResourceTemplate::new("notes://{file}/outline", "Outline", move |parameters: Parameters| {
                outline(&outlines.read_text(&parameters.path("file")?)?)
            })
            .description("The headlines of a file, with their levels")
            .mime_type("application/json")
            .complete("file", complete.clone()),
        )
        .template(
            ResourceTemplate::new(
                "notes://{file}/headline/{+path}",
                "Headline",
                move |parameters: Parameters| {
                    let text = headlines.read_text(&parameters.path("file")?)?;
                    section(&text, parameters.text("path")?).ok_or(ReadError::NotFound)
                },
            )
            .description("The text under a headline; the path contains the headlines above it, such as Tasks/Urgent")
            .mime_type("text/markdown")
            .complete("file", complete),
        )
}

/// The level and the title of a line, if it is a headline.
fn headline(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    let title = title.strip_prefix(' ')?.trim();
    (level > 0).then_some((level, title))
}

fn outline(text: &str) -> Result<String, ReadError> {
    let headlines = text.lines().filter_map(headline);
    let headlines: Vec<_> = headlines
        .map(|(level, title)| serde_json::json!({ "level": level, "title": title }))
        .collect();
    serde_json::to_string(&headlines).map_err(ReadError::failed)
}

/// The lines under a headline, up to the next one of its level or above.
fn section(text: &str, path: &str) -> Option<String> {
    let wanted: Vec<&str> = path.split('/').collect();
    let mut open: Vec<(usize, &str)> = Vec::new();
    let mut found: Option<(usize, Vec<&str>)> = None;
    for line in text.lines() {
        if let Some((level, title)) = headline(line) {
            if found
                .as_ref()
                .is_some_and(|(of_found, _)| level <= *of_found)
            {
                break;
            }
            open.retain(|(above, _)| *above < level);
            open.push((level, title));
            if found.is_none()
                && open
                    .iter()
                    .map(|(_, title)| *title)
                    .eq(wanted.iter().copied())
            {
                found = Some((level, Vec::new()));
                continue;
            }
        }
        if let Some((_, lines)) = &mut found {
            lines.push(line);
        }
    }
    found.map(|(_, lines)| lines.join("\n"))
}

/// The notes that can be read: not what a link has from elsewhere, nor one that leads nowhere.
fn names(root: &Root) -> io::Result<BTreeSet<String>> {
    let entries = std::fs::read_dir(root.path())?.filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let is_note = |name: &String| {
        name.ends_with(".md")
            && PathParam::new(name)
                .and_then(|path| root.join(&path))
                .is_ok()
    };
    Ok(names.filter(is_note).collect())
}

/// Lists the files that the directory has.
struct Directory {
    root: Arc<Root>,
    registry: Registry,
    listed: BTreeSet<String>,
}

impl Directory {
    fn follow(mut self) {
        loop {
            std::thread::sleep(INTERVAL);
            if let Err(error) = self.look() {
                eprintln!("notes: {error}");
            }
        }
    }

    fn look(&mut self) -> Result<(), Box<dyn Error>> {
        let names = names(&self.root)?;
        for name in self.listed.difference(&names) {
            self.registry.unregister_resource(&uri(name)?);
        }
        for name in names.difference(&self.listed) {
            self.registry.register_resource(self.resource(name)?)?;
        }
        self.listed = names;
        Ok(())
    }

    fn resource(&self, name: &str) -> Result<Resource, Box<dyn Error>> {
        let (root, path) = (Arc::clone(&self.root), PathParam::new(name)?);
        let source = self.root.path().join(&path);
        let note = Resource::new(uri(name)?, name, move || {
            root.read_text(&path).map_err(ReadError::from)
        })
        .description("A file of notes")
        .mime_type("text/markdown")
        .annotations(Annotations::default().audience([Role::User, Role::Assistant]))
        .source(source);
        Ok(note)
    }
}

fn uri(name: &str) -> Result<String, Box<dyn Error>> {
    let values = [("file".to_owned(), name.into())].into();
    Ok(UriTemplate::parse("notes://{file}")?.expand(&values)?)
}
