"""A matcher that has failed half-way refuses calls until it is restored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cepheid.errors import MatcherFailed, PatternError, SchemaError


class FailureGuard:
    """The base of hosts of live matchers: it refuses calls after a failure half-way."""

    _failure: str | None = None

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """For calls that change the state: after one has failed half-way, no later result would be right."""
        self._check()
        try:
            yield
        except (PatternError, SchemaError):
            raise  # the call was refused before anything changed
        except BaseException as error:
            self._failure = f"{type(error).__name__}: {error}"
            raise

    def _check(self) -> None:
        if self._failure is not None:
            advice = "Restore its last snapshot, or make another one"
            raise MatcherFailed(f"this matcher failed half-way in an earlier call, with {self._failure}\n{advice}")
