"""A delivery to one subscriber: one attempt after the other, in the order of the outbox."""

from __future__ import annotations

import random
import time
from collections import deque
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple, Protocol

from cepheid.hosts.durable.routing.outlet import Read
from cepheid.hosts.durable.routing.sender import Sender, Undelivered
from cepheid.hosts.durable.routing.subscription import DeadLetter, Letter, Subscription

_AT_ONCE = 500
"""The most rows of the outbox that wait in memory."""
_LONGEST = 60.0
"""Seconds: no pause is longer."""
_BUSY = 0.25
"""Seconds until the outbox is read again after that has failed."""


class Letters(Protocol):
    """Where letters come from."""

    def read(self, after: int, through: int, most: int) -> Read:
        """At most so many of the letters after the number `after`, up to the number `through`."""


class Progress(NamedTuple):
    """What a line has done that is not stored yet."""

    through: int
    """The number of the last row of the outbox that was handled."""
    dead: tuple[DeadLetter, ...]
    sent_again: tuple[Letter, ...]
    """Dead letters that have been delivered after all."""
    problem: str | None
    is_failing: bool


@dataclass
class _Queue:
    """Letters that wait, and how often the first of them was tried."""

    letters: deque[Letter] = field(default_factory=deque)
    attempts: int = 0
    due: float = 0.0
    """No attempt is made before this time of the clock."""

    def taken(self, count: int) -> list[Letter]:
        self.attempts, self.due = 0, 0.0
        return [self.letters.popleft() for _ in range(count)]


class Line:
    """Sends the letters of one subscription. One thread calls `step`; another one reads what was done.

    Dead letters that are sent again have a queue of their own: while one of them waits for its next attempt, the
    others go on.
    """

    def __init__(self, given: Subscription, outlet: Letters, sender: Sender) -> None:
        self._given = given
        self._outlet = outlet
        self._sender = sender
        self._lock = Lock()
        self._queue, self._again = _Queue(), _Queue()
        self._read = given.delivered
        self._sent = given.delivered
        self._dead: list[DeadLetter] = []
        self._sent_again: list[Letter] = []
        self._problem = given.problem

    def reach(self, sent: int) -> None:
        """There are rows up to the number `sent`."""
        with self._lock:
            self._sent = max(self._sent, sent)

    def read_by(self, outlet: Letters) -> None:
        """From now on this one reads the outbox: the columns have changed."""
        self._outlet = outlet

    def send_again(self, letters: list[Letter]) -> None:
        """Sends dead letters again, except for those whose sending is going on, or has ended and is not stored yet."""
        with self._lock:
            known = {letter.number for letter in (*self._again.letters, *self._sent_again)}
            known |= {one.letter.number for one in self._dead}
            self._again.letters += [letter for letter in letters if letter.number not in known]

    @property
    def is_done(self) -> bool:
        """Whether everything was delivered or given up."""
        with self._lock:
            return self._read == self._sent and not self._queue.letters and not self._again.letters

    @property
    def progress(self) -> Progress:
        with self._lock:
            first = self._queue.letters[0].number if self._queue.letters else self._read + 1
            is_failing = bool(self._queue.attempts or self._again.attempts)
            return Progress(first - 1, (*self._dead,), (*self._sent_again,), self._problem, is_failing)

    def stored(self, progress: Progress) -> None:
        """The progress is stored by now."""
        with self._lock:
            del self._dead[: len(progress.dead)], self._sent_again[: len(progress.sent_again)]

    def step(self) -> float | None:
        """Makes an attempt if one is due. Returns in how many seconds the next one is due, or None if nothing is left
        to do.
        """
        self._fill()
        now = time.monotonic()
        waiting = [queue for queue in (self._again, self._queue) if queue.letters]
        queue = next((queue for queue in waiting if queue.due <= now), None)
        if queue is None:
            return min((queue.due - now for queue in waiting), default=None)
        letters = [queue.letters[i] for i in range(min(len(queue.letters), self._sender.at_once))]
        if queue is self._again:
            letters = letters[:1]
        try:
            self._sender.send(letters)
        except Undelivered as error:
            self._failed(queue, error)
        except Exception as error:  # noqa: BLE001 - whatever fails here concerns this subscriber alone
            self._failed(queue, Undelivered(f"{type(error).__name__}: {error}"))
        else:
            with self._lock:
                self._delivered(queue, len(letters))
        return 0.0

    def _fill(self) -> None:
        """Reads further letters if all that were read are delivered."""
        if self._queue.letters or self._read == self._sent:
            return
        try:
            read = self._outlet.read(self._read, self._sent, _AT_ONCE)
        except Exception as error:  # noqa: BLE001 - as above; that the store fails, the host reports, too
            with self._lock:
                self._problem = f"the outbox cannot be read: {error}"
            time.sleep(_BUSY)
            return
        with self._lock:
            self._read = read.through
            self._queue.letters += read.letters
            self._dead += read.failed

    def _delivered(self, queue: _Queue, count: int) -> None:
        letters = queue.taken(count)
        if queue is self._again:
            self._sent_again += letters

    def _failed(self, queue: _Queue, error: Undelivered) -> None:
        with self._lock:
            if error.done:
                self._delivered(queue, error.done)
            self._problem = error.problem
            queue.attempts += 1
            if error.is_refused or (self._sender.gives_up and queue.attempts >= self._given.attempts):
                attempts = queue.attempts
                (letter,) = queue.taken(1)
                self._dead.append(DeadLetter(letter, letter.attempts + attempts, error.problem))
                return
            pause = min(_LONGEST, self._given.pause / 1e6 * 2 ** min(queue.attempts - 1, 30))
            # Between half and all of the pause, so that many who wait for one server do not come at the same moment.
            queue.due = time.monotonic() + pause * random.uniform(0.5, 1.0)  # noqa: S311 - not a secret

    def close(self) -> None:
        self._sender.close()
