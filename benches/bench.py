#!/usr/bin/env python3
"""Measures jp against git, in one run on one machine, and prints ratios.

usage: benches/bench.py [attach] [start] [append] [request] [resources] [--jp PATH] [--runs N] [--dir DIR]

  attach   `jp query --new --attach DIR` of 1,000 files / 10 MB and 10,000 / 100 MB from the cargo registry's
           sources, against `git add` of the same tree with every sync; the same tree again; peak memory
  start    `jp --version` against `git --version`; `jp conversation ls` with 1,000 conversations
  append   the bytes and the time of an append to a conversation of 50,000 events and to an empty one
  request  a conversation of 692 events, a twin of a real one with 1 MB of history (and one with 20 MB): building its
           request; from exec to the first byte of the body at a server; memory; how late a word of an answer is shown
  resources  the library mcp_resources: finding the template of a URI among 10 and 1,000, URIs that are made to hurt;
           `resources/read` over stdio against Python's `fastmcp` (scripts/get_mcp_peers), one after the other and
           pipelined; the server's memory over a million requests

Every run has a fresh directory, and nothing is deleted between runs: ext4 creates files ten times slower for minutes
after many were deleted. Everything is below DIR (a new directory in the temporary one by default); remove it afterwards.
"""
import argparse, json, os, pathlib, shutil, socket, statistics, subprocess, sys, tempfile, threading, time

HERE = pathlib.Path(__file__).resolve().parent
ANSWER = (b'data: {"choices":[{"delta":{"content":"ok"}}]}\n\n'
          b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')


def answer(connection, log):
    """Reads one request to its end and answers at once."""
    buffer = bytearray(1 << 20)
    head = b""
    while b"\r\n\r\n" not in head:
        got = connection.recv(65536)
        if not got:
            return
        head += got
    head, rest = head.split(b"\r\n\r\n", 1)
    length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    log.append(length)
    left = length - len(rest)
    while left > 0:
        left -= connection.recv_into(buffer)
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(ANSWER) + ANSWER)
    connection.close()


def serve():
    """Starts a server that answers at once; returns its port and the list of the requests' lengths."""
    listener = socket.create_server(("127.0.0.1", 0))
    log = []

    def accept():
        while True:
            answer(listener.accept()[0], log)

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1], log


