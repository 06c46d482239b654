"""What can be attached, and the commands for it."""

from ..formats import say
from ..scenario import Replace, Remove, Scenario, Write, ask, jp
from ..server import Reply
from .content import PNG, lines

TREE = {
    "src/main.rs": "fn main() {}\n",
    "src/lib.rs": "pub fn lib() {}\n",
    "src/deep/mod.rs": "mod deep;\n",
    "src/x.lock": "lock\n",
    "src/out.log": "ignored\n",
    ".gitignore": "*.log\n",
    ".env": "TOKEN=abc\n",
    "README.md": "# Read me\n",
}
HTML = (
    "<html><head><title>Page</title></head><body>"
    "<h1>A page</h1><p>With <a href='/other'>a link</a>.</p></body></html>"
)


def page(body, content_type="text/html; charset=utf-8", status=200, headers=()):
    """Returns a page of the server."""
    return Reply(body.encode(), content_type, status, tuple(headers))


SCENARIOS = [
    Scenario(
        "directory",
        [
            ask("--new", "-a", "src/", "-a", "!*.lock", "what?"),
            ask("-a", ".", "all?"),
            jp("resource", "ls", "-F", "json"),
        ],
        [say("Files."), say("All.")],
        files=TREE,
    ),
    Scenario(
        "glob-and-exclude",
        [
            ask("--new", "-a", "src/**/*.rs", "-a", "!src/deep/", "what?"),
            jp("a", "ls"),
            jp("a", "ls", "-F", "json"),
            jp("r", "ls"),
        ],
        [say("Files.")],
        files=TREE,
    ),
    Scenario(
        "subdirectory",
        [
            ask("--new", "-a", "main.rs", "-a", "../README.md", "what?", directory="src"),
            jp("a", "ls", directory="src"),
        ],
        [say("Files.")],
        files=TREE,
    ),
    Scenario(
        "outside-the-workspace",
        [
            ask("--new", "-a", "~/notes.md", "-a", "../notes.md", "what?"),
            Write("~/notes.md", "New notes.\n"),
            ask("-a", "../notes.md", "and?"),
            jp("r", "refresh"),
            jp("c", "show", "--files"),
        ],
        [say("Notes."), say("New ones.")],
        files={"~/notes.md": "Notes of mine.\n"},
    ),
    Scenario(
        "external-key",
        [ask("--new", "-a", "../notes.md", "what?")],
        [say("Notes.")],
        files={"~/notes.md": "Notes of mine.\n"},
        config="conversation.attachment.external_key = 'SALT'",
        environment={"SALT": "a secret that makes guessing impossible"},
    ),
    Scenario(
        "stdin-as-words",
        [
            ask("--new", "What is wrong?", stdin="error: it failed\n"),
            ask(stdin="only piped\n"),
            ask("--title", "x", "y"),
            jp("c", "print"),
        ],
        [say("Much."), say("More.")],
    ),
    Scenario(
        "stdin-as-attachment",
        [
            ask("--new", "-a", "-", "What is it?", stdin="piped\nlines\n"),
            ask("-a", "-", "And bytes?", stdin=b"\xff\xfe\x00\x01"),
            jp("r", "ls"),
        ],
        [say("Lines."), say("Bytes.")],
    ),
    Scenario(
        "command",
        [
            ask("--new", "-a", "cmd:cat a.txt", "what?"),
            Write("a.txt", "b\n"),
            jp("r", "refresh"),
            ask("and now?"),
            ask("-a", "cmd:sh -c 'echo out; echo err >&2; exit 3'", "failed?"),
            jp("r", "ls"),
        ],
        [say("A."), say("B."), say("Yes.")],
        files={"a.txt": "a\n"},
    ),
    Scenario(
        "command-of-the-workspace",
        [
            ask("--new", "what?"),
            ask("--new", "--yes", "what?"),
            ask("--new", "--skip-unavailable", "what?"),
        ],
        [say("A."), say("B.")],
        workspace_config="conversation.attachments = ['cmd:cat a.txt']\n",
        files={"a.txt": "a\n"},
    ),
    Scenario(
        "script-that-changes",
        [
            ask("--new", "-a", "cmd:sh gen.sh", "what?"),
            Write("gen.sh", "echo two\n", 0o755),
            jp("r", "refresh"),
            jp("r", "refresh", "--yes"),
            ask("and?"),
        ],
        [say("One."), say("Two.")],
        files={"gen.sh": "echo one\n"},
    ),
    Scenario(
        "page",
        [
            ask("--new", "-a", "@URL@/page", "what?"),
            jp("r", "refresh"),
            ask("and?"),
            jp("a", "print", "@URL@/page"),
            jp("r", "show", "@URL@/page"),
        ],
        [say("A page."), say("Another.")],
        pages={"/page": [page(HTML), page(HTML.replace("A page", "Another page"))]},
    ),
    Scenario(
        "pages-that-are-none",
        [
            ask(
                "--new", "-a", "@URL@/moved#part", "-a", "@URL@/plain", "-a", "@URL@/image", "what?"
            ),
            ask("-a", "@URL@/gone", "and?"),
            ask("--skip-unavailable", "-a", "@URL@/gone", "and?"),
        ],
        [say("Pages."), say("No.")],
        pages={
            "/moved": page("", status=302, headers=["location: /page"]),
            "/page": page(HTML),
            "/plain": page("plain\n", "text/plain"),
            "/image": Reply(PNG, "image/png"),
            "/gone": page("no", "text/plain", 410),
        },
    ),
    Scenario(
        "data-url",
        [
            ask(
                "--new",
                "-a",
                "data:text/plain,hello%20there",
                "-a",
                "data:image/png;base64,iVBORw0KGgo=",
                "what?",
            ),
            ask("-a", "data:text/plain," + "x" * 600, "and?"),
            jp("a", "ls"),
        ],
        [say("Hello."), say("X.")],
    ),
    Scenario(
        "add-print-and-remove",
        [
            jp("a", "add", "a.txt"),
            ask("--new", "-a", "b.txt", "what?"),
            jp("a", "add", "a.txt", "src/"),
            jp("a", "ls"),
            jp("a", "print", "a.txt"),
            ask("and?"),
            jp("a", "print", "src/main.rs"),
            jp("a", "rm", "src/"),
            jp("a", "rm", "nothing"),
            jp("a", "ls", "-F", "json"),
            ask("on"),
        ],
        [say("One."), say("Two."), say("Three.")],
        files={"a.txt": "a\n", "b.txt": "b\n", **TREE},
    ),
    Scenario(
        "configured-attachments",
        [
            ask("--new", "what?"),
            Write("a.txt", "changed\n"),
            ask("and?"),
            ask("--new", "new?"),
            Remove("a.txt"),
            ask("--new", "gone?"),
        ],
        [say("One."), say("Two."), say("Three."), say("Four.")],
        files={"a.txt": "a\n", "docs/b.md": "b\n", "~/own.txt": "own\n"},
        config="conversation.attachments = ['file:~/own.txt', { type = 'file', path = 'docs/' }]",
        workspace_config="conversation.attachments = ['file:a.txt', 'file:../own.txt']\n",
    ),
    Scenario(
        "what-is-unavailable",
        [
            ask("--new", "-a", "a.txt", "-a", "missing.txt", "what?"),
            ask("--new", "--skip-unavailable", "-a", "a.txt", "-a", "missing.txt", "what?"),
            ask("-a", "big.txt", "-c", "conversation.attachment.max_bytes=100", "and?"),
            ask("-a", "nowhere/**", "and?"),
            ask("-a", "ftp://x/y", "and?"),
        ],
        [say("Yes.")],
        files={"a.txt": "a\n", "big.txt": lines("big", 10)},
    ),
    Scenario(
        "secrets",
        [
            ask("--new", "-a", ".", "what?"),
            ask("-a", "key.pem", "named?"),
            ask("-a", "token.txt", "-c", "conversation.attachment.secrets=warn", "warned?"),
            ask("-a", "token.txt", "-c", "conversation.attachment.secrets=refuse", "refused?"),
        ],
        [say("One."), say("Two."), say("Three.")],
        files={
            ".env": "A=b\n",
            "a.txt": "a\n",
            "token.txt": "token: ghp_" + "aB3dE5gH7jK9" * 3 + "\n",
            "key.pem": "-----BEGIN RSA "
            + "PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA "
            + "PRIVATE KEY-----\n",
        },
    ),
    Scenario(
        "private-address-of-a-history",
        [
            ask("--new", "-a", "a.txt", "what?"),
            Replace(".jp/conversations/*/events.json", '"file:a.txt"', '"@URL@/page"'),
            ask("and?"),
            jp("r", "refresh"),
            jp("a", "ls"),
        ],
        [say("One."), say("Two.")],
        files={"a.txt": "a\n"},
        pages={"/page": page(HTML)},
    ),
    Scenario(
        "named-encodings",
        [
            ask(
                "--new",
                "-a",
                "utf16.txt",
                "-a",
                "latin1.txt",
                "-a",
                "empty.txt",
                "-a",
                "crlf.txt",
                "-a",
                "spaced name ü.txt",
                "what?",
            ),
            jp("r", "ls"),
            jp("r", "show", "latin1.txt"),
        ],
        [say("Texts.")],
        files={
            "utf16.txt": "\ufeffwide\n".encode("utf-16-le"),
            "latin1.txt": b"caf\xe9\n",
            "empty.txt": "",
            "crlf.txt": "a\r\nb\r\n",
            "spaced name ü.txt": "name\n",
        },
    ),
]
