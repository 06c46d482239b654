"""Runs one scenario with one binary, in a home of its own."""

import contextlib
import dataclasses
import os
import re
import select
import shutil
import signal
import subprocess
import threading
import time

from . import formats
from .clock import START
from .recording import Recording
from .scenario import USER_CONFIG, WORKSPACE_CONFIG, Jp, Later, Move, Remove, Replace, Write

# A step that takes longer hangs: the slowest takes about two seconds with a debug binary.
STEP_SECONDS = 60
# Between two runs of jp, so that their conversations and events have times of their own.
PAUSE_SECONDS = 10


class Player:
    """Plays a scenario; the home is emptied first."""

    def __init__(self, scenario, binary, home, model, library):
        self.scenario, self.binary, self.model, self.library = scenario, binary, model, library
        # Usage errors have the program's name, so that is the same for both binaries.
        self.program = home.parent / "jp"
        self.home, self.root = home, home / "project"
        self.now = START
        self.runs = 0
        self.recording = Recording(home)

    def play(self):
        """Plays all steps and returns the recording."""
        answers = [self.encode(answer) for answer in self.scenario.answers]
        pages = {path: self.encode(page) for path, page in self.scenario.pages.items()}
        self.model.play(answers, pages)
        self.prepare_home()
        seen = 0
        for step in self.scenario.steps:
            self.play_step(step)
            self.recording.add_requests(self.model.requests[seen:])
            seen = len(self.model.requests)
        self.recording.add_files()
        left = len(self.model.answers)
        if left:
            self.recording.add("answers that no request asked for", f"{left}\n")
        return self.recording

    def encode(self, answer):
        """Returns a reply in the format of the scenario's provider, with marks replaced."""
        if isinstance(answer, list):
            return [self.encode(one) for one in answer]
        if callable(answer):
            return answer
        reply = (
            answer.encode(self.scenario.provider) if isinstance(answer, formats.Answer) else answer
        )
        return dataclasses.replace(reply, body=self.fill(reply.body))

    def fill(self, content):
        """Replaces the marks in a text or in bytes."""
        if isinstance(content, bytes):
            text = content.decode("utf-8", "surrogateescape")
            return self.fill(text).encode("utf-8", "surrogateescape")
        url = self.model.url
        content = content.replace("@URL@", url).replace("@HOST@", url.removeprefix("http://"))
        return content.replace("@ROOT@", str(self.root)).replace("@HOME@", str(self.home))

    def prepare_home(self):
        """Empties the home and writes what the scenario starts with."""
        if self.home.exists():
            shutil.rmtree(self.home)
        self.root.mkdir(parents=True)
        self.program.unlink(missing_ok=True)
        self.program.symlink_to(self.binary)
        scenario = self.scenario
        if scenario.has_workspace:
            self.write(Write(".jp/.id", "compare\n"))
        self.write(Write(USER_CONFIG, f"{self.model_config()}{scenario.config}"))
        if scenario.workspace_config:
            self.write(Write(WORKSPACE_CONFIG, scenario.workspace_config))
        for path, content in scenario.files.items():
            is_script = path.endswith(".sh")
            self.write(Write(path, content, 0o755 if is_script else 0o644))

    def model_config(self):
        """Returns the TOML that makes the server the provider of the scenario."""
        name = self.scenario.provider
        provider = f"providers.llm.{name}"
        config = f'assistant.model.id = "{name}/m"\n{provider}.base_url = "{self.model.url}"\n'
        if self.scenario.knows_model:
            taken = ("tools", "images", "pdf", "schema")
            config += "".join(f"{provider}.models.m.{key} = true\n" for key in taken)
        return config

    def path(self, path):
        """Returns the path of a file of the workspace, or below the home after `~/`."""
        return self.home / path[2:] if path.startswith("~/") else self.root / path

    def only(self, pattern):
        """Returns what a glob matches, in order; a scenario that finds nothing is wrong."""
        found = sorted(self.root.glob(self.fill(pattern)))
        if not found:
            raise ValueError(f"nothing matches {pattern}")
        return found

    def play_step(self, step):
        """Does what a step says."""
        match step:
            case Jp():
                self.run(step)
            case Write():
                self.write(step)
            case Later(seconds):
                self.now += seconds
            case Remove(pattern):
                for path in self.only(pattern):
                    path.unlink()
            case Move(pattern, directory):
                target = self.path(directory)
                target.mkdir(parents=True, exist_ok=True)
                for path in self.only(pattern):
                    path.rename(target / path.name)
            case Replace(pattern, old, new):
                for path in self.only(pattern):
                    content = path.read_text()
                    if old not in content:
                        raise ValueError(f"{path} has no {old!r}")
                    path.write_text(content.replace(old, new))
                    os.utime(path, (self.now, self.now))

    def write(self, step):
        """Writes a file whose times are the clock's."""
        path = self.path(step.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = self.fill(step.content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        path.chmod(step.mode)
        os.utime(path, (self.now, self.now))

    def run(self, step):
        """Runs jp, to its end, and records what it printed."""
        self.now += PAUSE_SECONDS if self.runs else 0
        self.runs += 1
        command = [self.program, *(self.fill(argument) for argument in step.arguments)]
        name = f"run {self.runs}: jp {' '.join(step.arguments)}"
        if step.dialogue:
            code, shown = run_at_terminal(command, self.process(step), step.dialogue)
            self.recording.add(name, f"exit code: {code}\n-- terminal\n{shown}\n")
            return
        stdin = subprocess.DEVNULL if step.stdin is None else subprocess.PIPE
        # A session of its own has no terminal, and a process group that can be ended.
        process = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            **self.process(step),
        )
        given = self.fill(step.stdin).encode() if isinstance(step.stdin, str) else step.stdin
        with ended(process):
            stdout, stderr = communicate(process, given, step.interrupt_after)
        self.recording.add_run(name, process.returncode, stdout, stderr)

    def process(self, step):
        """Returns the directory and the environment of a run."""
        environment = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "TZ": "UTC",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "TERM": "xterm-256color",
            "LD_PRELOAD": str(self.library),
            "COMPARE_CLOCK": str(self.now),
            # Children in Python would leave caches that depend on the real time.
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        if self.scenario.provider in formats.KEYS:
            environment[formats.KEYS[self.scenario.provider]] = "sk-test"
        if step.dialogue:
            # Else the session is named by the terminal, which is another one each time.
            environment["JP_SESSION"] = "compare"
        extra = {**self.scenario.environment, **step.environment}
        environment |= {name: self.fill(value) for name, value in extra.items()}
        return {"cwd": self.path(step.directory), "env": environment}


@contextlib.contextmanager
def ended(process):
    """Ends a process and what it started, however the block ends."""
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def communicate(process, given, interrupt_after):
    """Returns what a process prints; sends it Ctrl-C once it has printed `interrupt_after`."""
    if interrupt_after is None:
        return process.communicate(given, timeout=STEP_SECONDS)
    stderr = []
    reader = threading.Thread(target=lambda: stderr.append(process.stderr.read()))
    reader.start()
    stdout, end = b"", time.monotonic() + STEP_SECONDS
    while interrupt_after.encode() not in stdout and time.monotonic() < end:
        if select.select([process.stdout], [], [], 0.1)[0]:
            piece = os.read(process.stdout.fileno(), 65536)
            if not piece:
                break
            stdout += piece
    os.killpg(process.pid, signal.SIGINT)
    stdout += process.stdout.read()
    process.wait(timeout=STEP_SECONDS)
    reader.join(timeout=STEP_SECONDS)
    return stdout, b"".join(stderr)


def run_at_terminal(command, options, dialogue):
    """Runs a command at a terminal and answers its prompts; returns exit code and output."""
    ours, theirs = os.openpty()
    # `setsid` makes the terminal the one that the command is controlled by.
    process = subprocess.Popen(
        ["setsid", "--ctty", *command], stdin=theirs, stdout=theirs, stderr=theirs, **options
    )
    os.close(theirs)
    shown, seen, end = "", 0, time.monotonic() + STEP_SECONDS
    try:
        with ended(process):
            for expected, typed in dialogue:
                # A prompt ends with a space; what is typed too early would be echoed before it.
                prompt = re.compile(re.escape(expected) + r"[^\n]*(?<= )\Z")
                while not prompt.search(shown, seen):
                    shown += read_terminal(ours, end)
                seen = len(shown)
                os.write(ours, typed.encode())
            with contextlib.suppress(EOFError):
                while True:
                    shown += read_terminal(ours, end)
            return process.wait(timeout=STEP_SECONDS), shown
    finally:
        os.close(ours)


def read_terminal(terminal, end):
    """Returns what a terminal shows next; raises EOFError once nothing has it open."""
    if not select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
        raise TimeoutError("the terminal does not show what the scenario waits for")
    try:
        piece = os.read(terminal, 65536)
    except OSError as error:
        # Linux says so where the other side was closed.
        raise EOFError from error
    if not piece:
        raise EOFError
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", piece.decode("utf-8", "replace"))
