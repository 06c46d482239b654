"""What goes wrong: servers, streams, interrupts, damaged conversations."""

from ..clock import conversation_id
from ..formats import Answer, call, say, text, use
from ..scenario import Remove, Replace, Scenario, Write, ask, jp
from ..server import Reply

EVENTS = f".jp/conversations/{conversation_id()}-one/events.json"
END = "\n]\n"
JSON = "application/json"


SCENARIOS = [
    Scenario(
        "interrupted",
        [ask("--new", "one", interrupt_after="A part"), ask("two"), jp("c", "print")],
        [say("A part of the answer.", then="hang"), say("Two.")],
    ),
    Scenario(
        "interrupted-for-anthropic",
        [ask("--new", "one", interrupt_after="A part"), ask("two")],
        [say("A part of the answer.", then="hang"), say("Two.")],
        provider="anthropic",
    ),
    Scenario(
        "cut-in-a-call",
        [ask("--new", "one"), ask("two"), jp("c", "print")],
        [Answer([text("Let me see."), call("read_file", path="a.txt")], then="cut"), say("Two.")],
        files={"a.txt": "a\n"},
    ),
    Scenario(
        "cut-before-an-answer",
        [ask("--new", "one")],
        [use(call("list_files")), Reply(b"data: {", then="cut"), say("One.")],
    ),
    Scenario(
        "busy-server",
        [ask("--new", "one"), ask("two")],
        [
            Reply(b"{}", JSON, 503, ("retry-after: 0",)),
            Reply(b"{}", JSON, 429, ("retry-after: 0",)),
            say("One."),
            Reply(b'{"error":"no"}', JSON, 403),
        ],
    ),
    Scenario(
        "rubbish",
        [ask("--new", "one"), ask(), ask()],
        [Reply(b"data: rubbish\n\n"), Reply(b"<html>", "text/html"), Reply(b"", JSON)],
    ),
    Scenario("empty-answer", [ask("--new", "one"), ask()], [say(""), say("Now.")]),
    Scenario(
        "failure-in-a-later-round",
        [ask("--new", "one"), ask(), jp("c", "print"), ask("-F", "json", "two")],
        [
            use(call("read_file", path="a.txt")),
            Reply(b'{"error":"no"}', JSON, 400),
            say("One."),
            Reply(b'{"error":"no"}', JSON, 400),
        ],
        files={"a.txt": "a\n"},
    ),
    Scenario(
        "damaged-conversation",
        [
            ask("--new", "one"),
            Replace(EVENTS, '"chat_request"', '"chat_request'),
            ask("two"),
            jp("c", "print"),
            jp("c", "ls"),
            jp("storage", "check"),
        ],
        [say("One.")],
    ),
    Scenario(
        "torn-conversation",
        [
            ask("--new", "one"),
            Replace(EVENTS, END, ',\n{"timestamp": "2040-'),
            jp("c", "print"),
            ask("two"),
            jp("storage", "check"),
        ],
        [say("One."), say("Two.")],
    ),
    Scenario(
        "unknown-events",
        [
            ask("--new", "one"),
            Replace(
                EVENTS,
                END,
                ',\n{"timestamp":"2040-01-02T03:04:06Z","type":"of_the_future","x":[1]}' + END,
            ),
            ask("two"),
            jp("c", "fork"),
            jp("c", "print"),
        ],
        [say("One."), say("Two.")],
    ),
    Scenario(
        "lost-content",
        [
            ask("--new", "-a", "a.txt", "one"),
            Write("a.txt", "changed\n" * 100),
            Remove(".jp/blobs/*/*.gz"),
            ask("two"),
            jp("r", "show", "a.txt"),
            jp("storage", "check"),
        ],
        [say("One.")],
        files={"a.txt": "content\n" * 100},
    ),
    Scenario(
        "damaged-metadata",
        [
            ask("--new", "one"),
            Write(EVENTS.replace("events", "metadata"), "no JSON"),
            jp("c", "print"),
            ask("two"),
            jp("c", "ls"),
        ],
        [say("One."), say("Two.")],
    ),
    Scenario(
        "clone-of-somebody-else",
        [
            ask("--new", "-t", "run_command", "-a", "cmd:cat a.txt", "-a", "@URL@/page", "one"),
            Remove(".jp/.id"),
            Write(".jp/.id", "another\n"),
            ask("two"),
            jp("r", "refresh"),
            jp("a", "ls"),
            ask("--explain", "three"),
        ],
        [say("One."), use(call("run_command", command="echo x")), say("Two.")],
        files={"a.txt": "a\n"},
        pages={"/page": Reply(b"a page\n", "text/plain")},
    ),
    Scenario(
        "wrong-use",
        [
            ask(),
            ask("--new"),
            ask("--id", "x", "--new", "y"),
            jp("c", "fork"),
            jp("c", "compact"),
            jp("r", "show", "x"),
            jp("a", "rm", "x"),
            ask("--schema", "{", "x"),
            jp("c", "rm", "1"),
        ],
    ),
]