def timed(command, **kwargs):
    """Runs a command; returns wall seconds, CPU seconds and peak memory in MB."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, **kwargs)
    error = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status:
        sys.exit(f"{command} failed: {error.decode(errors='replace')}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def p95(values):
    return statistics.quantiles(values, n=20)[-1]


def sources():
    """Yields text files of the cargo registry, in a fixed order."""
    registry = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo")) / "registry" / "src"
    kinds = {".rs", ".md", ".toml", ".c", ".h", ".txt", ".json", ".S", ".pl"}
    for path in sorted(registry.rglob("*")):
        if path.suffix in kinds and path.is_file() and 0 < path.stat().st_size < 1_000_000:
            yield path


def make_tree(target, files, size):
    """Copies `files` sources of about `size` bytes in all."""
    wanted, left_bytes = files, size
    average = size / files
    done = 0
    for path in sources():
        length = path.stat().st_size
        # Keep the average of what is left near the one wanted.
        if length > 20 * average or (left_bytes / max(wanted, 1) < average * 0.5 and length > average):
            continue
        directory = target / f"{done // 100:03}"
        directory.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, directory / f"{done:05}{path.suffix}")
        done, wanted, left_bytes = done + 1, wanted - 1, left_bytes - length
        if wanted == 0:
            break
    if wanted:
        sys.exit(f"the cargo registry holds only {done} of {files} files; build the project first")
    return done, size - left_bytes


def environment(home):
    return {"PATH": os.environ["PATH"], "HOME": str(home)}


def workspace(base, port, tree):
    root = pathlib.Path(tempfile.mkdtemp(dir=base))
    (root / ".jp").mkdir()
    (root / ".jp/.id").write_text(root.name + "\n")
    (root / ".jp/config.toml").write_text(
        f'[assistant.model]\nid = "llamacpp/m"\n[providers.llm.llamacpp]\nbase_url = "http://127.0.0.1:{port}"\nmodels.m.tools = true\n')
    shutil.copytree(tree, root / "tree")
    return root


def repository(base, tree):
    root = pathlib.Path(tempfile.mkdtemp(dir=base))
    subprocess.run(["git", "init", "-q", root], check=True)
    shutil.copytree(tree, root / "tree")
    return root


def blobs(root):
    return sum(1 for _ in (root / ".jp").rglob("*.blob.gz"))


def attach(jp, base, runs):
    port, log = serve()
    print(f"{'tree':>22} {'jp':>8} {'git add':>8} {'git/jp':>7} {'again':>8} {'again/first':>11} {'peak MB':>8} {'again MB':>8}")
    for files, size in [(1_000, 10_000_000), (10_000, 100_000_000)]:
        tree = base / f"tree-{files}"
        count, total = make_tree(tree, files, size)
        rows = []
        for _ in range(runs):
            root, repo = workspace(base, port, tree), repository(base, tree)
            os.sync()
            time.sleep(2)
            query = [jp, "query", "--new", "--attach", "tree", "x"]
            first = timed(query, cwd=root, env=environment(root))
            kept = blobs(root)
            os.sync()
            time.sleep(2)
            git = timed(["git", "-c", "core.fsync=all", "-c", "core.fsyncMethod=batch", "add", "."], cwd=repo)
            os.sync()
            time.sleep(2)
            again = timed(query, cwd=root, env=environment(root))
            if blobs(root) != kept:
                sys.exit("attaching the same tree again made new files")
            rows.append((first[0], git[0], again[0], first[2], again[2], log[-1]))
        middle = [statistics.median(column) for column in zip(*rows)]
        first, git, again, peak, peak_again, sent = middle
        name = f"{count:,} / {total / 1e6:.0f} MB"
        print(f"{name:>22} {first:8.3f} {git:8.3f} {git / first:7.2f} {again:8.3f} {again / first:11.2f} {peak:8.1f} {peak_again:8.1f}   ({sent / 1e6:.0f} MB sent)")


def start(jp, base, runs):
    ratios, times = [], []
    for _ in range(max(runs, 5) * 20):
        a, b = timed([jp, "--version"])[0], timed(["git", "--version"])[0]
        ratios.append(a / b)
        times.append((a, b))
    ours, theirs = (statistics.median(column) * 1000 for column in zip(*times))
    print(f"jp --version {ours:.2f} ms, git --version {theirs:.2f} ms, ratio {statistics.median(ratios):.2f}")

    root = pathlib.Path(tempfile.mkdtemp(dir=base))
    (root / ".jp/conversations").mkdir(parents=True)
    for index in range(1000):
        directory = root / f".jp/conversations/{17_000_000_000 + index}-conversation"
        directory.mkdir()
        event = {"timestamp": "2026-11-21T12:00:00Z", "type": "chat_request", "content": "x" * 500}
        (directory / "events.json").write_text("[\n" + ",\n".join([json.dumps(event)] * 20) + "\n]\n")
        (directory / "metadata.json").write_text('{"title": "A conversation", "last_activated_at": "2026-11-21T12:00:00Z"}\n')
    runs_of = lambda: [timed([jp, "conversation", "ls"], cwd=root, env=environment(root))[1] * 1000 for _ in range(max(runs, 5))]
    first = timed([jp, "conversation", "ls"], cwd=root, env=environment(root))[1] * 1000
    print(f"jp conversation ls of 1,000: {statistics.median(runs_of()):.1f} ms of CPU ({first:.1f} ms the first time, without its index)")


def append(jp, base, runs):
    subprocess.run(["cargo", "run", "--release", "--quiet", "-p", "jp_storage", "--example", "append_bench", "--", str(base)],
                   check=True, cwd=HERE.parent)


EXAMPLE = ["cargo", "run", "--release", "--quiet", "-p", "jp_cli", "--example", "request_bench", "--"]


def request(jp, base, runs):
    subprocess.run(EXAMPLE, check=True, cwd=HERE.parent, stdout=subprocess.DEVNULL)  # Builds it.
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(30)
    twins = {size: twin(base, listener, size) for size in (1_000_000, 20_000_000)}
    print("building the request, median:", flush=True)
    subprocess.run([*EXAMPLE, "build", twins[1_000_000]], check=True, cwd=HERE.parent)
    for root in twins.values():
        subprocess.run([*EXAMPLE, "memory", root], check=True, cwd=HERE.parent)

    empty = twin(base, listener, None)
    wire(jp, listener, empty, twins, max(runs, 3) * 7)
    for name, is_terminal in ("pipe", False), ("terminal", True):
        lags = [lag(jp, listener, empty, is_terminal) for _ in range(max(runs, 3))]
        first, later = [run[0] for run in lags], [word for run in lags for word in run[1:]]
        print(f"a word is read from a {name} {statistics.median(later):.2f} ms after it was sent (p95 {p95(later):.2f}),"
              f" the first one {statistics.median(first):.2f} ms")


def twin(base, listener, size):
    """Makes a workspace; with a size, the conversation of 692 events is in it."""
    root = pathlib.Path(tempfile.mkdtemp(dir=base))
    (root / ".jp").mkdir()
    (root / ".jp/config.toml").write_text(
        '[assistant.model]\nid = "llamacpp/m"\n[providers.llm.llamacpp]\n'
        f'base_url = "http://127.0.0.1:{listener.getsockname()[1]}"\nmodels.m.tools = true\n')
    if size:
        subprocess.run([*EXAMPLE, "write", root, str(size)], check=True, cwd=HERE.parent)
    return root


def wire(jp, listener, empty, twins, runs):
    """Prints when the body's first byte arrives, and the memory it took; cases take turns, so noise hits all alike."""
    cases = {"new": (empty, "--new"), "new, no disk": (empty, "--new", "--no-persist")}
    for size, root in twins.items():
        cases |= {f"{size // 1_000_000} MB": (root,), f"{size // 1_000_000} MB, no disk": (root, "--no-persist")}
    rows = {name: [] for name in cases}
    for _ in range(runs):
        for name, (root, *arguments) in cases.items():
            rows[name].append(send(jp, listener, root, arguments))
    versions = [timed([jp, "--version"]) for _ in range(runs)]
    print(f"jp --version {statistics.median(v[0] for v in versions) * 1000:.1f} ms, CPU {statistics.median(v[1] for v in versions) * 1000:.1f} ms")
    print(f"{'from exec to':>20} {'first':>9} {'least':>9} {'last byte':>9} {'CPU of all':>10} {'bytes':>11} {'peak MB':>8} {'beyond a new one':>17}")
    base = statistics.median(row[4] for row in rows["new"])
    for name, values in rows.items():
        first, last, cpu, length, peak = (statistics.median(column) for column in zip(*values))
        beyond = (peak - base) * 1e6 / length
        share = f"{peak - base:5.1f} MB, {beyond:4.2f} ×" if length > 10_000 else ""
        print(f"{name:>20} {first:6.1f} ms {min(values)[0]:6.1f} ms {last:6.1f} ms {cpu:7.1f} ms {length:11,.0f} {peak:8.1f} {share:>17}")


