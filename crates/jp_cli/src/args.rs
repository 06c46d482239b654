//! The arguments.

mod suggest;

use std::{net::SocketAddr, path::PathBuf};

use clap::{ArgAction, CommandFactory as _, Parser, Subcommand, ValueEnum, error::ErrorKind};

/// A pair programmer for the command line: ask about your files, and keep what was asked.
#[derive(Debug, Parser)]
#[command(
    name = "jp",
    version,
    arg_required_else_help = true,
    infer_subcommands = false
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Args {
    /// Reads the arguments of the process, which ends where they are wrong.
    pub(crate) fn read() -> Self {
        Self::try_parse().unwrap_or_else(|error| match error.kind() {
            // clap's own words don't say which.
            ErrorKind::InvalidUtf8 => {
                let argument = std::env::args_os().rfind(|argument| argument.to_str().is_none());
                let shown = argument.unwrap_or_default();
                let why = format!(
                    "the argument {shown:?} is not UTF-8; a file of that name has to be renamed to be attached"
                );
                Self::command().error(error.kind(), why).exit()
            }
            ErrorKind::InvalidSubcommand => suggest::suggest_commands(error, Self::command()).exit(),
            _ => error.exit(),
        })
    }
}

/// Flags of every command.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Set a configuration value: KEY=VALUE, KEY:=JSON, KEY+=VALUE, or a TOML file to load
    #[arg(short = 'c', long = "cfg", value_name = "KEY=VALUE", global = true, action = ArgAction::Append)]
    pub(crate) cfg: Vec<String>,
    /// Work in the workspace at or above DIR
    #[arg(short = 'w', long, value_name = "DIR", global = true)]
    pub(crate) workspace: Option<PathBuf>,
    /// Write text, or one JSON document
    #[arg(short = 'F', long, value_enum, default_value_t = Format::Text, global = true)]
    pub(crate) format: Format,
    /// Say nothing but warnings and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Say more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Store nothing
    #[arg(long, global = true)]
    pub(crate) no_persist: bool,
    /// Fail where another jp is using the conversation, instead of waiting
    #[arg(long, global = true)]
    pub(crate) no_wait: bool,
    /// Allow what would be asked for
    #[arg(short, long, global = true)]
    pub(crate) yes: bool,
    /// Use colours
    #[arg(long, value_enum, default_value_t = Color::Auto, global = true)]
    pub(crate) color: Color,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Make a directory a workspace
    Init(Init),
    /// Send a message and show the answer
    #[command(visible_alias = "q")]
    Query(Query),
    /// What is attached to a conversation
    #[command(visible_alias = "a", subcommand)]
    Attachment(Attachment),
    /// The snapshots that a conversation holds
    #[command(visible_alias = "r", subcommand)]
    Resource(Resource),
    /// Conversations
    #[command(visible_alias = "c", subcommand)]
    Conversation(Conversation),
    /// Effective configuration
    #[command(subcommand)]
    Config(Config),
    /// What is on disk
    #[command(subcommand)]
    Storage(Storage),
    /// Models that there are, and which one answers
    #[command(subcommand)]
    Model(Model),
    /// MCP servers, and what they offer
    #[command(subcommand)]
    Mcp(Mcp),
    /// Serve a shell session to the tool `shell`
    #[command(hide = true)]
    ShellSession,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    /// The directory; the current one if none is named
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Query {
    /// The message; piped stdin goes before it. Without either, an unanswered message is sent again
    pub(crate) words: Vec<String>,
    /// Start a new conversation
    #[arg(short, long, conflicts_with = "id")]
    pub(crate) new: bool,
    /// Attach a file, a directory, a glob, a URL, a command's output (`cmd:git diff`), the clipboard
    /// (`clip:`) or stdin (`-`); `!PATTERN` excludes (repeat)
    #[arg(short, long, value_name = "PATH|URL", action = ArgAction::Append)]
    pub(crate) attach: Vec<String>,
    /// Ask this model
    #[arg(short, long, value_name = "PROVIDER/NAME")]
    pub(crate) model: Option<String>,
    /// Ask for an answer in JSON that fits this JSON Schema, and fail if it does not
    #[arg(short, long, value_name = "JSON|@FILE")]
    pub(crate) schema: Option<String>,
    /// Let the model call this tool from now on (repeat)
    #[arg(short, long, value_name = "NAME", action = ArgAction::Append)]
    pub(crate) tool: Vec<String>,
    /// Let the model call no tool from now on but those that --tool names, or not this one (repeat)
    #[arg(
        short = 'T',
        long,
        value_name = "NAME",
        action = ArgAction::Append,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "*"
    )]
    pub(crate) no_tool: Vec<String>,
    /// Continue this conversation
    #[arg(short, long)]
    pub(crate) id: Option<String>,
    /// Give the new conversation a title
    #[arg(long, requires = "new")]
    pub(crate) title: Option<String>,
    /// Keep the new conversation out of the workspace, for this user alone
    #[arg(long, requires = "new")]
    pub(crate) local: bool,
    /// Show what would be sent, and send nothing
    #[arg(long)]
    pub(crate) explain: bool,
    /// Send no request that has more than about this many tokens; the exit code is then 3
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) budget: Option<u64>,
    /// Leave out attachments that can't be read, instead of failing
    #[arg(long)]
    pub(crate) skip_unavailable: bool,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Attachment {
    /// Attach from the next message on
    Add {
        /// Files, directories, globs, URLs, `cmd:…`, `clip:`, `-`; `!PATTERN` excludes
        #[arg(required = true)]
        paths: Vec<String>,
        #[command(flatten)]
        conversation: Selected,
    },
    /// Attach no longer; the history keeps what it has of it
    Rm {
        /// What `add` or `--attach` took, or what `ls` shows
        #[arg(required = true)]
        paths: Vec<String>,
        #[command(flatten)]
        conversation: Selected,
    },
    /// List what is attached
    Ls {
        #[command(flatten)]
        conversation: Selected,
    },
    /// Write what is attached, as a model is shown it
    Print {
        /// What `add` took, or what `ls` shows; everything if none is named
        attachments: Vec<String>,
        #[command(flatten)]
        conversation: Selected,
    },
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Resource {
    /// List every snapshot
    Ls {
        #[command(flatten)]
        conversation: Selected,
    },
    /// Take a new snapshot now, for the next message
    Refresh {
        /// URIs, names or what was attached; everything that is attached if none is named
        resources: Vec<String>,
        #[command(flatten)]
        conversation: Selected,
    },
    /// Write a snapshot's raw content to stdout
    Show {
        /// The URI, or the name that `ls` shows
        uri: String,
        /// Which one: its number among the URI's versions, from 1, or the start of its checksum; the newest if none is
        /// named
        #[arg(long, value_name = "N|CHECKSUM")]
        version: Option<String>,
        #[command(flatten)]
        conversation: Selected,
    },
}

// Which conversation. No documentation: it would become that of the commands that have this.
#[derive(Debug, clap::Args)]
pub(crate) struct Selected {
    /// The conversation; the current one if none is named
    #[arg(short, long)]
    pub(crate) id: Option<String>,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Conversation {
    /// List conversations, newest first
    Ls {
        /// List the archived conversations instead
        #[arg(long)]
        archived: bool,
    },
    /// Show what there is to know of a conversation
    Show {
        /// The conversation; the current one if none is named
        id: Option<String>,
        /// Show the paths of all files that it needs, one a line, for `git add`
        #[arg(long)]
        files: bool,
    },
    /// Write a conversation as text
    Print {
        #[command(flatten)]
        conversation: Named,
        /// These turns only: N, A..B, A.. or ..B
        #[arg(long, value_name = "A..B")]
        turn: Option<String>,
        /// Write what a model would get of it now, with references, diffs and what a compaction leaves out
        #[arg(long)]
        as_sent: bool,
    },
    /// Shorten older turns from the next message on; the history stays as it is
    Compact(Compact),
    /// Make a conversation the current one
    Use {
        /// The conversation
        id: String,
    },
    /// Copy a conversation, or its last turns, to a new one, and make that the current one
    Fork {
        /// The conversation; the current one if none is named
        id: Option<String>,
        /// Keep the last N turns only
        #[arg(long, value_name = "N")]
        turns: Option<usize>,
        /// Title of the copy
        #[arg(long)]
        title: Option<String>,
    },
    /// Remove conversations
    Rm {
        /// The conversations
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

// Which conversation, with or without `--id` before it. No documentation, as above.
#[derive(Debug, clap::Args)]
pub(crate) struct Named {
    /// The conversation; the current one if none is named
    #[arg(value_name = "ID", conflicts_with = "id")]
    place: Option<String>,
    /// The conversation
    #[arg(short, long, value_name = "ID")]
    id: Option<String>,
}

impl Named {
    pub(crate) fn id(&self) -> Option<&str> {
        self.place.as_deref().or(self.id.as_deref())
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Compact {
    #[command(flatten)]
    pub(crate) conversation: Named,
    /// Leave the last N turns as they are
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) keep_last: usize,
    /// What to leave out: the model's reasoning, or what tools returned; both if nothing is named (repeat)
    #[arg(long, value_enum, value_name = "WHAT", action = ArgAction::Append)]
    pub(crate) strip: Vec<Strip>,
    /// Ask the model for a summary, which stands in the place of those turns
    #[arg(long)]
    pub(crate) summarize: bool,
    /// Say what would be left out, and store nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Send everything again, as if nothing had been shortened
    #[arg(long, conflicts_with_all = ["keep_last", "strip", "summarize"])]
    pub(crate) reset: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Strip {
    Reasoning,
    Tools,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Config {
    /// Show every value with where it comes from
    Show {
        /// Only this key and those below it
        key: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Model {
    /// List the models of every provider that is set up, with what they take
    Ls {
        /// This provider's only
        provider: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Mcp {
    /// List the configured servers with what they offer, or the tools of one
    Ls {
        /// The server whose tools to list
        server: Option<String>,
    },
    /// List the resources that servers offer
    Resources {
        /// The servers; all if none is named
        servers: Vec<String>,
    },
    /// List the templates of resources that servers offer
    Templates {
        /// The servers; all if none is named
        servers: Vec<String>,
    },
    /// Write the raw content of a server's resource to stdout
    Read {
        /// The server
        server: String,
        /// The URI, as `resources` lists it or as a template makes it
        uri: String,
        /// Go on, and write it again each time the server says that it changed
        #[arg(long)]
        watch: bool,
    },
    /// Offer this workspace to MCP clients, to read
    Serve(McpServe),
    /// Log in at a server that wants to know who asks, on a page of your browser
    Login(McpLogin),
    /// Forget what a login gave
    Logout {
        /// The server
        server: String,
    },
}

fn address(argument: &str) -> Result<SocketAddr, String> {
    argument
        .parse()
        .map_err(|_| "write an address and a port, as 127.0.0.1:8080".to_owned())
}

/// Takes what a `Host` header may hold.
fn host(argument: &str) -> Result<String, String> {
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    match !argument.is_empty() && argument.bytes().all(is_host) {
        true => Ok(argument.to_owned()),
        false => Err(
            "write a name as clients do, with or without a port, as box.example:8080".to_owned(),
        ),
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct McpServe {
    /// Serve the one client that started it, on stdin and stdout, as is done without --http
    #[arg(long, conflicts_with = "http")]
    pub(crate) stdio: bool,
    /// Serve any number of clients at this address, at the path /mcp; port 0 takes a free one. The variable
    /// JP_MCP_TOKEN has the token that clients have to send, if they are to
    #[arg(long, value_name = "IP:PORT", value_parser = address)]
    pub(crate) http: Option<SocketAddr>,
    /// Let clients of other machines reach it by this name (repeat)
    #[arg(long, value_name = "NAME", requires = "http", action = ArgAction::Append, value_parser = host)]
    pub(crate) allow_host: Vec<String>,
    /// List what is attached to this conversation, and not to the current one
    #[arg(short, long)]
    pub(crate) id: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct McpLogin {
    /// The server
    pub(crate) server: String,
    /// What the server's provider knows jp by, where it does not let programs register themselves
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// The variable of the environment that holds the secret that goes with it
    #[arg(long, value_name = "VARIABLE", requires = "client_id")]
    pub(crate) client_secret_env: Option<String>,
    /// A right to ask for beside what the server wants (repeat)
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Vec<String>,
    /// The port on this machine that the page leads back to, where the provider wants one that it knows
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Storage {
    /// Show what is kept, and how large it is
    Status,
    /// Verify every conversation and every blob
    Check,
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory as _};

    use super::*;

    fn descriptions(command: &Command, descriptions: &mut Vec<String>) {
        let about = command.get_about().map(ToString::to_string);
        descriptions.push(format!(
            "{}: {}",
            command.get_name(),
            about.unwrap_or_default()
        ));
        let commands = command
            .get_subcommands()
            .filter(|command| command.get_name() != "help");
        commands.for_each(|command| self::descriptions(command, descriptions));
    }

    /// The arguments of a command are described only when it is called.
    #[test]
    fn command_has_one_description_whether_it_is_listed_or_called() {
        let (mut listed, mut called) = (Vec::new(), Vec::new());
        descriptions(&Args::command(), &mut listed);
        let mut command = Args::command();
        command.build();
        descriptions(&command, &mut called);
        assert!(listed.len() > 30, "{listed:?}");
        assert_eq!(listed, called);
    }
}
