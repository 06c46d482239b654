"""Conversations over their life: forks, compactions, the list, removal, archives."""

from ..clock import conversation_id
from ..formats import call, say, use
from ..scenario import Later, Move, Scenario, Write, ask, jp
from .content import PNG, lines

FIRST, SECOND = conversation_id(0), conversation_id(10)
READ = use(call("read_file", path="a.txt"))
FILES = {"a.txt": lines("line", 60), "b.txt": "b\n", "~/outside.txt": "outside\n"}


FIVE_TURNS = [
    ask("--new", "-a", "a.txt", "one"),
    *(ask(word) for word in ("two", "three", "four", "five")),
]
FIVE_ANSWERS = [say("One."), READ, say("Two."), READ, say("Three."), say("Four."), say("Five.")]
SCENARIOS = [
    Scenario(
        "fork",
        [
            ask("--new", "-a", "a.txt", "-a", "~/outside.txt", "one"),
            ask("-a", "b.txt", "two"),
            jp("c", "fork"),
            ask("--explain", "three"),
            ask("three"),
            jp("c", "ls"),
            jp("c", "ls", "-F", "json"),
            jp("c", "show"),
        ],
        [say("One."), say("Two."), say("Three.")],
        files=FILES,
    ),
    Scenario(
        "fork-of-the-last-turns",
        [
            ask("--new", "-a", "a.txt", "-a", "~/outside.txt", "-a", "-", "one", stdin="piped\n"),
            ask("-a", "b.txt", "two"),
            ask("three"),
            Write("a.txt", "changed\n"),
            jp("c", "fork", "--turns", "1", "--title", "The end"),
            ask("four"),
            jp("c", "print"),
            jp("a", "ls"),
            jp("r", "ls"),
        ],
        [say("One."), say("Two."), say("Three."), say("Four.")],
        files=FILES,
    ),
    Scenario(
        "compact",
        [
            *FIVE_TURNS,
            jp("c", "compact", "--dry-run"),
            jp("c", "compact", "--keep-last", "2"),
            ask("--explain", "six"),
            ask("six"),
            jp("c", "print", "--as-sent"),
            jp("c", "compact", "--reset"),
            ask("seven"),
            jp("c", "compact", "--strip", "reasoning", "--keep-last", "0"),
            jp("c", "show", "-F", "json"),
        ],
        [*FIVE_ANSWERS, say("Six."), say("Seven.")],
        files=FILES,
    ),
    Scenario(
        "compact-with-a-summary",
        [
            *FIVE_TURNS,
            jp("c", "compact", "--keep-last", "1", "--summarize", "--dry-run"),
            jp("c", "compact", "--keep-last", "1", "--summarize"),
            ask("six"),
            jp("c", "print", "--as-sent", "-F", "json"),
            jp("c", "show"),
        ],
        [*FIVE_ANSWERS, say("It was about lines."), say("Six.")],
        files=FILES,
    ),
    Scenario(
        "compact-for-anthropic",
        [
            *FIVE_TURNS,
            jp("c", "compact", "--keep-last", "2"),
            ask("six"),
            jp("c", "fork"),
            ask("seven"),
        ],
        [*FIVE_ANSWERS, say("Six."), say("Seven.")],
        provider="anthropic",
        files=FILES,
    ),
    Scenario(
        "list-use-and-remove",
        [
            ask("--new", "--title", "The first", "one"),
            ask("--new", "two"),
            jp("c", "ls"),
            jp("c", "use", FIRST),
            ask("three"),
            ask("--id", SECOND, "four"),
            ask("-i", "123", "nothing"),
            jp("c", "show", FIRST),
            jp("c", "rm", SECOND),
            jp("c", "ls", "-F", "json"),
            jp("c", "use", SECOND),
            jp("c", "rm", FIRST),
            ask("five"),
        ],
        [say("One."), say("Two."), say("Three."), say("Four."), say("Five.")],
    ),
    Scenario(
        "archived",
        [
            ask("--new", "-a", "a.txt", "one"),
            ask("--new", "two"),
            Move(f".jp/conversations/{FIRST}*", ".jp/conversations/.archive"),
            jp("c", "ls"),
            jp("c", "ls", "--archived"),
            jp("c", "print", FIRST),
            ask("-i", FIRST, "more"),
            jp("c", "fork", FIRST),
            ask("three"),
            jp("c", "rm", FIRST),
            jp("c", "ls", "--archived"),
        ],
        [say("One."), say("Two."), say("Three.")],
        files=FILES,
    ),
    Scenario(
        "local",
        [
            ask("--new", "--local", "-a", "a.txt", "one"),
            ask("two"),
            jp("c", "ls"),
            jp("c", "fork"),
            jp("storage", "status"),
            ask("three"),
            ask("--local", "wrong"),
        ],
        [say("One."), say("Two."), say("Three.")],
        files=FILES,
    ),
    Scenario(
        "no-persist",
        [
            ask("--new", "--no-persist", "-a", "a.txt", "one"),
            ask("--new", "two"),
            ask("--no-persist", "-a", "a.txt", "three"),
            ask("--no-persist"),
            jp("c", "fork", "--no-persist"),
            jp("c", "ls"),
        ],
        [say("One."), say("Two."), say("Three.")],
        files=FILES,
    ),
    Scenario(
        "explain",
        [
            ask("--new", "--explain", "-a", "a.txt", "one"),
            ask("--new", "-a", "a.txt", "-a", "a.png", "one"),
            ask("--explain", "two"),
            ask("--explain", "-F", "json", "-a", "b.txt", "two"),
            ask("two"),
            Later(7200),
            ask("--explain", "three"),
            ask("--explain", "-m", "llamacpp/other", "three"),
            ask("--explain", "-T", "three"),
        ],
        [say("One."), READ, say("Two.")],
        files={**FILES, "a.png": PNG},
    ),
    Scenario(
        "budget",
        [
            ask("--new", "--budget", "100", "-a", "a.txt", "one"),
            ask("--new", "--budget", "90000", "-a", "b.txt", "one"),
            ask("--budget", "900", "read"),
            ask("--budget", "20000"),
            ask("--explain", "--budget", "10", "and?"),
            ask("--budget", "x", "and?"),
        ],
        [say("One."), READ, say("Two.")],
        files=FILES,
    ),
    Scenario(
        "storage",
        [
            ask("--new", "-a", "a.txt", "one"),
            jp("storage", "status"),
            jp("storage", "status", "-F", "json"),
            jp("storage", "check"),
            Write(f".jp/conversations/{FIRST}-one/stray.txt", "stray\n"),
            jp("storage", "check", "-F", "json"),
            jp("c", "show", "--files"),
        ],
        [say("One.")],
        files=FILES,
    ),
    Scenario(
        "print",
        [
            ask("--new", "--title", "A title", "-a", "a.txt", "-a", "a.png", "one"),
            ask("two"),
            jp("c", "print"),
            jp("c", "print", "--turn", "2"),
            jp("c", "print", "-F", "json"),
            jp("c", "print", "--turn", "..1", "--as-sent"),
            jp("c", "print", "--turn", "7"),
            jp("r", "show", "a.txt"),
            jp("r", "show", "a.png"),
            jp("r", "ls", "-F", "json"),
        ],
        [say("One."), READ, say("Two.")],
        files={**FILES, "a.png": PNG},
    ),
]
