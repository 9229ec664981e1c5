"""A delivery that runs: a line, and the thread that moves it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from threading import Event, Thread
from typing import Any, NamedTuple, TypeAlias

from cepheid.errors import SchemaError
from cepheid.hosts.durable.routing.line import Line
from cepheid.hosts.durable.routing.sender import Sender
from cepheid.hosts.durable.routing.senders.function import FunctionSender
from cepheid.hosts.durable.routing.senders.host import FedHost, HostSender
from cepheid.hosts.durable.routing.subscription import Letter, Subscription
from cepheid.hosts.durable.routing.targets import Target


class InputOf(NamedTuple):
    """An input of another host that the same program has open, as a target."""

    host: FedHost
    input: str


Given: TypeAlias = Callable[[Letter], Any] | InputOf
"""A target that the program itself gives."""
MakeSender: TypeAlias = Callable[[Subscription, Target], Sender]


class Running:
    """Moves a line in a thread of its own; or, if only the host's thread may use the target, in that one. The thread
    that moves the line also closes it, so a target is never closed during an attempt.
    """

    def __init__(self, line: Line, name: str, progressed: Event, *, has_thread: bool) -> None:
        """`progressed` is set after each step of the thread, and at its end."""
        self.line = line
        self.is_wanted = True
        """Whether what is delivered still concerns the subscription of this name."""
        self._progressed = progressed
        self._wake = Event()
        self._is_stopped = False
        self._ended = Event()
        self._thread = Thread(target=self._run, name=f"cepheid to {name}", daemon=True) if has_thread else None
        if self._thread is not None:
            self._thread.start()

    def reach(self, sent: int, is_over: Callable[[], bool]) -> bool:
        """There are rows up to the number `sent`. Returns whether nothing is left to do. Without a thread, the line is
        moved now, until `is_over`.
        """
        self.line.reach(sent)
        self._wake.set()
        while self._thread is None and not is_over() and self.line.step() == 0.0:
            pass
        return self.line.is_done

    def stop(self) -> None:
        """Ends it after the attempt that is being made, and closes the target."""
        self._is_stopped = True
        self._wake.set()
        if self._thread is None and not self.has_ended:
            self._close()

    def join(self, seconds: float) -> None:
        """Waits until it has ended, for at most so long."""
        self._ended.wait(max(0.0, seconds))

    @property
    def has_ended(self) -> bool:
        """Whether there will be no further attempt, and the target is closed."""
        return self._ended.is_set()

    def _run(self) -> None:
        try:
            while not self._is_stopped:
                wait = self.line.step()
                self._progressed.set()
                if wait != 0.0:
                    self._wake.wait(wait)
                    self._wake.clear()
        finally:
            self._close()

    def _close(self) -> None:
        try:
            self.line.close()
        finally:
            self._ended.set()
            self._progressed.set()


def sender_of(given: Subscription, target: Target, own: Given | None, make: MakeSender) -> Sender:
    """The sender to what the program has given, or else to the target.

    Raises:
        SchemaError: the target cannot be reached as the host was opened.
    """
    match own:
        case InputOf(host, name):
            return HostSender(lambda: nullcontext(host), name, given.name)
        case None if target.kind == "given":
            raise SchemaError("the program that has the host open has not given the function: subscribe again")
        case None:
            return make(given, target)
        case function:
            return FunctionSender(function)
