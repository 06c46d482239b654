//! The command line: commands, flags and their `--help` texts.

mod suggest;

use std::{net::SocketAddr, path::PathBuf};

use clap::{ArgAction, CommandFactory as _, Parser, Subcommand, ValueEnum, error::ErrorKind};

/// A pair programmer for the command line: ask about your files and keep the conversation
#[derive(Debug, Parser)]
#[command(
    name = "jp",
    version,
    arg_required_else_help = true,
    infer_subcommands = false,
    disable_help_subcommand = true,
    after_help = "`jp help` lists topics such as permissions and settings; `jp help TOPIC` shows one."
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Args {
    /// Reads the arguments of the process; ends the process if they are wrong.
    pub(crate) fn read() -> Self {
        Self::try_parse().unwrap_or_else(|error| match error.kind() {
            // clap's own message doesn't name the argument.
            ErrorKind::InvalidUtf8 => {
                // From the end, because the path of the program comes first, and clap does not read it.
                let argument = std::env::args_os().rfind(|argument| argument.to_str().is_none());
                let shown = argument.unwrap_or_default();
                let why = format!(
                    "the argument {shown:?} is not UTF-8; rename a file of that name to attach it"
                );
                Self::command().error(error.kind(), why).exit()
            }
            ErrorKind::InvalidSubcommand => {
                suggest::suggest_commands(error, Self::command()).exit()
            }
            _ => error.exit(),
        })
    }

    /// Prints the help of a command, exactly as its `--help` does, and ends the process.
    ///
    /// `words` name an existing command: `["conversation", "fork"]`, or none for all of jp.
    /// `topics` follow the options of the latter.
    pub(crate) fn exit_with_help(words: &[String], topics: String) -> ! {
        let words = words.iter().map(String::as_str);
        let arguments = ["jp"].into_iter().chain(words).chain(["--help"]);
        let command = Self::command().after_help(topics);
        command.get_matches_from(arguments);
        unreachable!("clap ends the process after it prints the help")
    }
}

