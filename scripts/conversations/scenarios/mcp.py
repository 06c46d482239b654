"""MCP servers: their resources as attachments, their tools, and the commands for them."""

import json
from pathlib import Path

from .. import mcp_server
from ..clock import conversation_id
from ..formats import call, say, use
from ..scenario import Scenario, Write, ask, at_terminal, jp
from ..server import Reply
from .content import lines

PROGRAM = Path(mcp_server.__file__).read_text()
UNATTENDED = "[conversation.tools.'*']\nrun = 'unattended'\n"
SERVER = "[providers.mcp.docs]\ncommand = ['python3', '../mcp_server.py', '../docs.json']\n"
HTTP = "[providers.mcp.web]\nurl = '@URL@/mcp'\ntoken_env = 'WEB_TOKEN'\n"
NAME = {
    "type": "object",
    "properties": {"name": {"type": "string", "default": "one"}},
    "required": ["name"],
}
PICTURE = "iVBORw0KGgr/"
SCRIPT = {
    "tools": [
        {
            "name": "count",
            "description": "Counts the notes.",
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": True},
        },
        {"name": "get", "title": "Get a note", "inputSchema": NAME},
        {
            "name": "either",
            "inputSchema": {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        },
        {"name": "fail", "inputSchema": {"type": "object"}},
        {"name": "ask", "inputSchema": {"type": "object"}},
    ],
    "calls": {
        "count": {
            "content": [{"type": "text", "text": "There are two."}],
            "structuredContent": {"count": 2},
        },
        "get": {
            "content": [
                {"type": "text", "text": "The note:"},
                {
                    "type": "resource",
                    "resource": {
                        "uri": "note:one",
                        "mimeType": "text/plain",
                        "text": "The first note.\n",
                    },
                },
                {
                    "type": "resource_link",
                    "uri": "note:two",
                    "name": "two",
                    "annotations": {"priority": 0.5},
                },
                {"type": "image", "mimeType": "image/png", "data": PICTURE},
                {"type": "hologram"},
                {"type": "text", "text": "For the user.", "annotations": {"audience": ["user"]}},
            ],
            "_meta": {"example.test/trace": "t-1"},
        },
        "fail": {"content": [{"type": "text", "text": "It failed."}], "isError": True},
        "ask": {
            "asks": {
                "message": "Who?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}},
                    "required": ["name"],
                },
            }
        },
    },
    "resources": [
        {
            "uri": "note:one",
            "name": "one",
            "title": "Note one",
            "annotations": {"audience": ["user"], "lastModified": "2026-01-02T03:04:05Z"},
        },
        {"uri": "note:both", "name": "both", "mimeType": "text/plain", "size": 20},
    ],
    "templates": [
        {"uriTemplate": "note:{name}{?lang}", "name": "note", "description": "A note by its name."}
    ],
    "contents": {
        "note:one": [{"uri": "note:one", "mimeType": "text/plain", "text": "The first note.\n"}],
        "note:two": [{"uri": "note:two", "text": lines("note", 30)}],
        "note:one?lang=de": [{"uri": "note:one?lang=de", "text": "Die erste Notiz.\n"}],
        "note:both": [
            {"uri": "note:both", "text": "Text.\n"},
            {"uri": "note:both", "mimeType": "application/octet-stream", "blob": "AAECAwQF"},
        ],
    },
    "values": {"name": ["one", "other", "two"], "lang": ["de", "en"]},
}
NEW = {**SCRIPT, "revision": "2026-07-28"}


def scripted(script):
    """Returns the files of a server with this script."""
    return {"~/mcp_server.py": PROGRAM, "~/docs.json": json.dumps(script)}


def over_http(body):
    """Answers a request to the server's HTTP endpoint."""
    message = json.loads(body or b"{}")
    if "id" not in message or "method" not in message:
        return Reply(b"", "application/json", 202)
    reply = mcp_server.answer(SCRIPT, message["method"], message.get("params") or {})
    return Reply(
        json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}).encode(), "application/json"
    )