def spawn(jp, root, arguments, stdout=None):
    """Starts a query; returns its process and when that was, shortly before exec."""
    out = (os.POSIX_SPAWN_DUP2, stdout, 1) if stdout else (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
    actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), out,
               (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
    command = [jp, "-w", str(root), "query", *arguments, "And what is the last word?"]
    start = time.monotonic_ns()
    return os.posix_spawn(jp, command, environment(root), file_actions=actions), start


def receive(connection):
    """Reads a request; returns its length and when the first and the last byte of its body came."""
    buffer, got = bytearray(1 << 20), b""
    while b"\r\n\r\n" not in got or got.endswith(b"\r\n\r\n"):
        got += connection.recv(65536)
    first = time.monotonic_ns()
    head, rest = got.split(b"\r\n\r\n", 1)
    length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    left = length - len(rest)
    while left > 0:
        left -= connection.recv_into(buffer)
    return length, first, time.monotonic_ns()


def send(jp, listener, root, arguments):
    """Runs a query; returns ms to the first and the last byte of its body, ms of CPU, the bytes and the peak in MB."""
    process, start = spawn(jp, root, arguments)
    connection = listener.accept()[0]
    length, first, last = receive(connection)
    # Not `ru_maxrss`: a process inherits that from the one that started it.
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    peak = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(ANSWER) + ANSWER)
    connection.close()
    _, status, usage = os.wait4(process, 0)
    if status:
        sys.exit(f"jp query in {root} failed")
    return (first - start) / 1e6, (last - start) / 1e6, (usage.ru_utime + usage.ru_stime) * 1000, length, peak / 1e6


