"""The keeper of a shard: the one Python worker of a Spark executor that has the shard's matcher.

Spark calls a shard in any idle worker of an executor. A worker without the matcher asks the others: the keeper does the
call, and the worker that asked stores the result. Without keepers each worker has a matcher of its own
for each shard, and first replays what the others have processed. That takes as long as matching, and to read it from
Spark's state takes as long again.

Workers talk through Linux sockets without files, which only processes of the same user may use. Elsewhere, and if no
worker has the matcher, it is restored from the state. So it is if the keeper's process is stopped. A keeper that goes
on later finishes the call for no one: only the worker that Spark has called stores and returns anything, and the
keeper's matcher is used again only if it has reached the state that is stored then.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Generic, TypeVar
from uuid import uuid4

from cepheid.hosts.shards.store import Head

Call = TypeVar("Call")
Answer = TypeVar("Answer")
Place = tuple[str, int]
"""A query, and the shard's number in it."""
Do = Callable[[Place, Head, Call], Answer | None]
"""Does a call with the shard's matcher; None if it is not here, has not reached this head, or cannot do it now."""

_PAUSE = 0.1
"""Seconds before a worker that could not be asked, as too many files are open, can be asked again."""

_PATIENCE = 1.0
"""Seconds between two looks at whether a keeper that has not answered is stopped. An answer may take any time."""
_STUCK = 10
"""Seconds after which a message that was sent only in part is given up: the keeper was stopped meanwhile."""

_HAS_SOCKETS_WITHOUT_FILES = hasattr(socket, "SO_PEERCRED")


class Keepers(Generic[Call, Answer]):
    """One worker's connections to the other workers of its executor."""

    def __init__(self, do: Do[Call, Answer], folder: Callable[[], Path]) -> None:
        """`do` is for the calls that other workers ask for. `folder` is where the names of all workers are."""
        self._do, self._folder = do, folder
        self._name = ""
        """This worker's; none before it is open, as workers are copies of one process."""
        self._connections: dict[str, Connection] = {}
        self._last = ""
        """The worker that has answered last: often it also has the next shard of the task."""

    def open(self) -> None:
        """Lets the other workers ask this one from now on. Where that is not possible, no one asks."""
        if self._name or not _HAS_SOCKETS_WITHOUT_FILES:
            return
        self._name = f"cepheid-{os.getpid()}-{uuid4().hex}"
        with suppress(OSError), ExitStack() as opened:
            self._folder().mkdir(exist_ok=True)
            door = opened.enter_context(socket.socket(socket.AF_UNIX))
            door.bind(_address(self._name))
            door.listen()
            (self._folder() / self._name).touch()
            opened.pop_all()
            Thread(target=self._serve, args=(door,), daemon=True).start()

    def ask(self, place: Place, head: Head, call: Call) -> Answer | None:
        """What another worker returns for the call; None if none can do it."""
        for name in self._others():
            try:
                answer = self._answer_of(name, (place, head, call))
            except (OSError, EOFError):
                continue
            if answer is not None:
                self._last = name
                return answer
        return None

    def _answer_of(self, name: str, asked: tuple[Place, Head, Call]) -> Answer | None:
        _check_runs(name)
        connection = self._connections.pop(name, None) or self._connected(name)
        with ExitStack() as failed:
            failed.enter_context(connection)  # an answer that was not read would be taken for the next one
            connection.send(asked)
            while not connection.poll(_PATIENCE):
                _check_runs(name)
            answer: Answer | None = connection.recv()
            failed.pop_all()
        self._connections[name] = connection
        return answer

    def _others(self) -> list[str]:
        """The other workers, first the one that has answered last."""
        try:
            names = {worker.name for worker in self._folder().iterdir()}
        except OSError:  # there is no folder
            return []
        return sorted(names - {self._name}, key=lambda name: (name != self._last, name))

    def _connected(self, name: str) -> Connection:
        with socket.socket(socket.AF_UNIX) as other:
            for limit in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
                other.setsockopt(socket.SOL_SOCKET, limit, struct.pack("ll", _STUCK, 0))
            try:
                other.connect(_address(name))
            except ConnectionRefusedError:  # that worker has ended
                (self._folder() / name).unlink(missing_ok=True)
                raise
            return _checked(other)

    def _serve(self, door: socket.socket) -> None:
        while True:
            try:
                with door.accept()[0] as other:
                    Thread(target=self._answer, args=(_checked(other),), daemon=True).start()
            except OSError:
                sleep(_PAUSE)

    def _answer(self, connection: Connection) -> None:
        with connection, suppress(OSError, EOFError):
            while True:
                connection.send(self._do(*connection.recv()))


def _check_runs(name: str) -> None:
    """
    Raises:
        TimeoutError: the worker's process is stopped, as by SIGSTOP.
    """
    try:
        about = Path(f"/proc/{name.split('-')[1]}/stat").read_text("utf-8", "replace")
    except OSError:  # it has ended, or cannot be seen
        return
    if about.rpartition(") ")[2].startswith("T"):
        raise TimeoutError(f"{name} is stopped")


def _address(name: str) -> str:
    """The zero makes it a name without a file."""
    return f"\0{name}"


def _checked(other: socket.socket) -> Connection:
    """The connection, through which Python objects go. The socket itself is then closed.

    Raises:
        PermissionError: the other process is another user's.
    """
    _, user, _ = struct.unpack("3i", other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    if user != os.getuid():
        raise PermissionError(f"a process of user {user} has a worker's name")
    return Connection(other.detach())
