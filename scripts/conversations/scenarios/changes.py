"""Changed sources: references, diffs, notifications, snapshots, superseded versions."""

from ..formats import call, say, use
from ..scenario import WORKSPACE_CONFIG, Later, Remove, Scenario, Write, ask, jp
from ..server import Reply
from .content import lines

NOTIFY = """
conversation.attachments = [
    { type = 'file', path = 'a.txt', refresh = 'notify' },
    { type = 'file', path = 'docs/', refresh = 'notify' },
]
"""
NOTIFY_ELSEWHERE = """
conversation.attachments = [
    { type = 'cmd', path = 'cat', params = { arg = ['state'] }, refresh = 'notify' },
    { type = 'http', path = '@HOST@/page', refresh = 'notify' },
]
"""
# Longer than any provider keeps a prompt in its cache.
MONTH = 30 * 24 * 3600


LONG, CHANGED = lines("line", 200), lines("line", 200, changed=30)


def refresh(uri):
    """Returns an answer that reads an attachment again."""
    return use(call("refresh_resource", uri=uri))


SCENARIOS = [
    Scenario(
        "reference-lines-and-diff",
        [
            ask("--new", "-a", "a.txt", "one"),
            ask("-a", "a.txt", "again"),
            ask("read it"),
            Write("a.txt", CHANGED),
            ask("-a", "a.txt", "changed"),
            ask("--explain", "and?"),
            ask("--explain", "-F", "json", "and?"),
            jp("c", "print", "--as-sent"),
            jp("c", "print", "--as-sent", "--turn", "2..3", "-F", "json"),
        ],
        [
            say("One."),
            say("Two."),
            use(
                call("read_file", path="a.txt"),
                call("read_file", path="a.txt", first_line=10, last_line=60),
            ),
            use(call("read_file", path="a.txt")),
            say("Three."),
            say("Four."),
        ],
        files={"a.txt": LONG},
    ),
    Scenario(
        "deduplication-settings",
        [
            ask("--new", "-a", "a.txt", "one"),
            Write("a.txt", CHANGED),
            ask("-a", "a.txt", "-c", "conversation.deduplication.diffs=false", "two"),
            ask("-c", "conversation.deduplication.enabled=false", "three"),
            ask("-c", "conversation.deduplication.ranges=false", "four"),
        ],
        [say("One."), say("Two."), say("Three."), say("Four.")],
        files={"a.txt": LONG},
    ),
    Scenario(
        "repeated-call",
        [ask("--new", "-a", "a.txt", "one"), ask("read"), ask("read again"), ask("and again")],
        [say("One.")] + [use(call("read_file", path="a.txt")), say("Read.")] * 3,
        files={"a.txt": LONG},
    ),
    Scenario(
        "moved-lines",
        [
            ask("--new", "-a", "a.txt", "one"),
            Write("b.txt", lines("other", 20) + LONG),
            ask("-a", "b.txt", "two"),
            Remove("a.txt"),
            ask("-a", "b.txt", "3"),
        ],
        [say("One."), say("Two."), say("Three.")],
        files={"a.txt": LONG},
    ),
    Scenario(
        "notify",
        [
            ask("one"),
            ask("two"),
            Write("a.txt", "b"),
            Write("docs/c.md", "changed"),
            ask("three"),
            ask("four"),
            Write("a.txt", "a"),
            ask("five"),
            Remove("a.txt"),
            ask("six"),
            ask("seven"),
            jp("c", "print"),
        ],
        [say(word) for word in ("One.", "Two.", "Three.", "Four.", "Five.", "Six.", "Seven.")],
        workspace_config=NOTIFY,
        files={"a.txt": "a", "docs/c.md": "c", "docs/d.md": "d"},
    ),
    Scenario(
        "notify-of-own-edits",
        [
            ask("--new", "-t", "edit_file", "--yes", "edit it"),
            ask("and?"),
            Write("a.txt", "by the user"),
            ask("on"),
        ],
        [
            use(call("edit_file", path="a.txt", old="a", new="b")),
            say("Edited."),
            say("On."),
            say("Seen."),
        ],
        workspace_config=NOTIFY,
        files={"a.txt": "a\n", "docs/c.md": "c\n"},
    ),
    Scenario(
        "notify-of-a-page-and-a-command",
        [ask("--new", "one"), Write("state", "b"), ask("two"), ask("three")],
        [say("One."), say("Two."), say("Three.")],
        files={"state": "a"},
        pages={
            "/page": [Reply(b"one page\n", "text/plain"), Reply(b"another page\n", "text/plain")]
        },
        config=NOTIFY_ELSEWHERE,
    ),
    Scenario(
        "refresh-resource",
        [
            ask("--new", "-a", "src/a.rs", "look"),
            Write("src/a.rs", "fn new() {}\n"),
            ask("again"),
            ask("unchanged"),
            Remove("src/a.rs"),
            ask("gone"),
            jp("r", "ls"),
            jp("r", "ls", "-F", "json"),
            jp("r", "show", "src/a.rs", "--version", "1"),
            jp("r", "show", "src/a.rs", "--version", "2"),
        ],
        [
            say("Seen."),
            refresh("file://@ROOT@/src/a.rs"),
            say("New."),
            refresh("src/a.rs"),
            say("Same."),
            refresh("./src/a.rs"),
            say("Gone."),
        ],
        files={"src/a.rs": "fn old() {}\n"},
    ),
    Scenario(
        "refresh-resource-of-a-command",
        [
            ask("--new", "-a", "cmd:cat state", "look"),
            Write("state", "b"),
            ask("again"),
            ask("--yes", "again"),
            ask("what is not attached"),
        ],
        [
            say("Seen."),
            refresh("cmd://cat?arg=state"),
            say("Refused."),
            refresh("cmd://cat?arg=state"),
            say("Run."),
            refresh("b.txt"),
            say("No."),
        ],
        files={"state": "a", "b.txt": "b"},
    ),
    Scenario(
        "resource-refresh",
        [
            ask("--new", "-a", "a.txt", "-a", "docs/", "one"),
            jp("r", "refresh"),
            Write("a.txt", CHANGED),
            Write("docs/new.md", "new"),
            jp("r", "refresh"),
            jp("r", "refresh", "docs/"),
            ask("--explain", "two"),
            ask("two"),
            jp("r", "refresh", "nothing"),
            jp("r", "ls"),
            jp("r", "show", "a.txt"),
        ],
        [say("One."), say("Two.")],
        files={"a.txt": LONG, "docs/c.md": "c"},
    ),
    Scenario(
        "superseded-when-cold",
        [
            ask("--new", "-a", "a.txt", "one"),
            Write("a.txt", lines("new", 200)),
            ask("-a", "a.txt", "two"),
            ask("two and a half"),
            Later(MONTH),
            ask("three"),
            ask("four"),
            ask("--explain", "and?"),
            Write("a.txt", lines("old", 200)),
            ask("-a", "a.txt", "five"),
        ],
        [say(word) for word in ("One.", "Two.", "And a half.", "Three.", "Four.", "Five.")],
        files={"a.txt": lines("old", 200)},
    ),
    Scenario(
        "superseded-with-cache-marks",
        [
            ask("--new", "-a", "a.txt", "one"),
            Write("a.txt", lines("new", 200)),
            ask("-a", "a.txt", "two"),
            ask("--explain", "three"),
            Later(MONTH),
            ask("--explain", "three"),
            ask("three"),
        ],
        [say("One."), say("Two."), say("Three.")],
        provider="anthropic",
        files={"a.txt": lines("old", 200)},
    ),
    Scenario(
        "superseded-policies",
        [
            ask("--new", "-a", "a.txt", "one"),
            Write("a.txt", lines("new", 200)),
            ask("-a", "a.txt", "two"),
            Later(MONTH),
            ask("-c", "conversation.superseded.policy=keep", "three"),
            ask("-c", "conversation.superseded.policy=always", "four"),
        ],
        [say("One."), say("Two."), say("Three."), say("Four.")],
        files={"a.txt": lines("old", 200)},
    ),
    Scenario(
        "cold-cache-for-another-model",
        [
            ask("--new", "-a", "a.txt", "one"),
            Write("a.txt", lines("new", 200)),
            ask("-a", "a.txt", "two"),
            ask("-m", "llamacpp/n", "-c", "providers.llm.llamacpp.models.n.tools:=true", "three"),
            jp("c", "show"),
        ],
        [say("One."), say("Two."), say("Three.")],
        files={"a.txt": lines("old", 200)},
    ),
    Scenario(
        "configuration-that-is-no-longer-there",
        [ask("one"), Write(WORKSPACE_CONFIG, ""), Write("a.txt", "b"), ask("two"), jp("a", "ls")],
        [say("One."), say("Two.")],
        workspace_config=NOTIFY,
        files={"a.txt": "a", "docs/c.md": "c"},
    ),
]