/// The flags that every command takes.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Set a configuration value (KEY=VALUE, KEY:=JSON, or KEY+=VALUE to append), or load a TOML
    /// file
    #[arg(short = 'c', long = "cfg", value_name = "KEY=VALUE", global = true, action = ArgAction::Append)]
    pub(crate) cfg: Vec<String>,
    /// Use the workspace at or above DIR
    #[arg(short = 'w', long, value_name = "DIR", global = true)]
    pub(crate) workspace: Option<PathBuf>,
    /// Print output as text or as one JSON document
    #[arg(short = 'F', long, value_enum, default_value_t = Format::Text, global = true)]
    pub(crate) format: Format,
    /// Only print warnings and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Print more details
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Don't write anything to disk
    #[arg(long, global = true)]
    pub(crate) no_persist: bool,
    /// Fail instead of waiting if another jp is using the conversation
    #[arg(long, global = true)]
    pub(crate) no_wait: bool,
    /// Answer yes to every prompt
    #[arg(short, long, global = true)]
    pub(crate) yes: bool,
    /// When to use colours
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
    /// Create a workspace
    Init(Init),
    /// Send a message and print the answer
    #[command(visible_alias = "q")]
    Query(Query),
    /// Manage the attachments of a conversation
    #[command(visible_alias = "a", subcommand)]
    Attachment(Attachment),
    /// List, print and refresh snapshots
    #[command(visible_alias = "r", subcommand)]
    Resource(Resource),
    /// Manage conversations
    #[command(visible_alias = "c", subcommand)]
    Conversation(Conversation),
    /// Show the configuration
    #[command(subcommand)]
    Config(Config),
    /// Show and check what jp stores on disk
    #[command(subcommand)]
    Storage(Storage),
    /// List available models
    #[command(subcommand)]
    Model(Model),
    /// Use MCP servers, or serve this workspace over MCP
    #[command(subcommand)]
    Mcp(Mcp),
    /// Print help for a command or a topic
    Help(Help),
    /// Run a shell session for the tool `shell`
    #[command(hide = true)]
    ShellSession,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Help {
    /// A command such as `conversation fork`, or a topic; without one, list both
    #[arg(value_name = "COMMAND|TOPIC")]
    pub(crate) words: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    /// The directory [default: the current directory]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Query {
    /// The message; piped input comes before it. Without a message, jp resends the last one if it
    /// has no answer
    pub(crate) words: Vec<String>,
    /// Start a new conversation
    #[arg(short, long, conflicts_with = "id")]
    pub(crate) new: bool,
    /// Attach a file, directory, glob, URL, command output (`cmd:git diff`), the clipboard
    /// (`clip:`) or stdin (`-`); `!PATTERN` excludes files (repeatable)
    #[arg(short, long, value_name = "PATH|URL", action = ArgAction::Append)]
    pub(crate) attach: Vec<String>,
    /// Use this model from now on
    #[arg(short, long, value_name = "PROVIDER/NAME")]
    pub(crate) model: Option<String>,
    /// Require an answer in JSON that matches this JSON Schema
    #[arg(short, long, value_name = "JSON|@FILE")]
    pub(crate) schema: Option<String>,
    /// Enable a tool from now on (repeatable)
    #[arg(short, long, value_name = "NAME", action = ArgAction::Append)]
    pub(crate) tool: Vec<String>,
    /// Disable a tool from now on (repeatable); without a NAME, disable all tools except those
    /// that --tool enables
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
    /// Set the title of the new conversation
    #[arg(long, requires = "new")]
    pub(crate) title: Option<String>,
    /// Store the new conversation outside the workspace, for this user only
    #[arg(long, requires = "new")]
    pub(crate) local: bool,
    /// Show the request without sending it
    #[arg(long)]
    pub(crate) explain: bool,
    /// Fail with exit code 3 if the request has more than about TOKENS tokens
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) budget: Option<u64>,
    /// Skip attachments that can't be read instead of failing
    #[arg(long)]
    pub(crate) skip_unavailable: bool,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Attachment {
    /// Attach files, pages or command output, starting with the next message
    Add {
        /// Files, directories, globs, URLs, `cmd:…`, `clip:` or `-`; `!PATTERN` excludes files
        #[arg(required = true)]
        paths: Vec<String>,
        #[command(flatten)]
        conversation: Selected,
    },
    /// Stop attaching files, pages or command output; existing snapshots stay
    Rm {
        /// Attachments as you wrote them for `add` or `--attach`, or as `ls` lists them
        #[arg(required = true)]
        paths: Vec<String>,
        #[command(flatten)]
        conversation: Selected,
    },
    /// List attachments
    Ls {
        #[command(flatten)]
        conversation: Selected,
    },
    /// Print attachments as a model sees them
    Print {
        /// Attachments as you wrote them for `add`, or as `ls` lists them [default: all]
        attachments: Vec<String>,
        #[command(flatten)]
        conversation: Selected,
    },
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Resource {
    /// List all snapshots
    Ls {
        #[command(flatten)]
        conversation: Selected,
    },
    /// Read attachments again and send new versions with the next message
    Refresh {
        /// URIs, names, or attachments as you wrote them [default: all attachments]
        resources: Vec<String>,
        #[command(flatten)]
        conversation: Selected,
    },
    /// Print the raw content of a snapshot
    Show {
        /// The URI, or the name that `ls` lists
        uri: String,
        /// A version number as `ls` lists it, or the start of a checksum [default: the newest
        /// version]
        #[arg(long, value_name = "N|CHECKSUM")]
        version: Option<String>,
        #[command(flatten)]
        conversation: Selected,
    },
}

// Selects a conversation. A doc comment here would replace those of the commands that flatten this.
#[derive(Debug, clap::Args)]
pub(crate) struct Selected {
    /// The conversation [default: the current one]
    #[arg(short, long)]
    pub(crate) id: Option<String>,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Conversation {
    /// List conversations, newest first
    Ls {
        /// List archived conversations instead
        #[arg(long)]
        archived: bool,
    },
    /// Show a conversation's attachments, size and token usage
    Show {
        /// The conversation [default: the current one]
        id: Option<String>,
        /// Only print the paths of all its files, one per line, for `git add`
        #[arg(long)]
        files: bool,
    },
    /// Print a conversation
    Print {
        #[command(flatten)]
        conversation: Named,
        /// Only print these turns: N, A..B, A.. or ..B
        #[arg(long, value_name = "A..B")]
        turn: Option<String>,
        /// Print what a model would receive now, with references, diffs and compaction applied
        #[arg(long)]
        as_sent: bool,
    },
    /// Shorten older turns in future requests; the history stays unchanged
    Compact(Compact),
    /// Switch to a conversation
    Use {
        /// The conversation
        id: String,
    },
    /// Copy a conversation and switch to the copy
    Fork {
        /// The conversation [default: the current one]
        id: Option<String>,
        /// Only copy the last N turns
        #[arg(long, value_name = "N")]
        turns: Option<usize>,
        /// Set the title of the copy [default: the same title]
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

// Selects a conversation, with or without `--id` before it. No doc comment, as above.
#[derive(Debug, clap::Args)]
pub(crate) struct Named {
    /// The conversation [default: the current one]
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
    /// Don't shorten the last N turns
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) keep_last: usize,
    /// Leave out the model's reasoning or the results of tools [default: both] (repeatable)
    #[arg(long, value_enum, value_name = "WHAT", action = ArgAction::Append)]
    pub(crate) strip: Vec<Strip>,
    /// Replace the turns with a summary that the model writes
    #[arg(long)]
    pub(crate) summarize: bool,
    /// Show what would change without changing it
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Undo all compactions: send everything again
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
    /// Show every setting and its origin
    Show {
        /// Only show this key and the keys below it
        key: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Model {
    /// List available models and their capabilities; `*` marks the one in use
    Ls {
        /// Only list models of this provider
        provider: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Mcp {
    /// List configured servers, or the tools of one server
    Ls {
        /// List the tools of this server
        server: Option<String>,
    },
    /// List the resources of servers
    Resources {
        /// The servers [default: all]
        servers: Vec<String>,
    },
    /// List the resource templates of servers
    Templates {
        /// The servers [default: all]
        servers: Vec<String>,
    },
    /// Print the raw content of a resource
    Read {
        /// The server
        server: String,
        /// The URI, from `resources` or expanded from a template
        uri: String,
        /// Print it again whenever the server reports a change, until Ctrl-C
        #[arg(long)]
        watch: bool,
    },
    /// Serve this workspace read-only to MCP clients
    Serve(McpServe),
    /// Log in to a server in your browser
    Login(McpLogin),
    /// Delete stored credentials
    Logout {
        /// The server
        server: String,
    },
}

fn parse_address(argument: &str) -> Result<SocketAddr, String> {
    argument
        .parse()
        .map_err(|_| "expected an address and a port, such as 127.0.0.1:8080".to_owned())
}

/// Parses a host name that a `Host` header may contain.
fn parse_host(argument: &str) -> Result<String, String> {
    let mut bytes = argument.bytes();
    let is_host = bytes.all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte));
    if argument.is_empty() || !is_host {
        return Err("expected a name, with or without a port, such as box.example:8080".to_owned());
    }
    Ok(argument.to_owned())
}

#[derive(Debug, clap::Args)]
pub(crate) struct McpServe {
    /// Serve one client over stdin and stdout (the default)
    #[arg(long, conflicts_with = "http")]
    pub(crate) stdio: bool,
    /// Serve any number of clients over HTTP at the path /mcp; port 0 picks a free port. If the
    /// variable JP_MCP_TOKEN is set, clients must send its value as a bearer token
    #[arg(long, value_name = "IP:PORT", value_parser = parse_address)]
    pub(crate) http: Option<SocketAddr>,
    /// Accept clients on other machines that use this host name (repeatable)
    #[arg(long, value_name = "NAME", requires = "http", action = ArgAction::Append, value_parser = parse_host)]
    pub(crate) allow_host: Vec<String>,
    /// Offer the attachments of this conversation [default: the current one]
    #[arg(short, long)]
    pub(crate) id: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct McpLogin {
    /// The server
    pub(crate) server: String,
    /// jp's client ID, if the provider doesn't allow dynamic registration
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// The environment variable that holds the client secret
    #[arg(long, value_name = "VARIABLE", requires = "client_id")]
    pub(crate) client_secret_env: Option<String>,
    /// Request an additional scope (repeatable)
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Vec<String>,
    /// The local port of the redirect URL; 0 picks a free port
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Storage {
    /// Show the size of stored conversations and content
    Status,
    /// Verify all conversations and stored content
    Check,
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory as _};

    use super::*;

    fn collect_descriptions(command: &Command, descriptions: &mut Vec<String>) {
        let about = command.get_about().map(ToString::to_string);
        descriptions.push(format!(
            "{}: {}",
            command.get_name(),
            about.unwrap_or_default()
        ));
        let commands = command
            .get_subcommands()
            .filter(|command| command.get_name() != "help");
        commands.for_each(|command| collect_descriptions(command, descriptions));
    }

    /// Commands are built only when they are called (`defer`), so each has two descriptions that could differ.
    #[test]
    fn command_has_one_description_whether_it_is_listed_or_called() {
        let (mut listed, mut called) = (Vec::new(), Vec::new());
        collect_descriptions(&Args::command(), &mut listed);
        let mut command = Args::command();
        command.build();
        collect_descriptions(&command, &mut called);
        assert!(listed.len() > 30, "{listed:?}");
        assert_eq!(listed, called);
    }
}
