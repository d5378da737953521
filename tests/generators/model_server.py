"""A real HTTP server on loopback that speaks the chat-completions protocol, streaming included, and answers from a script. No model."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

KEY = "sk-loopback-0123456789-secret"


class Said(NamedTuple):
    """One scripted answer. `status` other than 200 is an error with `headers`; `cut` ends the connection without a finish_reason;
    `silent_s` waits before the first byte, `drip_s` between words."""

    text: str = ""
    finish: str = "stop"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    usage: dict[str, Any] | None = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}  # noqa: RUF012
    cut: bool = False
    silent_s: float = 0.0
    drip_s: float = 0.0
    refuses: str = ""


class ModelServer(ThreadingHTTPServer):
    """Requests are kept as they came; the last answer of the script is given again once it is used up."""

    daemon_threads = True

    def __init__(self, script: list[Said]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script, self.requests, self.keys = script, list[dict[str, Any]](), list[str]()
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """Base URL for a client."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def next(self, asked: dict[str, Any], key: str) -> Said:
        """The answer to this request."""
        with self.lock:
            self.requests.append(asked)
            self.keys.append(key)
            return self.script[min(len(self.requests), len(self.script)) - 1]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, ModelServer)
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = server.next(asked, self.headers.get("Authorization", ""))
        time.sleep(said.silent_s)
        if said.refuses and said.refuses in asked:
            error = f"Unsupported parameter: '{said.refuses}'. Use 'max_completion_tokens' instead."
            return self._whole(400, {"error": {"message": error}}, ())
        if self.path != "/v1/chat/completions":
            return self._whole(404, {"error": {"message": f"no {self.path}"}}, ())
        if said.status != 200:
            text = said.text or f"no, and your key is {self.headers.get('Authorization')}"
            return self._whole(said.status, {"error": {"message": text}}, said.headers)
        with suppress(BrokenPipeError, ConnectionResetError):  # the client has gone
            self._stream(said) if asked.get("stream") else self._whole(200, _completion(said), ())
        return None

    def _whole(self, status: int, content: dict[str, Any], headers: tuple[tuple[str, str], ...]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        for name, value in (*headers, ("Content-Type", "application/json"), ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, said: Said) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        pieces = [said.text[i : i + 7] for i in range(0, len(said.text), 7)]
        for piece in pieces:
            time.sleep(said.drip_s)
            self._event({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
        if said.cut:
            return
        self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": said.finish}]})
        if said.usage is not None:
            self._event({"choices": [], "usage": said.usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, content: dict[str, Any]) -> None:
        whole = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "loopback", **content}
        self.wfile.write(b"data: " + json.dumps(whole).encode() + b"\n\n")
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


def _completion(said: Said) -> dict[str, Any]:
    message = {"role": "assistant", "content": said.text}
    choice = {"index": 0, "message": message, "finish_reason": said.finish}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "loopback", "choices": [choice]}


@contextmanager
def serving(*script: Said) -> Iterator[ModelServer]:
    """A server that answers by the script while the block runs."""
    server = ModelServer(list(script))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
