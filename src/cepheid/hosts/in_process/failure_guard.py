"""A matcher that has failed half-way is of no use until it is restored, and says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cepheid.errors import MatcherFailed


class HalfWay:
    """What hosts of live matchers share."""

    _failure: str | None = None

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Around what changes the state: once that has failed half-way, nothing that comes after it would be right."""
        self._check()
        try:
            yield
        except BaseException as error:
            self._failure = f"{type(error).__name__}: {error}"
            raise

    def _check(self) -> None:
        if self._failure is not None:
            advice = "Restore its last snapshot, or make another one"
            raise MatcherFailed(f"this matcher has failed half-way before, with {self._failure}\n{advice}")
