"""What every plan is made of: lifted columns, and measures over a match."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import TypeAlias

import pyarrow as pa

from cepheid.lang.expression import Call, Literal, Name
from cepheid.plan.conditions.script import Aggregate, Script, StageValue

OutputName: TypeAlias = OneOf["matches", "timeouts", "late"]
"""What a detection can give."""


@dataclass(frozen=True)
class Lifted:
    """A column that the host's SQL engine computes for every event, from that event alone.

    `sql` is the user's own text with stage qualifiers taken off (what Spark evaluates); `expression` the same as a tree
    over event columns (what other engines translate).
    Around the user's text there may be a cast of FLOAT to DOUBLE, a try_cast or IS NULL. Spans in `expression` are
    of the text that was written, so they do not fit `sql`.
    """

    sql: str
    expression: Literal | Name | Call
    type: pa.DataType
    written: str = field(default="", compare=False)
    """What can fail of it, as the user wrote it and where, for messages."""


@dataclass(frozen=True)
class PlannedCondition:
    """An event is taken if bit `bit` of its mask is set and `script` is true; None where one of them is not asked."""

    bit: int | None
    script: Script | None


Slot: TypeAlias = StageValue | Aggregate
"""What a measure needs of a match: one value out of a stage's events, or a fold over them."""


@dataclass(frozen=True)
class Measure:
    """A flat output column: a scalar expression over slots, evaluated once a match by the host's SQL engine.

    In `sql` and `expression` the slots are the columns `slots` names.
    """

    name: str
    text: str
    """As it was written, for messages."""
    sql: str
    expression: Literal | Name | Call
    slots: dict[str, Slot]
    type: pa.DataType
