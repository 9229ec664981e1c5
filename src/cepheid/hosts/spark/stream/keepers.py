"""The keeper of a shard: the one Python worker of a Spark executor that has the shard's matcher.

Spark calls a shard in any idle worker of an executor. A worker without the matcher asks the others for it: the keeper
goes on at once, and the worker that asked stores what comes of it. Without keepers each worker has a matcher of its own
for each shard, and first replays what the others have processed. That takes as long as matching, and to read it from
Spark's state takes as long again.

Workers talk through Linux sockets without files, which only processes of the same user may use. Elsewhere, and if no
worker has the matcher, it is restored from the state.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Generic, TypeVar
from uuid import uuid4

from cepheid.hosts.shards.store import Head

Call = TypeVar("Call")
Answer = TypeVar("Answer")
Place = tuple[str, int]
"""A query, and the shard's number in it."""
Find = Callable[[Place, Head], Callable[[Call], Answer | None] | None]
"""Finds the shard's matcher if it is here and has reached this head. Returns what calls it; a call that fails returns
None.
"""

_HAS_SOCKETS_WITHOUT_FILES = hasattr(socket, "SO_PEERCRED")


class Keepers(Generic[Call, Answer]):
    """The workers of this executor, for one of them."""

    def __init__(self, find: Find[Call, Answer], folder: Callable[[], Path]) -> None:
        """`find` is for what other workers ask of this one. `folder` is where the names of all workers are."""
        self._find, self._folder = find, folder
        self._name = ""
        """This worker's; none before it is open, as workers are copies of one process."""
        self._connections: dict[str, Connection] = {}
        self._last: dict[Place, str] = {}
        """The worker that has answered for a shard."""

    def open(self) -> None:
        """Lets the other workers ask this one from now on. Where that is not possible, no one asks."""
        if self._name or not _HAS_SOCKETS_WITHOUT_FILES:
            return
        self._name = f"cepheid-{uuid4().hex}"
        with suppress(OSError), ExitStack() as opened:
            self._folder().mkdir(exist_ok=True)
            door = opened.enter_context(socket.socket(socket.AF_UNIX))
            door.bind(_address(self._name))
            door.listen()
            (self._folder() / self._name).touch()
            opened.pop_all()
            Thread(target=self._serve, args=(door,), daemon=True).start()

    def ask(self, place: Place, head: Head, call: Call) -> Answer | None:
        """The keeper's answer; None if no other worker has the shard's matcher at this head, or if the call failed: it
        fails again, and is reported, where the matcher is restored.
        """
        for name in self._others(place):
            try:
                connection = self._connection(name)
                connection.send((place, head))
                if connection.recv():
                    self._last[place] = name
                    connection.send(call)
                    answer: Answer | None = connection.recv()
                    return answer
            except (OSError, EOFError):  # that worker has ended
                self._forget(name)
        return None

    def _others(self, place: Place) -> Iterator[str]:
        """The other workers, first the one that has answered for the shard before."""
        last = self._last.pop(place, None)
        if last is not None:
            yield last
        with suppress(OSError):  # there is no folder
            names = sorted(worker.name for worker in self._folder().iterdir())
            yield from (name for name in names if name not in (last, self._name))

    def _connection(self, name: str) -> Connection:
        if name not in self._connections:
            other = socket.socket(socket.AF_UNIX)
            other.connect(_address(name))
            self._connections[name] = _checked(other)
        return self._connections[name]

    def _forget(self, name: str) -> None:
        if (connection := self._connections.pop(name, None)) is not None:
            connection.close()
        (self._folder() / name).unlink(missing_ok=True)

    def _serve(self, door: socket.socket) -> None:
        while True:
            other, _ = door.accept()
            with suppress(OSError):
                Thread(target=self._answer, args=(_checked(other),), daemon=True).start()

    def _answer(self, connection: Connection) -> None:
        with connection, suppress(OSError, EOFError):
            while True:
                call = self._find(*connection.recv())
                connection.send(call is not None)
                if call is not None:
                    connection.send(call(connection.recv()))


def _address(name: str) -> str:
    """The zero makes it a name without a file."""
    return f"\0{name}"


def _checked(other: socket.socket) -> Connection:
    """The connection, through which Python objects go.

    Raises:
        PermissionError: the other process is another user's.
    """
    _, user, _ = struct.unpack("3i", other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    if user != os.getuid():
        other.close()
        raise PermissionError(f"a process of user {user} has a worker's name")
    return Connection(other.detach())
