"""What a scenario is: the files it starts with, what the model answers, and what the user does.

Text may contain these marks, which are replaced before it is used:

    @URL@   the server that plays the model and serves pages
    @HOST@  its host and port
    @ROOT@  the workspace's root
    @HOME@  the user's home
"""

import dataclasses

USER_CONFIG = "~/.config/jp/config.toml"
WORKSPACE_CONFIG = ".jp/config.toml"


@dataclasses.dataclass
class Jp:
    """Runs jp. Before each run but the first, the clock advances by ten seconds."""

    arguments: list
    stdin: object = None
    environment: dict = dataclasses.field(default_factory=dict)
    directory: str = "."
    # Pairs of a text to wait for and what is then typed; jp gets a terminal if there are any.
    dialogue: list = dataclasses.field(default_factory=list)
    # Ctrl-C follows once stdout has this text.
    interrupt_after: object = None


@dataclasses.dataclass
class Write:
    """Writes a file as old as the clock says, in the workspace or, after `~/`, in the home."""

    path: str
    content: object
    mode: int = 0o644


@dataclasses.dataclass
class Replace:
    """Replaces a text in each file that the glob matches, at least once."""

    pattern: str
    old: str
    new: str


@dataclasses.dataclass
class Move:
    """Moves what the glob matches into a directory."""

    pattern: str
    directory: str


@dataclasses.dataclass
class Remove:
    """Removes each file that the glob matches."""

    pattern: str


@dataclasses.dataclass
class Later:
    """Advances the clock."""

    seconds: int


@dataclasses.dataclass
class Scenario:
    """A conversation, or several, to be played by both binaries."""

    name: str
    steps: list
    # What the model answers, one reply a request; functions of a format or `Reply` values.
    answers: list = dataclasses.field(default_factory=list)
    provider: str = "llamacpp"
    files: dict = dataclasses.field(default_factory=dict)
    # TOML of the user's and the workspace's configuration, besides what names the model.
    config: str = ""
    workspace_config: str = ""
    # What the server answers by path to requests that are no questions to a model.
    pages: dict = dataclasses.field(default_factory=dict)
    environment: dict = dataclasses.field(default_factory=dict)
    # Whether the model's capabilities are in the configuration.
    knows_model: bool = True
    # Whether the fixture makes the directory a workspace.
    has_workspace: bool = True


def jp(*arguments, **options):
    """Returns a step that runs jp with these arguments."""
    return Jp(list(arguments), **options)


def ask(*arguments, **options):
    """Returns a step that runs `jp query` with these arguments."""
    return jp("query", *arguments, **options)


def at_terminal(arguments, *dialogue, **options):
    """Returns a step that runs jp at a terminal, where somebody types."""
    return Jp(list(arguments), dialogue=list(dialogue), **options)
