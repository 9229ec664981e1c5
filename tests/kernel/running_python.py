"""Runs a plan over the rows of several keys as `running.run_compiled` does, on the reference step in batches."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
from tests.kernel.running import Found, Listed, Row, Visit, listed_of, negated_of, no_matches_of

from cepheid.compile.stages.compiled import compile_plan
from cepheid.errors import SkipError
from cepheid.events.batch import MASK, ROW_PREFIX, TIME, VALUE_PREFIX, Batch
from cepheid.events.time import TIME_TYPE
from cepheid.kernel.arrays import FOREVER, NO_TIME, Visits
from cepheid.kernel.failures import ConditionFailed
from cepheid.kernel.stages.emitted import Emitted
from cepheid.kernel.stages.layout import NEGATED, TIMED_OUT
from cepheid.kernel.stages.python_kernel import PythonKernel
from cepheid.plan.stages.plan import Plan


def run_python(
    plan: Plan,
    keys: Sequence[Sequence[Row]],
    batches: Sequence[Sequence[Visit]] = (),
    until: int | None = None,
    withheld: list[int] | None = None,
    *,
    listed: list[Listed] | None = None,
    only_marked: bool = False,
) -> tuple[Found, tuple[int, int]] | str:
    """The matches and timeouts found, and the numbers dropped. Between batches, the matcher's state is stored in arrays
    and restored. With `only_marked`, only events with the bit `may_start` start partial matches.
    """
    compiled = compile_plan(plan)
    made = [PythonKernel(compiled)]
    made[0].bounds.may_start = compiled.may_start if only_marked else None
    rows = [row for key in keys for row in key]
    first_of = np.cumsum([0, *map(len, keys)]).tolist()
    done = [0] * len(keys)
    found = [Found([], set()) for _ in keys]
    held: list[int] = []
    try:
        for number in range(len(batches) + 1):
            last = number == len(batches)
            new: list[int] = []
            entries = []
            for visit in [Visit(key, len(rows)) for key in range(len(keys))] if last else batches[number]:
                begin, stop = done[visit.key], min(done[visit.key] + visit.rows, len(keys[visit.key]))
                new += range(first_of[visit.key] + begin, first_of[visit.key] + stop)
                done[visit.key] = stop
                next_time = keys[visit.key][stop][0] if visit.time_advances and stop < len(keys[visit.key]) else NO_TIME
                end_time = FOREVER if until is None else until
                entries.append((visit.key, len(held) + len(new), end_time if last else next_time, last))
            emitted = made[-1].run(rows_batch(plan, rows, new), _visits(entries))
            places = [*held, *new]
            _collect(emitted, places, first_of, found)
            if listed is not None:
                listed.append(listed_of(made[-1].listed(np.zeros(0, np.int64), NO_TIME, 1000), places))
            held = [places[i] for i in made[-1].hold()]
            _check_counts(made[-1], held)
            made.append(PythonKernel(compiled))
            made[-1].bounds.may_start = made[-2].bounds.may_start
            made[-1].restore(made[-2].state(), rows_batch(plan, rows, held))
            if withheld is not None:
                withheld.append(made[-1].withheld)
    except (ConditionFailed, SkipError):
        return "failed"
    matches = [match for part in found for match in part.matches]
    timeouts = {timeout for part in found for timeout in part.timeouts}
    negated = negated_of(made[-1].negated)
    return Found(matches, timeouts, negated, no_matches_of(found)), made[-1].dropped


def rows_batch(plan: Plan, rows: Sequence[Row], positions: Sequence[int]) -> Batch:
    chosen = [rows[position] for position in positions]
    columns = {
        TIME: pa.array([time for time, _, _ in chosen], pa.int64()).cast(TIME_TYPE),
        MASK: pa.array([mask for _, mask, _ in chosen], pa.int64()),
        f"{ROW_PREFIX}position": pa.array(positions, pa.int64()),
    }
    for i, lifted in enumerate(plan.values):
        values = [row[2][i] for row in chosen]
        if pa.types.is_decimal(lifted.type):
            values = [None if v is None else Decimal(v).scaleb(-lifted.type.scale) for v in values]  # type: ignore[arg-type]
        columns[f"{VALUE_PREFIX}{i}"] = pa.array(values, lifted.type)
    return Batch(pa.RecordBatch.from_pydict(columns))


def _visits(entries: Sequence[tuple[int, int, int, bool]]) -> Visits:
    key, end, until, closes = zip(*entries, strict=True) if entries else ((), (), (), ())
    return Visits(
        np.array(key, np.int32), np.array(end, np.int64), np.array(until, np.int64), np.array(closes, np.bool_)
    )


def _collect(emitted: Emitted, places: Sequence[int], first_of: Sequence[int], found: Sequence[Found]) -> None:
    for (begin, end), time, outcome in zip(
        pairwise([0, *emitted.end.tolist()]), emitted.detected_at.tolist(), emitted.outcome.tolist(), strict=True
    ):
        taken = tuple((int(emitted.stage[i]), places[emitted.event[i]]) for i in range(begin, end))
        part = found[int(np.searchsorted(first_of, taken[0][1], side="right")) - 1]
        if outcome >= NEGATED:
            part.no_matches[taken, outcome - NEGATED, time] += 1
        elif outcome == TIMED_OUT:
            part.timeouts.add((taken, time))
        else:
            part.matches.append((taken, None if time == NO_TIME else time))


def _check_counts(matcher: PythonKernel, held: Sequence[int]) -> None:
    """Some key is open exactly if events are held, and only open keys have partial matches or deadlines."""
    assert (len(matcher.open_keys) == 0) == (not held)
    assert not matcher.open_partial_matches(NO_TIME) or held
    assert set(matcher.due(FOREVER - 1).tolist()) <= set(matcher.open_keys.tolist())
