"""A small MCP server (2025-11-25) for tests: `notes.py [MODE]` over stdio, `notes.py MODE --http` over HTTP at /mcp.

It prints its port to stdout where it serves HTTP. Modes: `good`; `nasty`, whose texts would steer a terminal; `loop`, whose
pages lead in a circle; `silent`, which answers nothing that is read; `asks`, which wants something first; `slow`, which says
how far it is until a file `go` is there; `still`, which does not tell of changes; a number, which is the HTTP status of each
answer, which for 401 and 403 comes with a challenge: an authorization server is there too. The note `note:file` is what the file `note.txt` beside it holds.
"""

import http.server
import json
import os
import sys
import threading
import time

MODE = (sys.argv + ["good"])[1]
NASTY = "\x1b[2Jall\u202egone\nforged  row" if MODE == "nasty" else ""
INFO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}, "resources": {"subscribe": MODE != "still"}, "completions": {}, "logging": {}},
    "serverInfo": {"name": "notes" + NASTY, "version": "1.0"},
}
TOOLS = [
    {"name": "count_notes" + NASTY, "description": "\nCounts the notes.\nIn all languages.", "inputSchema": {"type": "object"},
     "annotations": {"readOnlyHint": True}},
    {"name": "add_note", "title": "Add a note", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
    {"description": "It has no name."},
]
RESOURCES = [
    {"uri": "note:one", "name": "one", "title": "Note one" + NASTY, "mimeType": "text/plain", "size": 15},
    {"uri": "note:both", "name": "both"},
    {"uri": "note:picture", "name": "picture", "mimeType": "image/png"},
    {"uri": "note:file", "name": "file"},
]
TEMPLATES = [{"uriTemplate": "note:{name}{?lang}", "name": "note", "description": "A note by its name." + NASTY}]


def contents(uri):
    base, _, language = uri.partition("?lang=")
    text = {"uri": uri, "mimeType": "text/plain", "text": f"The first note{', in ' + language if language else ''}.\n" + NASTY}
    picture = {"uri": "note:picture", "mimeType": "image/png", "blob": "iVBORw0KGgr/"}
    known = ("AWS_SESSION", "GITHUB_PAT", "NOTES_TOKEN", "NPM_CONFIG__AUTH", "OTHER_API_KEY", "PLAIN")
    variables = [name for name in sorted(os.environ) if name in known]
    return {
        "note:one": [text],
        "note:both": [{"uri": "note:one", "text": "no end of line"}, picture, {"uri": "note:two", "text": "Two.\n"}],
        "note:picture": [picture],
        "note:environment": [{"uri": uri, "text": " ".join(variables)}],
        "note:file": [{"uri": uri, "text": open("note.txt").read()}] if base == "note:file" else [],
    }.get(base)


def answer(method, params):
    page = {"nextCursor": "again"} if MODE == "loop" else {}
    if method == "initialize":
        return INFO
    if method == "tools/list":
        return {"tools": TOOLS, **page}
    if method == "resources/list":
        return {"resources": RESOURCES, **page}
    if method == "resources/templates/list":
        return {"resourceTemplates": TEMPLATES}
    if method in ("ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel"):
        return {}
    if method == "resources/read" and (found := contents(params["uri"])):
        return {"contents": found, "ttlMs": 5000}
    return None


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def log(text):
    say({"method": "notifications/message", "params": {"level": "info", "logger": "disk", "data": text + NASTY}})


def follow(uri):
    """Says each time that the file has changed, until it is gone."""
    last = open("note.txt").read()
    while os.path.exists("note.txt"):
        now = open("note.txt").read()
        if now != last:
            last = now
            say({"method": "notifications/resources/updated", "params": {"uri": uri}})
        time.sleep(0.01)
    os._exit(7)


def work(token):
    while not os.path.exists("go"):
        say({"method": "notifications/progress", "params": {"progressToken": token, "progress": time.time(), "message": "digging"}})
        time.sleep(0.05)


def receive(message):
    method, params = message.get("method"), message.get("params") or {}
    if "id" not in message or method is None:
        return None
    if method == "resources/read":
        log("a note is read")
        if MODE == "silent":
            open("asked", "w").close()
            return None
        if MODE == "asks":
            schema = {"type": "object", "properties": {}}
            say({"id": "q", "method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": schema}})
            heard = json.loads(sys.stdin.readline())["result"]["action"]
            return {"id": message["id"], "result": {"contents": [{"uri": params["uri"], "text": heard}]}}
        if MODE == "slow":
            work(params["_meta"]["progressToken"])
    if method == "resources/subscribe":
        threading.Thread(target=follow, args=[params["uri"]], daemon=True).start()
    result = answer(method, params)
    if result is None:
        code = -32002 if method == "resources/read" else -32601
        return {"id": message["id"], "error": {"code": code, "message": "there is no such thing" + NASTY}}
    return {"id": message["id"], "result": result}


class Endpoint(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        status, reply = 200, receive(message) or {}
        if MODE.isdigit():
            status = int(MODE)
        elif "id" not in message:
            status = 202
        body = json.dumps({"jsonrpc": "2.0", **reply}).encode() if status == 200 else b""
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        if status in (401, 403):
            self.send_header("www-authenticate", 'Bearer error="insufficient_scope", scope="notes:write"')
        if 300 <= status < 400:
            self.send_header("location", "https://other.example/mcp")
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        base = f"http://{self.headers['host']}"
        document = {
            "/.well-known/oauth-protected-resource": {"resource": base + "/mcp", "authorization_servers": [base]},
            "/.well-known/oauth-authorization-server": {
                "issuer": base, "authorization_endpoint": base + "/agree", "token_endpoint": base + "/token",
                "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
            },
        }.get(self.path.removesuffix("/mcp")) if MODE.isdigit() else None
        if document is None:
            return self.send_error(405)
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_DELETE(self):
        self.send_error(405)

    def log_message(self, *_):
        pass


if "--http" in sys.argv:
    say = lambda message: None
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
else:
    for line in iter(sys.stdin.readline, ""):
        reply = receive(json.loads(line))
        if reply:
            say(reply)
