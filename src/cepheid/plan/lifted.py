"""What every plan is made of: lifted columns, and measures over a match."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import TypeAlias

import pyarrow as pa

from cepheid.lang.expression import Call, Literal, Name
from cepheid.plan.conditions.script import Aggregate, Script, StageValue

OutputName: TypeAlias = OneOf["matches", "timeouts", "no_match", "inconsistent", "late"]
"""The outputs that a detection can give."""

RowsPer: TypeAlias = OneOf["match", "event"]
"""What has a row of its own in the output: each match, or each event of each match."""


@dataclass(frozen=True)
class Lifted:
    """A column that the host's SQL engine computes for every event, from that event alone.

    `sql` is the user's own text without stage names; Spark evaluates it. `expression` is the same as a tree over event
    columns; other engines translate it. Around the user's text there may be a cast of FLOAT to DOUBLE, a try_cast or IS
    NULL. Spans in `expression` are those of the text that the user wrote, so they do not fit `sql`.
    """

    sql: str
    expression: Literal | Name | Call
    type: pa.DataType
    written: str = field(default="", compare=False)
    """The parts that can fail, as the user wrote them, each with its place; for messages."""


@dataclass(frozen=True)
class PlannedCondition:
    """An event is taken if bit `bit` of its mask is set and `script` is true; None: there is no such demand."""

    bit: int | None
    script: Script | None


Slot: TypeAlias = StageValue | Aggregate
"""An input of a measure: one value from a stage's events, or a fold over these events."""


@dataclass(frozen=True)
class Measure:
    """A flat output column: a scalar expression over slots, evaluated once per match by the host's SQL engine.

    In `sql` and `expression`, a slot is a column with its name in `slots`.
    """

    name: str
    text: str
    """The text as the user wrote it, for messages."""
    sql: str
    expression: Literal | Name | Call
    slots: dict[str, Slot]
    type: pa.DataType
    running: frozenset[str] = frozenset()
    """The slots that are over the events up to that of the row; others are over all events of the match. There are such
    slots only where each event has a row.
    """


def slots_of(measures: Iterable[Measure]) -> dict[str, Slot]:
    """The slots of all these measures, by name."""
    return {name: slot for measure in measures for name, slot in measure.slots.items()}
