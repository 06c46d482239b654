"""Tools: jp's own, the user's, and what runs without being asked about."""

import hashlib

from ..formats import Answer, call, say, text, use
from ..scenario import Scenario, ask, jp
from .content import PNG, lines

GREET = "[conversation.tools.greet]\ncommand = 'printf hello'\n"
UNATTENDED = "[conversation.tools.'*']\nrun = 'unattended'\n"
COUNTER = (
    "n=0\nwhile read -r line; do n=$((n+1))\n"
    '  echo "{\\"content\\":[{\\"type\\":\\"text\\",\\"text\\":\\"$n\\"}],\\"_meta\\":{\\"computer.jp/status\\":\\"running\\"}}"\n'
    "done\n"
)
ASKING = """case $(cat) in
*'"answers":{}'*) echo '{"content": [
  {"type": "text", "text": "Two files would change."},
  {"type": "question", "question":
    {"id": "sure", "text": "Apply?", "schema": {"type": "boolean"}, "default": true}}]}';;
*) echo applied;;
esac
"""
RESOURCE = """text=$(tr '\\n' ' ' < a.txt)
echo '{"content": [{"type": "text", "text": "said"}, {"type": "strange"}, {"type": "resource",
  "resource": {"uri": "file://@ROOT@/a.txt", "mimeType": "text/plain", "text": "'$text'"}}]}'
"""


