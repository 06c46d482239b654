"""What is kept of a run, and how two recordings are compared.

A recording is a list of named sections: every request with its headers, what every run printed and
its exit code, and at the end every file of the home with its mode. jp's cache (`~/.cache`) is left
out: it has times and inodes of real files. Both binaries get the same home, port and clock, so
nearly everything is compared as it is. Only this is normalised:

1. `jp init` makes a random id (`.jp/.id`). It becomes `WORKSPACE-ID` in names, files and output,
   unless the scenario wrote it.
2. A lock file holds the process id of its last holder. Its content becomes `LOCK`.
3. Parallel calls end in any order. Consecutive lines of stderr that begin with `Called ` are
   sorted, and so are consecutive results in `events.json`.
4. The wait before a retry is partly random. It becomes `retry N in SOME s`.
5. jp fetches pages in parallel and asks llama.cpp two questions about its model at once. Consecutive
   GET requests of one run are sorted.
6. The HTTP client sends MCP's own headers (`mcp-…`) in random order. Consecutive ones are sorted.
7. Escape sequences that colour a terminal or move its cursor are removed.
"""

import difflib
import hashlib
import itertools
import json
import os
import re
import stat

CACHE = ".cache"
FIXED_ID = "compare"
# How much of a difference is shown.
DIFF_LINES, DIFF_COLUMNS = 40, 300
# How many further sections that differ are named.
OTHERS = 5


class Recording:
    """The sections of a run, in their order."""

    def __init__(self, home):
        self.home = home
        self.sections = []
        self.requests = 0

    def add(self, name, text):
        """Adds a section."""
        self.sections.append((name, text))

    def add_requests(self, requests):
        """Adds the requests of a run, each with its head as lines and its body."""
        for head, body in settle_requests(requests):
            self.requests += 1
            lines = "".join(f"{line}\n" for line in head)
            self.add(f"request {self.requests}: {head[0]}", f"{lines}\n{show_bytes(body)}")

    def add_run(self, name, code, stdout, stderr):
        """Adds what a run of jp printed."""
        self.add(
            name,
            f"exit code: {code}\n-- stdout\n{show_bytes(stdout)}\n"
            f"-- stderr\n{settle_output(show_bytes(stderr))}",
        )

    def add_files(self):
        """Adds all files of the home."""
        for directory, directories, files in os.walk(self.home):
            if directory == str(self.home) and CACHE in directories:
                directories.remove(CACHE)
            directories.sort()
            for name in sorted(files):
                path = self.home.__class__(directory, name)
                self.add(f"file {path.relative_to(self.home)}", show_file(path))
        self.name_workspace()

    def name_workspace(self):
        """Replaces the workspace's id where jp made it at random."""
        file = self.home / "project/.jp/.id"
        made = file.read_text().strip() if file.is_file() else FIXED_ID
        if made != FIXED_ID:
            self.sections = [
                tuple(part.replace(made, "WORKSPACE-ID") for part in section)
                for section in self.sections
            ]

    def write(self, file):
        """Writes all sections to a file."""
        with open(file, "w", encoding="utf-8", errors="surrogateescape") as out:
            for name, text in self.sections:
                out.write(f"==== {name}\n{text}\n\n")


def settle_requests(requests):
    """Puts into order what jp sends in no order of its own."""
    settled = []
    for is_get, run in itertools.groupby(
        requests, lambda request: request[0][0].startswith("GET ")
    ):
        settled += sorted(run) if is_get else run
    return [(settle_runs(head, is_mcp_header), body) for head, body in settled]


def is_mcp_header(line):
    """Returns whether a header is one of MCP's own."""
    return line.startswith("mcp-")


def is_result(line):
    """Returns whether a line of events.json is the result of a call."""
    return '"type":"tool_call_response"' in line


def settle_output(text):
    """Puts the lines of parallel calls into order and leaves out how long a retry waits."""
    text = re.sub(r"(; retry \d+ in )[0-9.]+ s", r"\1SOME s", text)
    return "\n".join(settle_runs(text.split("\n"), lambda line: line.startswith("Called ")))


def settle_runs(lines, is_unordered):
    """Sorts each run of lines for which `is_unordered` holds."""
    groups = itertools.groupby(lines, is_unordered)
    return [line for unordered, run in groups for line in (sorted(run) if unordered else run)]


def show_bytes(content):
    """Returns bytes as text where they are some, else their checksum and size."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return f"{len(content)} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}\n"


def show_file(path):
    """Returns the mode and the content of a file."""
    if path.is_symlink():
        return f"link to {os.readlink(path)}\n"
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        return f"mode {mode:o}, no regular file\n"
    content = "LOCK" if path.name.endswith(".lock") else show_bytes(path.read_bytes())
    if path.name == "events.json":
        content = "\n".join(settle_runs(content.split("\n"), is_result))
    return f"mode {mode:o}\n{content}"


def find_difference(old, new):
    """Returns the first difference as lines, and what else differs; nothing if there is none."""
    before, after = dict(old.sections), dict(new.sections)
    differing = [
        name
        for name in [*before, *(name for name in after if name not in before)]
        if before.get(name) != after.get(name)
    ]
    if not differing:
        return [] if old.sections == new.sections else ["the same sections come in another order"]
    first, *others = differing
    lines = [f"{first}:", *describe(before.get(first), after.get(first))]
    return (
        lines
        + [f"{name}: differs, too" for name in others[:OTHERS]]
        + ([f"and {len(others) - OTHERS} more"] if others[OTHERS:] else [])
    )


def describe(old, new):
    """Returns how a section differs."""
    if old is None or new is None:
        binary = "new" if old is None else "old"
        return [
            f"is there with the {binary} binary only",
            *map(cut, (old or new).splitlines()[:DIFF_LINES]),
        ]
    return diff(old, new)


def diff(old, new):
    """Returns a unified diff; JSON documents are laid out first, and long lines are cut."""
    laid_out = [lay_out(text) for text in (old, new)]
    if laid_out[0] == laid_out[1]:
        # Only the order of keys or white space differ.
        laid_out = [text.splitlines() for text in (old, new)]
    lines = list(difflib.unified_diff(*laid_out, "old", "new", lineterm="", n=2))
    shown = [cut(line) for line in lines[:DIFF_LINES]]
    return shown + ([f"… {len(lines) - DIFF_LINES} more lines"] if len(lines) > DIFF_LINES else [])


def lay_out(text):
    """Returns the lines of a text, with each line that is a JSON document over several."""
    lines = []
    for line in text.splitlines():
        try:
            lines += (
                json.dumps(json.loads(line), indent=1, ensure_ascii=False).splitlines()
                if line[:1] in "{["
                else [line]
            )
        except ValueError:
            lines.append(line)
    return lines


def cut(line):
    """Shortens a line that is too long to be read."""
    return line if len(line) <= DIFF_COLUMNS else f"{line[:DIFF_COLUMNS]}… ({len(line)} characters)"
