"""What a delivery asks of a target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cepheid.hosts.durable.routing.subscription import Letter


class Undelivered(Exception):
    """The letters after the first `done` were not delivered, or nobody knows whether they were."""

    def __init__(self, problem: str, *, done: int = 0, is_refused: bool = False) -> None:
        """`is_refused` says that the target will never take the first of these letters."""
        super().__init__(problem)
        self.problem = problem
        self.done = done
        self.is_refused = is_refused


class Sender(Protocol):
    """Sends letters to one target."""

    at_once: int
    """The most letters of a call."""
    gives_up: bool
    """Whether a letter that was tried often enough becomes a dead letter. If not, only refused letters do."""

    def send(self, letters: Sequence[Letter]) -> None:
        """Delivers the letters in their order.

        Raises:
            Undelivered: some were not.
        """

    def close(self) -> None: ...
