"""The main module of a worker process: it does what its host asks, until the host closes the connection."""

from __future__ import annotations

import os
import pickle
import signal
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from queue import SimpleQueue
from threading import Thread
from typing import Any

import cepheid.errors
from cepheid.errors import LimitExceeded, WorkerFailed
from cepheid.hosts.durable.workers.patterns import Patterns
from cepheid.hosts.durable.workers.shared_events import SharedEvents
from cepheid.hosts.worker_memory import bound_memory, exceeded


def main(descriptor: int, memory: int | None = None) -> None:
    """Answers the requests that come through the socket with this descriptor, in their order. `memory`: the bytes that
    this process may allocate; None: as many as there are.
    """
    bound_memory(memory)
    # A terminal and service managers send these to all processes: the host decides when its workers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    connection = Connection(descriptor)
    requests: SimpleQueue[tuple[str, tuple[Any, ...], bool]] = SimpleQueue()
    Thread(target=_read, args=(connection, requests), daemon=True).start()
    patterns = Patterns()
    while True:
        request, given, is_answered = requests.get()
        do: Callable[..., Any] = getattr(patterns, request)
        if is_answered:
            connection.send(_answer(do, given, memory))
        else:
            do(*given)


def _read(connection: Connection, requests: SimpleQueue[tuple[str, tuple[Any, ...], bool]]) -> None:
    """Reads requests while others are answered: otherwise both ends might wait for the other one to read. When the
    host closes the connection, or dies, the process ends.
    """
    try:
        while True:
            request, given, is_answered = connection.recv()
            if request == "take":
                (content,) = given
                given = (SharedEvents(content, recv_handle(connection) if content is None else None),)
            requests.put((request, given, is_answered))
    except (EOFError, OSError):
        os._exit(0)
    except BaseException:  # noqa: BLE001 - the process ends
        traceback.print_exc()
        os._exit(1)


def _answer(do: Callable[..., Any], given: tuple[Any, ...], memory: int | None) -> tuple[bool, Any]:
    """Whether it failed, and the result or the error."""
    try:
        return False, do(*given)
    except MemoryError:
        return True, LimitExceeded(exceeded(memory))
    except Exception as error:  # noqa: BLE001 - it is raised in the host
        return True, _sent(error)


def _sent(error: Exception) -> Exception:
    """The error, if it can be pickled. One that users do not cause says where it comes from."""
    if type(error).__module__ != cepheid.errors.__name__:
        error.add_note(f"In a worker process:\n{''.join(traceback.format_exception(error))}")
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - its own
    except Exception:  # noqa: BLE001 - whatever a foreign class raises
        return WorkerFailed(f"a worker process failed: {type(error).__name__}: {error}")
    return error
