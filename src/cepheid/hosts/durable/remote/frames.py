"""The protocol of a host's Unix socket, version 1.

Everything is sent in frames: four bytes with the length of the content, big endian, then the content. A client sends
requests, one after the other, and reads the answer to each. A request is a frame with a JSON object:

    {"version": 1, "request": "sql", "query": "SELECT …"}
    {"version": 1, "request": "input", "name": …, and the arguments of Host.input}
    {"version": 1, "request": "deploy", "pattern": document, and the arguments of Host.deploy}
    {"version": 1, "request": "retire", "name": …, "how": "drain" or "drop"}
    {"version": 1, "request": "advance_time", "time": …, "input": …}
    {"version": 1, "request": "backup", "path": …}
    {"version": 1, "request": "subscribe", "name": …, "to": text, and the arguments of Host.subscribe}
    {"version": 1, "request": "unsubscribe", "name": …}
    {"version": 1, "request": "resend", "name": …, "numbers": […]}
    {"version": 1, "request": "inputs"}
    {"version": 1, "request": "feed", "events": …, "input": …, "position": …}

Missing arguments have their defaults. `messages` has the JSON form of those that are not JSON values themselves. The
answer is a frame with a JSON object, {"ok": true, "result": …}, or for an error

    {"ok": false, "error": class, "message": …, "problems": […]}

with the name of the error's class in `cepheid.errors`. After the answer to "sql", its result follows as an Arrow IPC
stream, in frames of at most CHUNK bytes; an empty frame ends it.

A host closes a connection that sends a frame above MOST_REQUEST or anything else that it cannot read, and one that
sends or takes nothing for PATIENCE seconds.

Whoever may connect may do what the host may do. That is the user who runs the host, and root: the socket has mode 0600,
in a folder with mode 0700. So "backup" lets the host write its copy to any path; the path must be absolute, as the two
processes may be in different folders, and whatever is there already is left as it is.
"""

from __future__ import annotations

import json
import socket
from struct import Struct
from typing import Any

VERSION = 1
MOST_REQUEST = 16 << 20
"""Bytes."""
CHUNK = 1 << 20
"""Bytes."""
PATIENCE = 60.0
"""Seconds."""

_LENGTH = Struct(">I")


class ProtocolError(Exception):
    """The other side has sent something that is not of this protocol."""


def send(connection: socket.socket, content: bytes | memoryview) -> None:
    """Sends one frame."""
    connection.sendall(_LENGTH.pack(len(content)))
    connection.sendall(content)


def receive(connection: socket.socket, most: int) -> bytes | None:
    """The content of the next frame; None if the other side has closed the connection before it.

    Raises:
        ProtocolError: the frame has more than `most` bytes, or ends early.
    """
    head = _exactly(connection, _LENGTH.size)
    if not head:
        return None
    if len(head) < _LENGTH.size:
        raise ProtocolError("a frame ends within its length")
    (length,) = _LENGTH.unpack(head)
    if length > most:
        raise ProtocolError(f"a frame has {length:,} bytes, and at most {most:,} are allowed")
    content = _exactly(connection, length)
    if len(content) < length:
        raise ProtocolError("a frame ends early")
    return content


def send_json(connection: socket.socket, value: dict[str, Any]) -> None:
    send(connection, json.dumps(value).encode())


def receive_json(connection: socket.socket, most: int) -> dict[str, Any] | None:
    """The next frame as a JSON object; None if the other side has closed the connection before it.

    Raises:
        ProtocolError: the frame is not a JSON object.
    """
    content = receive(connection, most)
    if content is None:
        return None
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a frame is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ProtocolError("a frame is not a JSON object")
    return value


def _exactly(connection: socket.socket, length: int) -> bytes:
    """The next bytes; fewer if the other side closes the connection."""
    content = bytearray()
    while len(content) < length and (part := connection.recv(min(length - len(content), CHUNK))):
        content += part
    return bytes(content)
