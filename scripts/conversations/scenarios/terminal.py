"""What is asked at a terminal."""

from ..formats import call, say, use
from ..scenario import Scenario, ask, at_terminal
from .tools import ASKING, GREET

RUN = "[w]hy not:"


def query(*words):
    """Returns the arguments of a question in a new conversation."""
    return ["query", "--new", *words]


SCENARIOS = [
    Scenario(
        "terminal-yes-no-and-why",
        [
            at_terminal(
                query("begin"),
                (RUN, "y\n"),
                (RUN, "n\n"),
                (RUN, "w\n"),
                ("Why not?", "she is asleep\n"),
            )
        ],
        [use(call("greet")), use(call("greet")), use(call("greet")), say("Done.")],
        config=GREET,
    ),
    Scenario(
        "terminal-always-this-turn",
        [at_terminal(query("begin"), (RUN, "a\n")), ask("on")],
        [
            use(call("greet"), call("greet")),
            use(call("greet")),
            say("Done."),
            use(call("greet")),
            say("Refused."),
        ],
        config=GREET,
    ),
    Scenario(
        "terminal-edited-arguments",
        [
            at_terminal(
                query("begin"),
                (RUN, "e\n"),
                (RUN, "y\n"),
                environment={"EDITOR": "sed -i s/ada/bob/"},
            )
        ],
        [use(call("show", name="ada")), say("Done.")],
        config="[conversation.tools.show]\n"
        "command = 'printf %s {{tool.arguments.name}}'\n"
        "parameters.name = { type = 'string' }\n",
    ),
    Scenario(
        "terminal-trust",
        [at_terminal(query("begin"), ("[t]rust it", "t\n")), ask("-F", "json", "on")],
        [use(call("greet")), say("Done."), use(call("greet")), say("Trusted.")],
        workspace_config=GREET + "run = 'unattended'\n",
    ),
    Scenario(
        "terminal-question",
        [
            at_terminal(query("begin"), ("Apply?", "n\n")),
            at_terminal(query("begin"), ("Apply?", "\n")),
        ],
        [use(call("change")), say("No."), use(call("change")), say("Yes.")],
        config="[conversation.tools.change]\ncommand = 'sh ../ask.sh'\nrun = 'unattended'\n",
        files={"~/ask.sh": ASKING},
    ),
    Scenario(
        "terminal-edit-preview",
        [at_terminal(query("-t", "edit_file", "begin"), (RUN, "y\n"), (RUN, "n\n"))],
        [
            use(call("edit_file", path="a.txt", old="one", new="two")),
            use(call("edit_file", path="a.txt", old="two", new="three")),
            say("Done."),
        ],
        files={"a.txt": "one\n"},
    ),
    Scenario(
        "terminal-ctrl-c-at-a-prompt",
        [at_terminal(query("begin"), (RUN, "\x03")), ask()],
        [use(call("greet")), say("On.")],
        config=GREET,
    ),
    Scenario(
        "terminal-command-of-the-workspace",
        [at_terminal(query("what?"), ("[y/N]", "y\n")), ask("--new", "approved?")],
        [say("One."), say("Two.")],
        workspace_config="conversation.attachments = ['cmd:cat a.txt']\n",
        files={"a.txt": "a\n"},
    ),
]