OWN_READERS = [
    call("read_file", path="src/a.rs"),
    call("list_files", path=".", depth=2),
    call("search_files", pattern="fn .*", context=1),
    call("list_files", glob="*.md"),
    call("read_file", path="../outside"),
    call("search_files", pattern="("),
]
LONG = lines("long", 300)
CHECKSUM = hashlib.sha256(LONG.encode()).hexdigest()
SCENARIOS = [
    Scenario(
        "parallel-calls",
        [ask("--new", "look"), jp("c", "print", "--as-sent")],
        [use(*OWN_READERS), say("Seen.")],
        files={"src/a.rs": "fn a() {\n}\nfn b() {}\n", "README.md": "# x\n"},
    ),
    Scenario(
        "writing-tools",
        [
            ask(
                "--new",
                *[
                    part
                    for name in ("create_file", "edit_file", "move_file", "delete_file")
                    for part in ("-t", name)
                ],
                "--yes",
                "change it",
            ),
            ask("--yes", "and delete"),
            jp("c", "print"),
        ],
        [
            use(
                call("create_file", path="new/b.txt", content="b\n"),
                call("edit_file", path="a.txt", old="one", new="two"),
            ),
            use(
                call("move_file", path="new/b.txt", to="c.txt"),
                call("edit_file", path="a.txt", patch="@@ -1 +1 @@\n-two\n+three\n"),
            ),
            use(
                call("create_file", path="a.txt", content="no"),
                call("edit_file", path="a.txt", old="missing", new="x"),
            ),
            say("Changed."),
            use(call("delete_file", path="unread.txt"), call("read_file", path="a.txt")),
            use(call("delete_file", path="a.txt")),
            say("Deleted."),
        ],
        files={"a.txt": "one\n", "unread.txt": "only here\n"},
        config="conversation.read_only_paths = ['vendor/']",
    ),
    Scenario(
        "run-command",
        [
            ask("--new", "-t", "run_command", "--yes", "run it"),
            ask("refused now"),
            jp("c", "print"),
        ],
        [
            use(
                call("run_command", command="echo out; echo err >&2; exit 3"),
                call("run_command", command="pwd", path="src"),
            ),
            say("Run."),
            use(call("run_command", command="echo no")),
            say("Refused."),
        ],
        files={"src/a.rs": "a\n"},
    ),
    Scenario(
        "refused-calls",
        [
            ask("--new", "begin"),
            ask("-F", "json", "again"),
            ask("--yes", "-F", "json", "with leave"),
            ask("-T", "none"),
            ask("-t", "missing", "x"),
        ],
        [
            use(call("greet")),
            say("Refused."),
            use(call("greet")),
            use(call("unknown")),
            say("Again."),
            use(call("greet")),
            say("Greeted."),
            say("None."),
        ],
        config=GREET,
    ),
    Scenario(
        "tools-of-the-workspace",
        [
            ask("--new", "-F", "json", "begin"),
            ask("-F", "json", "--yes", "again"),
            ask("-F", "json", "-c", "conversation.tools.greet.run=unattended", "on"),
        ],
        [
            use(call("greet")),
            say("One."),
            use(call("greet")),
            say("Two."),
            use(call("greet")),
            say("Three."),
        ],
        workspace_config=GREET + "run = 'unattended'\n",
    ),
    Scenario(
        "unattended-and-denied",
        [ask("--new", "-F", "json", "begin")],
        [use(call("greet"), call("never"), call("slow"), call("fail")), say("Done.")],
        config=GREET
        + "run = 'unattended'\n[conversation.tools.never]\ncommand = 'printf no'\nrun = 'deny'\n"
        "[conversation.tools.slow]\n"
        "command = 'sleep 30'\n"
        "timeout_secs = 1\n"
        "run = 'unattended'\n"
        "[conversation.tools.fail]\n"
        "command = 'false'\n"
        "run = 'unattended'\n",
    ),
    Scenario(
        "arguments-and-context",
        [ask("--new", "begin"), jp("c", "print")],
        [
            use(call("find_word", word="x; rm -rf .")),
            use(call("context", n=3)),
            use(call("context", n="three")),
            use(call("find_word")),
            say("Done."),
        ],
        config=UNATTENDED + "[conversation.tools.find_word]\n"
        "command = ['grep', '-e', '{{tool.arguments.word}}', '../notes.txt']\n"
        "summary = 'Finds a word.'\n"
        "parameters.word = { type = 'string', required = true, summary = 'The word.' }\n"
        "[conversation.tools.context]\n"
        "command = 'cat'\n"
        "parameters.n = { type = 'integer' }\n"
        "options = { deep = { x = 1 } }\n"
        "description = 'Shows its input.'\n",
        files={"~/notes.txt": "x; rm -rf . is here\n"},
    ),
    Scenario(
        "long-result",
        [ask("--new", "begin"), jp("c", "print", "--as-sent"), ask("on")],
        [
            use(call("long")),
            use(call("read_more", uri=f"jp://blob/{CHECKSUM}", offset=1500)),
            use(call("read_more", uri="jp://blob/0")),
            say("Cut."),
            use(call("long"), call("picture")),
            say("On."),
        ],
        config=UNATTENDED
        + "[conversation.tools.long]\ncommand = 'cat long.txt'\nmax_output_bytes = 2000\n"
        "[conversation.tools.picture]\ncommand = 'sh ../picture.sh'\n",
        files={
            "long.txt": LONG,
            "~/picture.sh": 'echo \'{"content":[{"type":"image","mimeType":"image/png","data":"\'$(base64 -w0 a.png)\'"}]}\'',
            "a.png": PNG,
        },
    ),
    Scenario(
        "resources-of-a-tool",
        [
            ask("--new", "-a", "a.txt", "begin"),
            ask("on"),
            jp("r", "ls"),
            jp("c", "print", "--as-sent"),
        ],
        [use(call("show")), say("Shown."), use(call("show")), use(call("whole")), say("Again.")],
        config=UNATTENDED + "[conversation.tools.show]\n"
        "command = 'sh ../show.sh'\n"
        "[conversation.tools.whole]\n"
        "command = 'sh ../show.sh'\n"
        "deduplicate = false\n",
        files={"a.txt": lines("line", 20), "~/show.sh": RESOURCE},
    ),
    Scenario(
        "questions-without-a-terminal",
        [
            ask("--new", "begin"),
            ask("-c", "conversation.tools.change.questions.sure.answer:=true", "answered"),
            jp("c", "print"),
        ],
        [use(call("change")), say("Not answered."), use(call("change")), say("Answered.")],
        config="[conversation.tools.change]\ncommand = 'sh ../ask.sh'\nrun = 'unattended'\n",
        files={"~/ask.sh": ASKING},
    ),
    Scenario(
        "question-that-the-model-answers",
        [ask("--new", "--yes", "begin"), jp("c", "print"), jp("c", "print", "-F", "json")],
        [use(call("change")), say('{"sure": true}'), say("Applied.")],
        config="[conversation.tools.change]\n"
        "command = 'sh ../ask.sh'\n"
        "run = 'unattended'\n"
        "questions.sure.target = 'assistant'\n",
        files={"~/ask.sh": ASKING},
    ),
    Scenario(
        "stateful-tool",
        [ask("--new", "--yes", "count")],
        [
            use(call("counter", action="spawn", handle="c")),
            use(call("counter", action="apply", handle="c", input={})),
            use(call("counter", action="fetch", handle="c")),
            use(call("counter", action="abort", handle="c")),
            say("Three."),
        ],
        config="[conversation.tools.counter]\ncommand = 'sh counter.sh'\nstateful = true\n",
        files={"counter.sh": COUNTER},
    ),
    Scenario(
        "shell",
        [ask("--new", "-t", "shell", "--yes", "use it"), jp("c", "print")],
        [
            use(call("shell", action="spawn", handle="s")),
            use(call("shell", action="apply", handle="s", input={"text": "cd docs && X=kept"})),
            use(call("shell", action="apply", handle="s", input={"text": "pwd; echo $X"})),
            use(call("shell", action="abort", handle="s")),
            say("Kept."),
        ],
        files={"docs/a.md": ""},
    ),
    Scenario(
        "tools-that-are-chosen",
        [
            ask("--new", "-T", "none"),
            ask("still none"),
            ask("-t", "read_file", "one"),
            ask("-T=read_file", "none again"),
            ask("-t", "greet", "-T", "only"),
            ask("--explain", "what?"),
            ask("--explain", "-F", "json", "what?"),
        ],
        [say("None."), say("None."), say("One."), say("None."), say("Greet.")],
        config=GREET,
    ),
    Scenario(
        "configuration-of-a-tool-that-is-wrong",
        [
            ask("--new", "x"),
            ask("--new", "-c", "conversation.tools.bad.command=cat", "x"),
            ask(
                "--new",
                "-c",
                "conversation.tools.bad.command=sh -c 'grep {{tool.arguments.word}} x'",
                "x",
            ),
        ],
        [say("x")],
        config="[conversation.tools.bad]\nsummary = 'It has no command.'\n",
    ),
    Scenario(
        "words-before-calls",
        [
            ask("--new", "--quiet", "begin"),
            ask("--no-persist", "on"),
            ask("-v", "verbose"),
            jp("c", "print", "--turn", "1"),
        ],
        [
            Answer(
                [
                    text("First "),
                    text("words."),
                    call("read_file", path="a.txt"),
                    call("list_files"),
                ]
            ),
            say("Done."),
            say("On."),
            say("Verbose."),
        ],
        files={"a.txt": "a\n"},
    ),
    Scenario(
        "changed-tool",
        [
            ask("--new", "--yes", "begin"),
            ask("--yes", "-c", "conversation.tools.greet.command=printf changed", "on"),
        ],
        [use(call("greet")), say("One."), use(call("greet")), say("Two.")],
        config=GREET,
    ),
]
