"""A pattern of any kind, and which output is requested for its matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from cepheid.events.batch import COMPUTED, Schema
from cepheid.plan.lifted import OutputName, RowsPer
from cepheid.plan.limits import Limits

P = TypeVar("P")


class PatternRequest(NamedTuple, Generic[P]):
    """A pattern, its measures and its promoted columns."""

    pattern: P
    measures: Mapping[str, str] | None = None
    """None: the output has the events of a match as they are."""
    promoted: Mapping[str, str] | None = None
    """Columns of open partial matches, as SQL over the events taken so far. None where they are not stored as rows."""


class PlanOptions(NamedTuple):
    """The options for the output of all patterns."""

    named: bool = False
    """Whether the patterns were given by name. If so, errors and rows name their pattern."""
    columns: Sequence[str] | None = None
    """The event columns in the output; None: all."""
    outputs: tuple[OutputName, ...] | None = None
    """The requested outputs. None: matches alone, in columns of their own."""
    limits: Limits = Limits()
    rows_per: RowsPer = "match"
    numbered: bool = False
    """Whether rows of events have the events' numbers in place of their columns."""
    in_one_table: bool = False
    """Whether rows say which kind they are."""
    time_zone: str | None = None
    """The zone of local times; None: that of the engine."""

    def chosen(self, schema: Schema) -> tuple[str, ...]:
        """The event columns in the output."""
        if self.columns is not None:
            return tuple(self.columns)
        return tuple(name for name in schema.columns.names if not name.startswith(COMPUTED))
