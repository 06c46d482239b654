"""An MCP server over stdio that answers as `server.json` says: `{METHOD: RESULT}`.

`tools/call` and `resources/read` have a result for each name or URI. A method without a result is unknown to the server.
"at_last" names requests that are answered only once all of them have come, in that order. "log" is a file that gets a line
when a request begins and when it ends. "slow" names tools that take a moment; "meets" names tools that end once the log says
so often that they began, or after five seconds. "die" names a tool that ends the server.
"""

import json
import os
import sys
import threading
import time

SCRIPT = {"log": os.devnull, **json.load(open((sys.argv + ["server.json"])[1]))}
LOCK = threading.Lock()
HELD = {}


def say(message):
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def log(line):
    with LOCK, open(SCRIPT["log"], "a") as file:
        file.write(line + "\n")


def result(method, params):
    found = SCRIPT.get(method)
    key = {"tools/call": "name", "resources/read": "uri"}.get(method)
    return found.get(params[key]) if key and found else found


def answer(message):
    method, params = message["method"], message.get("params") or {}
    log(f"{method} begins" if method != "tools/call" else f"{params['name']} begins")
    if method == "tools/call":
        log(f"{params['name']} gets {json.dumps(params['arguments'], sort_keys=True)}")
        if params["name"] == SCRIPT.get("die"):
            os._exit(3)
        if params["name"] in SCRIPT.get("slow", []):
            time.sleep(0.2)
        for _ in range(500):
            if open(SCRIPT["log"]).read().count(params["name"] + " begins") >= SCRIPT.get("meets", {}).get(params["name"], 0):
                break
            time.sleep(0.01)
    found = result(method, params)
    log(f"{method} ends" if method != "tools/call" else f"{params['name']} ends")
    if found is None:
        say({"id": message["id"], "error": {"code": -32601, "message": "there is no such thing"}})
    elif "error" in found:
        say({"id": message["id"], "error": found["error"]})
    else:
        say({"id": message["id"], "result": found})


for line in iter(sys.stdin.readline, ""):
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    order = SCRIPT.get("at_last", [])
    if message["method"] in order:
        HELD[message["method"]] = message
        if len(HELD) == len(order):
            for method in order:
                answer(HELD[method])
            SCRIPT["at_last"] = []
        continue
    threading.Thread(target=answer, args=[message]).start()