def lag(jp, listener, root, is_terminal, words=100):
    """Sends an answer word by word; returns how many ms later each could be read from jp's stdout."""
    ours, theirs = os.openpty() if is_terminal else os.pipe()
    process, _ = spawn(jp, root, ["--new"], theirs)
    os.close(theirs)
    connection = listener.accept()[0]
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    receive(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    lags = []
    for index in range(words):
        time.sleep(0.01)
        word, shown = b"word%03d" % index, b""
        start = time.monotonic_ns()
        connection.sendall(b'data: {"choices":[{"delta":{"content":"%s "}}]}\n\n' % word)
        while word not in shown:
            shown += os.read(ours, 4096)
        lags.append((time.monotonic_ns() - start) / 1e6)
    connection.sendall(ANSWER)
    connection.close()
    os.waitpid(process, 0)
    os.close(ours)
    return lags


RESOURCES = ["cargo", "run", "--release", "--quiet", "-p", "mcp_resources", "--example", "resource_bench", "--"]


def resources(jp, base, runs):
    subprocess.run([*RESOURCES, "match"], check=True, cwd=HERE.parent)
    bench = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target")) / "release/examples/resource_bench"
    ours = [bench, "serve"]
    theirs = ["python3", HERE / "resources_fastmcp.py"]
    packages = HERE.parent / ".local/mcp-python"
    for name, window, few, many in ("one after the other", 1, 2_000, 20_000), ("pipelined", 64, 4_000, 100_000):
        rows = []
        for _ in range(max(runs, 3)):  # In turns, so noise hits all alike.
            row = [drive(bench, many, window, uri, ours)[0] for uri in ("bench://small", "bench://async", "bench://item/#")]
            if packages.is_dir():
                row += [drive(bench, few, window, uri, theirs, packages)[0] for uri in ("bench://small", "bench://async")]
            rows.append(row)
        sync, async_, item, *python = (statistics.median(column) for column in zip(*rows))
        print(f"read, {name}: sync {sync:.1f} µs, async {async_:.1f} µs, by a template {item:.1f} µs")
        if python:
            print(f"  fastmcp: sync {python[0]:.0f} µs, async {python[1]:.0f} µs; sync ratio {python[0] / sync:.1f},"
                  f" async ratio {python[1] / async_:.1f}")
    for uri in "bench://small", "bench://async", "bench://item/#":
        each, early, late = drive(bench, 1_000_000, 64, uri, ours)
        print(f"a million of {uri}: {early / 1024:.1f} MB after 10,000, {late / 1024:.1f} MB at the end,"
              f" ratio {late / early:.3f}, {each:.1f} µs each")


def drive(bench, requests, window, uri, server, packages=None):
    """Reads from a server; returns microseconds a request and its memory in KiB, early and late."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"} | ({"PYTHONPATH": str(packages)} if packages else {})
    run = subprocess.run([bench, "drive", str(requests), str(window), uri, *server], check=True, env=environment, capture_output=True, text=True)
    return [float(number) for number in run.stdout.split()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=["attach", "start", "append", "request", "resources", []], default=[])
    parser.add_argument("--jp", default=str(HERE.parent / "target/release/jp"))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--dir")
    arguments = parser.parse_args()
    base = pathlib.Path(tempfile.mkdtemp(prefix="jp-bench-", dir=arguments.dir))
    free = shutil.disk_usage(base).free
    print(f"in {base}")
    for name in arguments.what or ["attach", "start", "append", "request", "resources"]:
        {"attach": attach, "start": start, "append": append, "request": request, "resources": resources}[name](
            os.path.abspath(arguments.jp), base, arguments.runs)
    taken = max(free - shutil.disk_usage(base).free, 0)
    print(f"{base} is left, with {taken / 1e9:.1f} GB: remove it, but measure nothing on this disk right after that")


if __name__ == "__main__":
    main()
