"""A real HTTP server on loopback that answers as it is told."""

from __future__ import annotations

import http.server
import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple


class Received(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def row(self) -> dict[str, Any]:
        row: dict[str, Any] = json.loads(self.body)
        return row


class Receiver:
    """What was received, in its order; and `answer`, which says how to answer each request: a status and headers."""

    def __init__(self, port: int) -> None:
        self.origin = f"http://127.0.0.1:{port}"
        self.received: list[Received] = []
        self.answer: Callable[[Received], tuple[int, dict[str, str]]] = lambda _: (204, {})
        self.hangs = False
        self.goes_on = Event()

    @property
    def ids(self) -> list[int]:
        """The measure `id` of each row."""
        return [one.row["id"] for one in self.received]


@contextmanager
def running_receiver(certificate: Path | None = None) -> Iterator[Receiver]:
    """A server that runs within the block; with TLS, if a folder has a certificate and its key."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            one = Received(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            receiver.received.append(one)
            if receiver.hangs:
                receiver.goes_on.wait(60)
                return
            status, headers = receiver.answer(one)
            self.send_response(status)
            for name, value in {"content-length": "0", **headers}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_error(self, *_: object) -> None:
            pass

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate / "certificate", certificate / "key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    receiver = Receiver(server.server_port)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.goes_on.set()
        server.shutdown()
        server.server_close()
        thread.join()
