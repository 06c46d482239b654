"""An MCP server without an SDK: `mcp_server.py FILE` over stdio.

`answer` is also what the recorder's own server calls to be an MCP server over HTTP. FILE is JSON
and is read for each request, so a scenario can change it:

    revision     `2025-11-25` answers `initialize`, `2026-07-28` answers `server/discover`
    tools        what `tools/list` lists
    calls        by tool, the result of `tools/call`; `"asks": {…}` in it is a form for the user
    resources    what `resources/list` lists
    templates    what `resources/templates/list` lists
    contents     by URI, what `resources/read` returns
    values       by variable, what `completion/complete` offers
"""

import json
import sys

NOT_FOUND = {"code": -32002, "message": "no such note"}
UNKNOWN = {"code": -32601, "message": "there is no such method"}
ABOUT = {"name": "notes", "title": "Notes", "version": "1"}


def answer(script, method, params):
    """Returns the result of a request, or its error, as members of the response."""
    is_new = script.get("revision") == "2026-07-28"
    result = find_result(script, method, params, is_new)
    if result is None:
        return {"error": NOT_FOUND if method == "resources/read" else UNKNOWN}
    return {
        "result": (
            {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}
            if is_new
            else result
        )
    }


def find_result(script, method, params, is_new):
    """Returns what the script has in answer to a request, or nothing."""
    capabilities = {"tools": {}, "resources": {}, "completions": {}}
    match method:
        case "initialize" if not is_new:
            revision = script.get("revision", "2025-11-25")
            return {
                "protocolVersion": revision,
                "capabilities": capabilities,
                "serverInfo": ABOUT,
                "instructions": "Read the notes.",
            }
        case "server/discover" if is_new:
            return {"supportedVersions": ["2026-07-28"], "capabilities": capabilities}
        case "tools/list":
            return {"tools": script.get("tools", [])}
        case "tools/call":
            return script.get("calls", {}).get(params["name"])
        case "resources/list":
            return {"resources": script.get("resources", [])}
        case "resources/templates/list":
            return {"resourceTemplates": script.get("templates", [])}
        case "resources/read":
            contents = script.get("contents", {}).get(params["uri"])
            return contents and {"contents": contents}
        case "completion/complete":
            argument = params["argument"]
            offered = script.get("values", {}).get(argument["name"], [])
            return {
                "completion": {
                    "values": [value for value in offered if value.startswith(argument["value"])]
                }
            }
        case "ping":
            return {}
    return None


def say(message):
    """Writes a message."""
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def ask_form(form):
    """Asks the user for values and returns what came back."""
    say({"id": "form", "method": "elicitation/create", "params": form})
    return json.loads(sys.stdin.readline()).get("result")


def main():
    """Answers requests on stdin until it is closed."""
    for line in iter(sys.stdin.readline, ""):
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        with open(sys.argv[1], encoding="utf-8") as file:
            script = json.load(file)
        reply = answer(script, message["method"], message.get("params") or {})
        if form := reply.get("result", {}).pop("asks", None):
            reply["result"] = {"content": [{"type": "text", "text": json.dumps(ask_form(form))}]}
        say({"id": message["id"], **reply})


if __name__ == "__main__":
    main()
