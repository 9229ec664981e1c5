"""What `why` returns: the funnel of the starts, their near misses, and the trace of a key."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cepheid.errors import SchemaError
from cepheid.lang.arguments import brief
from cepheid.lang.known_arguments import known_arguments
from cepheid.lang.pictures.html import text_html
from cepheid.lang.pictures.shown import Shown
from cepheid.output.funnel import Funnel
from cepheid.output.near_misses import NearMisses
from cepheid.output.trace import Trace


@dataclass(frozen=True)
class Why(Shown):
    """Why events did not match a pattern. Printed, it is a readable text; a notebook shows it, too. Each host computes
    near misses and traces in its own way.
    """

    funnel: Funnel
    """How many events were read and started a partial match, how far these came, and what became of each start."""

    def __str__(self) -> str:
        return str(self.funnel)

    def _repr_html_(self) -> str:
        return text_html(str(self))

    def to_dict(self) -> dict[str, Any]:
        """The funnel in values of JSON."""
        return self.funnel.to_dict()

    @property
    @abstractmethod
    def changes(self) -> NearMisses:
        """How many starts would match with each change of the pattern, and the nearest near misses. It is computed when
        it is first asked for. Printed, it is a readable text.

        Raises:
            SchemaError, LimitExceeded: as `near_misses`.
        """

    @property
    @abstractmethod
    def near_misses(self) -> Any:
        """The starts that do not match, and would match with one change of the pattern. It is a table of the events'
        kind, with a row for each such start and change, the nearest first.

        A change leaves out one condition, a NOT, an `until` or `begin_without`, makes a window or a gap up to ten times
        as long, lets other events lie between, or lets a loop take fewer or more events. Windows of the calendar are
        not changed; `changes.failed` says so.

        The columns are row_number (the start's row in the events; in pandas the index; not on Spark), the key,
        match_start, rank (the place among the changes of the start, from 1), reached (the last stage that is reached
        without the change), change, reason, at (the time of the event that needs the change), off_by (how far off it
        is: the difference between both sides of a comparison, the minutes by which a time is too long, or the number of
        events between) and lost (whether the skip strategy then drops the start).

        Raises:
            SchemaError: the key has the name of one of these columns.
            LimitExceeded: without its skip strategy the pattern has more partial matches or matches than is possible.
        """

    @known_arguments()
    def trace(self, key: Mapping[str, Any] | None = None) -> Trace:
        """What each event of one key did to each partial match, step by step.

        Args:
            key: The values of the key's columns, as in {"tailnum": "N228JB"}; None without a key.

        Raises:
            SchemaError: `key` does not name the key's columns, or no event has the values.
        """
        if key is not None and not isinstance(key, Mapping):
            raise SchemaError(
                f"trace: {brief(key)} is no key; give a value for each of its columns, as in trace({{'column': value}})"
            )
        return self._trace(key or {})

    @abstractmethod
    def _trace(self, key: Mapping[str, Any]) -> Trace:
        """The steps for the key, as `trace`."""
