"""Which value a condition could not cast, for the error's message. Kernels only report the event at which it fails."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.batch import VALUE_PREFIX, Batch
from cepheid.plan.conditions.script import CurrentValue, Operation, Operator, Script, StageValue
from cepheid.plan.stages.plan import Plan


def failed_cast(plan: Plan, script: Script | None, events: Batch) -> tuple[str, int] | None:
    """What cannot be cast, as written, and the position of the latest event of which it is so. The condition `script`
    failed on the last of the events; other events of its key may have been taken by the stage whose values it casts.
    None: it casts values of its own alone.
    """
    is_of_key = _is_of_last_key(events)
    for result, missing in _casts(script):
        cast, is_missing = (events.column(f"{VALUE_PREFIX}{one.column}") for one in (result, missing))
        fails = pc.and_(pc.and_(pc.is_null(cast), pc.invert(is_missing)), is_of_key)
        places = np.flatnonzero(pc.fill_null(fails, fill_value=False).to_numpy(zero_copy_only=False))
        if len(places) and (isinstance(result, StageValue) or places[-1] == len(events) - 1):
            return plan.values[result.column].written, int(places[-1])
    return None


def _is_of_last_key(events: Batch) -> pa.BooleanArray | pa.ChunkedArray:
    same = (pc.equal(column, column[-1]) for column in events.keys)
    return reduce(pc.and_, same, pa.array(np.ones(len(events), np.bool_)))


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
