"""Answers requests on a host's socket."""

from __future__ import annotations

import socket
import traceback
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import BoundedSemaphore, Event, Thread
from typing import Any, NamedTuple

import pyarrow as pa

from cepheid.errors import StoreError
from cepheid.hosts.durable.remote.frames import (
    CHUNK,
    MOST_REQUEST,
    PATIENCE,
    ProtocolError,
    receive_json,
    send,
    send_json,
)
from cepheid.hosts.durable.remote.messages import (
    AnyHost,
    checked_request,
    failure_to_json,
    is_known,
    perform,
    read_arguments,
)
from cepheid.hosts.durable.remote.place import make_private

MOST_CLIENTS = 32
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0
"""Seconds without looking for clients after one could not be served."""


class _Change(NamedTuple):
    """A request that changes the host."""

    name: str
    arguments: dict[str, Any]
    done: Future[dict[str, Any]]


class HostServer:
    """Answers on a Unix socket, with a thread for each client. Queries run in these threads. What changes the host
    waits for `perform_changes`, so all changes happen in one thread, between two feeds.
    """

    def __init__(self, path: Path, host: AnyHost) -> None:
        """Listens at `path`. A socket that is there was left by a host that was killed, as this one has the store.

        Raises:
            StoreError: it cannot listen there.
        """
        self._path = path
        self._host = host
        self._changes: SimpleQueue[_Change | None] = SimpleQueue()
        self._slots = BoundedSemaphore(MOST_CLIENTS)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._listen()
        except BaseException:
            self._listener.close()
            raise
        self._is_closing = Event()
        self.failures = 0
        """How often a client could not be served, as the system has no more files, memory or threads for it."""
        Thread(target=self._accept, name="cepheid socket", daemon=True).start()

    def _listen(self) -> None:
        try:
            make_private(self._path.parent)
            self._path.unlink(missing_ok=True)
            self._listener.bind(str(self._path))
            self._path.chmod(0o600)
            self._listener.listen()
        except OSError as error:
            raise StoreError(f"the host cannot listen on the socket {self._path}: {error}") from error

    def perform_changes(self, wait: float = 0.0) -> None:
        """Performs the changes that clients have asked for. Without any, it waits for one for at most `wait` seconds,
        or until `wake` is called.
        """
        with suppress(Empty):
            change = self._changes.get(timeout=wait) if wait else self._changes.get_nowait()
            while change is not None:
                self._perform(change)
                change = self._changes.get_nowait()

    def wake(self) -> None:
        """Ends the waiting of `perform_changes`. May be called by a signal handler."""
        self._changes.put(None)

    def close(self) -> None:
        """Stops listening. Changes that wait are refused."""
        self._is_closing.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept
        self._listener.close()
        self._path.unlink(missing_ok=True)
        with suppress(Empty):
            while True:
                if (change := self._changes.get_nowait()) is not None:
                    change.done.set_exception(StoreError("the host has ended, and has changed nothing"))

    def _perform(self, change: _Change) -> None:
        try:
            result = perform(self._host, change.name, change.arguments)
        except Exception as error:  # noqa: BLE001 - the client gets it, and the host goes on
            change.done.set_exception(error)
        else:
            change.done.set_result(result)

    def _accept(self) -> None:
        pause = _SHORTEST_PAUSE
        while not self._is_closing.is_set():
            try:
                client, _ = self._listener.accept()
                self._begin(client)
            except ConnectionAbortedError:  # a client that was gone before it was accepted
                continue
            except (OSError, RuntimeError):  # the latter if there can be no more threads
                if not self._is_closing.wait(pause):  # the client may still wait, so the next call fails at once
                    self.failures += 1
                    pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                pause = _SHORTEST_PAUSE

    def _begin(self, client: socket.socket) -> None:
        """Serves a client in a thread of its own."""
        client.settimeout(PATIENCE)
        if not self._slots.acquire(blocking=False):
            _refuse(client)
            return
        try:
            Thread(target=self._serve, args=(client,), name="cepheid client", daemon=True).start()
        except BaseException:
            client.close()
            self._slots.release()
            raise

    def _serve(self, client: socket.socket) -> None:
        try:
            with client, suppress(OSError, ProtocolError):  # a client that breaks harms only itself
                while (request := receive_json(client, MOST_REQUEST)) is not None:
                    self._answer(client, request)
        finally:
            self._slots.release()

    def _answer(self, client: socket.socket, request: dict[str, Any]) -> None:
        try:
            name, arguments = checked_request(request)
            if name == "sql":
                stream = _stream(self._host.sql(**read_arguments(self._host, name, arguments)))
                result: dict[str, Any] = {}
            else:
                stream, result = None, self._changed(name, arguments)
        except Exception as error:  # noqa: BLE001 - the client gets it, and the host goes on
            if not is_known(error):
                traceback.print_exception(error)
            send_json(client, failure_to_json(error))
            return
        send_json(client, {"ok": True, "result": result})
        if stream is not None:
            for start in range(0, len(stream), CHUNK):
                send(client, stream[start : start + CHUNK])
            send(client, b"")

    def _changed(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if self._is_closing.is_set():
            raise StoreError("the host is ending, and has changed nothing")
        done: Future[dict[str, Any]] = Future()
        self._changes.put(_Change(name, arguments, done))
        return done.result()


def _refuse(client: socket.socket) -> None:
    with client, suppress(OSError):
        busy = StoreError(f"the host answers {MOST_CLIENTS} clients already: try again later")
        send_json(client, failure_to_json(busy))


def _stream(rows: pa.Table) -> memoryview:
    """The rows as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return memoryview(sink.getvalue())
