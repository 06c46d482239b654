"""The server that plays the model: it answers from a script and records each request as it came."""

import dataclasses
import http.server
import threading

# How long a reply that never ends is kept open at most; a client that leaves ends it at once.
HANG_SECONDS = 30


@dataclasses.dataclass
class Reply:
    """An answer of the server."""

    body: bytes
    content_type: str = "text/event-stream"
    status: int = 200
    # Lines of further headers.
    headers: tuple = ()
    # `close` ends the reply in order, `cut` before all that was announced came, `hang` not at all.
    then: str = "close"

    def as_bytes(self):
        """Returns the whole reply as it goes over the wire."""
        length = {"close": len(self.body), "cut": len(self.body) + 1000}.get(self.then)
        lines = [
            f"HTTP/1.1 {self.status} Status",
            f"content-type: {self.content_type}",
            "connection: close",
        ]
        lines += [f"content-length: {length}"] if length is not None else []
        lines += self.headers
        return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + self.body


class Model:
    """A server on loopback that keeps its port while scripts come and go."""

    def __init__(self):
        self.lock = threading.Lock()
        self.play([], {})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_of(self))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def play(self, answers, pages):
        """Begins a script: the answers to questions in their order, and pages by path."""
        with self.lock:
            self.answers, self.pages, self.requests = list(answers), dict(pages), []

    def close(self):
        """Ends the server."""
        self.server.shutdown()
        self.server.server_close()

    def reply_to(self, method, path, head, body):
        """Records a request and returns the reply to it."""
        with self.lock:
            self.requests.append((head, body))
            if path in self.pages:
                page = self.pages[path]
                if isinstance(page, list):
                    # What it is now, and then, and at last.
                    return page.pop(0) if len(page) > 1 else page[0]
                return page(body) if callable(page) else page
            if method == "GET" or path == "/api/show":
                return Reply(b"{}", "application/json", 404)
            if not self.answers:
                # A status that is not tried again.
                return Reply(b'{"error":"the script has no more answers"}', "application/json", 400)
            return self.answers.pop(0)


def handler_of(model):
    """Returns the class that handles a connection to `model`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        """Handles one request."""

        protocol_version = "HTTP/1.1"

        def handle_request(self):
            """Answers a request as the script says."""
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            lines = [
                self.requestline,
                *(f"{name}: {value}" for name, value in self.headers.items()),
            ]
            reply = model.reply_to(self.command, self.path, lines, body)
            self.close_connection = True
            try:
                self.wfile.write(reply.as_bytes())
                if reply.then == "hang":
                    self.connection.settimeout(HANG_SECONDS)
                    self.rfile.read(1)
            except OSError:
                # The client left, as it does after Ctrl-C.
                pass

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = handle_request

        def log_message(self, *_):
            """Prints nothing."""

    return Handler
