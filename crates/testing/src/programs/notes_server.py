"""An MCP server over stdio (2025-11-25) for tests: what it has is in a JSON file, read anew for each request.

usage: notes_server.py FILE     each request is noted in FILE.log

    resources   by URI, what `resources/read` answers as `contents`
    refusal     what it answers for any other URI
    listed      what `resources/list` answers
    values      by variable, what `completion/complete` offers
    ttlMs       for how long it says that contents are current
    waits_for   a file that must be there before `resources/read` is answered
    logs        what it logs when it was asked to read, and to complete
    last_words  goes to stderr instead of the answer to `resources/read`, and then it is gone
"""

import json
import os
import sys
import time

path = sys.argv[1]
USUAL = {"code": -32002, "message": "no such note"}


def read(state, params):
    while not os.path.exists(state.get("waits_for", path)):
        time.sleep(0.01)
    tell(state)
    if "last_words" in state:
        print(state["last_words"], file=sys.stderr, flush=True)
        sys.exit(3)
    contents = state.get("resources", {}).get(params["uri"])
    if contents is None:
        return {"error": state.get("refusal", USUAL)}
    result = {"contents": contents}
    if "ttlMs" in state:
        result["ttlMs"] = state["ttlMs"]
    return {"result": result}


def tell(state):
    if "logs" in state:
        params = {"level": "info", "data": state["logs"]}
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": params}), flush=True)


def complete(state, params):
    tell(state)
    argument = params["argument"]
    values = [one for one in state.get("values", {}).get(argument["name"], []) if one.startswith(argument["value"])]
    return {"result": {"completion": {"values": values}}}


def answer(method, params):
    with open(path, encoding="utf-8") as file:
        state = json.load(file)
    if method == "initialize":
        capabilities = {"resources": {}, "completions": {}, "logging": {}}
        about = {"name": "notes", "version": "1"}
        return {"result": {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": about}}
    if method == "resources/list":
        return {"result": {"resources": state.get("listed", [])}}
    if method == "resources/read":
        return read(state, params)
    if method == "completion/complete":
        return complete(state, params)
    return {"error": {"code": -32601, "message": "there is no such method"}}


for line in sys.stdin:
    message = json.loads(line)
    with open(path + ".log", "a", encoding="utf-8") as log:
        log.write(f"{message['method']} {message.get('params', {}).get('uri', '')}\n")
    if "id" in message:
        reply = {"jsonrpc": "2.0", "id": message["id"], **answer(message["method"], message.get("params", {}))}
        print(json.dumps(reply), flush=True)
