"""Which value a condition could not cast, for the error's message. Kernels only report the event at which it fails."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.arrays import Ints
from cepheid.events.batch import VALUE_PREFIX, Batch
from cepheid.events.identity import canonical_bytes
from cepheid.plan.conditions.script import CurrentValue, Operation, Operator, Script, StageValue
from cepheid.plan.stages.plan import Plan
from cepheid.plan.used_columns import names_in


def failed_cast(plan: Plan, script: Script | None, events: Batch, at: int) -> tuple[str, int | None] | None:
    """The columns whose cast failed, and the position of the event that has the value; None where that is not certain.
    The condition `script` failed at position `at` of the events. A stage's value may be of any event of the key.
    """
    of_key = _of_key(events, at)
    found: set[tuple[str, int]] = set()
    for result, missing in _casts(script):
        cast, is_missing = (events.column(f"{VALUE_PREFIX}{one.column}") for one in (result, missing))
        fails = pc.and_(pc.and_(pc.is_null(cast), pc.invert(is_missing)), of_key)
        columns = ", ".join(dict.fromkeys(names_in(plan.values[missing.column].expression)))
        positions = _places(fails) if isinstance(result, StageValue) else np.intersect1d(_places(fails), at)
        found |= {(columns, int(position)) for position in positions}
    columns_found, positions_found = {columns for columns, _ in found}, {position for _, position in found}
    if len(columns_found) != 1:
        return None
    return columns_found.pop(), positions_found.pop() if len(positions_found) == 1 else None


def _places(flags: pa.BooleanArray | pa.ChunkedArray) -> Ints:
    return np.flatnonzero(pc.fill_null(flags, fill_value=False).to_numpy(zero_copy_only=False))


def _of_key(events: Batch, at: int) -> pa.BooleanArray | pa.ChunkedArray:
    """Whether each event has the key of the one at a position."""
    names = canonical_bytes(events.keys, len(events))  # also of a key that is a struct or NaN
    return pc.equal(names, names[at])


def _casts(script: Script | None) -> Iterator[tuple[CurrentValue | StageValue, CurrentValue | StageValue]]:
    """The columns of each checked cast: its result, and whether the value that is cast is NULL."""
    match script:
        case Operation(
            Operator.FAIL_IF,
            (
                Operation(Operator.AND, (_, Operation(Operator.NOT, (CurrentValue() | StageValue() as missing,)))),
                CurrentValue() | StageValue() as result,
            ),
        ):
            yield result, missing
        case Operation(operands=operands):
            for operand in operands:
                yield from _casts(operand)