def requests(*pairs):
    """Returns what a client writes: a greeting, then requests by method and parameters."""
    about = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "compare", "version": "1"},
    }
    messages = [
        {"id": 0, "method": "initialize", "params": about},
        {"method": "notifications/initialized"},
    ]
    messages += [
        {"id": number, "method": method, "params": params}
        for number, (method, params) in enumerate(pairs, 1)
    ]
    return "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)


CHANGED = {
    **SCRIPT,
    "contents": {
        **SCRIPT["contents"],
        "note:two": [{"uri": "note:two", "text": lines("note", 30, changed=7)}],
    },
}
WITH_SERVER = {"config": SERVER, "files": scripted(SCRIPT)}
UNASKED = {"config": UNATTENDED + SERVER, "files": scripted(SCRIPT)}
SCENARIOS = [
    Scenario(
        "mcp-resources",
        [
            ask("--new", "-a", "mcp+docs+note:one", "-a", "mcp+docs+note:both", "what?"),
            ask("-a", "mcp+docs+note:two", "and?"),
            Write("~/docs.json", json.dumps(CHANGED)),
            jp("r", "refresh"),
            ask("changed?"),
            jp("a", "ls", "-F", "json"),
            jp("r", "ls"),
            jp("r", "show", "note:one"),
            ask("-a", "mcp+docs+note:gone", "gone?"),
            ask("-a", "mcp+nobody+note:one", "nobody?"),
        ],
        [say("One."), say("Two."), say("Three.")],
        **WITH_SERVER,
    ),
    Scenario(
        "mcp-resources-of-2026",
        [
            ask("--new", "-a", "mcp+docs+note:one", "what?"),
            ask("-a", "mcp+docs+note:two", "and?"),
            jp("r", "refresh", "--yes"),
            jp("mcp", "ls"),
        ],
        [say("One."), say("Two.")],
        config=SERVER,
        files=scripted(NEW),
    ),
    Scenario(
        "mcp-template",
        [
            ask("--new", "-a", "mcp+docs+note:{name}{?lang}?name=one&lang=de", "what?"),
            ask("-a", "mcp+docs+note:{name}{?lang}", "which?"),
            jp("a", "ls"),
        ],
        [say("One.")],
        **WITH_SERVER,
    ),
    Scenario(
        "mcp-tools",
        [ask("--new", "begin"), ask("-F", "json", "again"), jp("c", "print"), jp("r", "ls")],
        [
            use(call("docs_count")),
            use(call("docs_get")),
            use(call("docs_fail")),
            say("Done."),
            use(call("docs_get", name="x")),
            use(call("docs_missing")),
            say("Again."),
        ],
        **UNASKED,
    ),
    Scenario(
        "mcp-tools-of-2026",
        [ask("--new", "begin"), ask("on")],
        [
            use(call("docs_count")),
            use(call("docs_get")),
            say("Done."),
            use(call("docs_get", name=3)),
            say("On."),
        ],
        config=UNATTENDED + SERVER,
        files=scripted(NEW),
    ),
    Scenario(
        "mcp-tools-for-openai",
        [ask("--new", "begin"), ask("on")],
        [use(call("docs_either", a=1), call("docs_get")), say("Done."), say("On.")],
        provider="openai",
        **UNASKED,
    ),
    Scenario(
        "mcp-tools-for-anthropic",
        [ask("--new", "begin"), ask("on")],
        [use(call("docs_either", a=1), call("docs_get")), say("Done."), say("On.")],
        provider="anthropic",
        **UNASKED,
    ),
    Scenario(
        "mcp-tools-refused",
        [ask("--new", "begin"), ask("-T=docs_get", "--yes", "on"), ask("-T", "none")],
        [
            use(call("docs_count")),
            say("Refused."),
            use(call("docs_count")),
            say("On."),
            say("None."),
        ],
        **WITH_SERVER,
    ),
    Scenario(
        "mcp-renamed-tools",
        [ask("--new", "begin")],
        [use(call("notes", name="one")), say("Done.")],
        config="[conversation.tools.notes]\n"
        "source = 'mcp.docs.get'\n"
        "run = 'unattended'\n"
        "summary = 'My notes.'\n"
        "[conversation.tools.docs_fail]\n"
        "enable = false\n" + SERVER,
        files=scripted(SCRIPT),
    ),
    Scenario(
        "mcp-form",
        [
            ask("--new", "declined"),
            ask(
                "-c",
                'conversation.tools.docs_ask.questions.elicitation.answer:={"name":"Eve"}',
                "answered",
            ),
            at_terminal(["query", "typed"], ("name", "Ann\n")),
        ],
        [
            use(call("docs_ask")),
            say("Declined."),
            use(call("docs_ask")),
            say("Answered."),
            use(call("docs_ask")),
            say("Typed."),
        ],
        **UNASKED,
    ),
    Scenario(
        "mcp-server-of-the-workspace",
        [
            ask("--new", "begin"),
            ask("--new", "-a", "mcp+docs+note:one", "read"),
            ask("--new", "--yes", "-a", "mcp+docs+note:one", "read"),
            at_terminal(["query", "--new", "begin"], ("Start it?", "y\n")),
            ask("--new", "approved"),
        ],
        [say("Without."), say("Read."), say("With."), say("Approved.")],
        workspace_config=SERVER,
        files=scripted(SCRIPT),
    ),
    Scenario(
        "mcp-over-http",
        [
            ask("--new", "-a", "mcp+web+note:one", "begin"),
            jp("mcp", "ls"),
            jp("mcp", "read", "web", "note:two"),
        ],
        [use(call("web_count"), call("web_get")), say("Done.")],
        config=UNATTENDED + HTTP,
        pages={"/mcp": over_http},
        environment={"WEB_TOKEN": "secret"},
    ),
    Scenario(
        "mcp-refresh-and-notify",
        [ask("--new", "one"), Write("~/docs.json", json.dumps(CHANGED)), ask("two"), ask("three")],
        [say("One."), say("Two."), use(call("refresh_resource", uri="note:two")), say("Three.")],
        config="conversation.attachments = [{ type = 'mcp', path = 'docs+note:two', refresh = 'notify' }]\n"
        + SERVER,
        files=scripted(SCRIPT),
    ),
    Scenario(
        "mcp-commands",
        [
            jp("mcp", "ls"),
            jp("mcp", "ls", "docs"),
            jp("mcp", "ls", "-F", "json"),
            jp("mcp", "resources", "docs"),
            jp("mcp", "templates"),
            jp("mcp", "read", "docs", "note:both", "-F", "json"),
            jp("mcp", "read", "docs", "note:gone"),
            jp("mcp", "read", "docs", "note:one?lang=de"),
        ],
        **WITH_SERVER,
    ),
    Scenario(
        "mcp-serve",
        [
            ask("--new", "-a", "a.txt", "-a", "~/own.txt", "one"),
            jp("mcp", "serve", stdin=requests(("resources/list", {}))),
            jp("mcp", "serve", stdin=requests(("resources/templates/list", {}))),
            jp(
                "mcp",
                "serve",
                stdin=requests(
                    ("resources/read", {"uri": f"jp://conversation/{conversation_id()}"})
                ),
            ),
            jp("mcp", "serve", stdin=requests(("resources/read", {"uri": "file://@ROOT@/a.txt"}))),
            jp(
                "mcp", "serve", stdin=requests(("resources/read", {"uri": "file://@HOME@/own.txt"}))
            ),
        ],
        [say("One.")],
        files={"a.txt": "a\n", "~/own.txt": "own\n"},
    ),
    Scenario(
        "mcp-servers-that-fail",
        [
            ask("--new", "begin"),
            ask("-t", "bad_tool", "named"),
            ask("-a", "mcp+bad+note:one", "read"),
            jp("mcp", "ls"),
        ],
        [say("Without.")],
        config="[providers.mcp.bad]\n"
        "command = ['sh', '-c', 'echo its last words >&2; exit 3']\n"
        "[providers.mcp.gone]\n"
        "command = 'no-such-program-of-this-name'\n",
    ),
]
