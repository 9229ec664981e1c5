"""Runs a plan over the rows of several keys: on the definition, and on the compiled kernel in batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cepheid.compile.automaton import build_automaton
from cepheid.compile.compiled import compile_plan
from cepheid.compile.script import encode
from cepheid.errors import ConditionError, SkipError
from cepheid.kernel.compiled import CompiledMatcher, ConditionFailed, Emitted
from cepheid.kernel.layout import FOREVER, NO_TIME, Events
from cepheid.kernel.reference import Event, ReferenceMatcher
from cepheid.plan.plan import Plan

Row = tuple[int, int, tuple[object, ...]]
Found = list[tuple[tuple[tuple[int, int], ...], int | None]]


def run_reference(plan: Plan, keys: Sequence[Sequence[Row]], until: int | None = None) -> Found | str:
    """Matches as ((stage, position), …) and detected_at; "failed" if a condition fails."""
    automaton = build_automaton(plan.pattern)
    found: Found = []
    position = 0
    try:
        for rows in keys:
            matcher = ReferenceMatcher(automaton, plan.conditions, plan.window, plan.skip)
            matches = []
            for time, mask, values in rows:
                matches += matcher.process(Event(position, time, mask, values))
                position += 1
            matches += matcher.finish() if until is None else matcher.advance_time(until)
            found += [(match.taken, match.detected_at) for match in matches]
    except (ConditionError, SkipError):
        return "failed"
    return found


def run_compiled(
    plan: Plan, keys: Sequence[Sequence[Row]], sizes: Sequence[int] = (), until: int | None = None, capacity: int = 64
) -> Found | str:
    """The same from the compiled kernel, the rows cut into batches of `sizes`."""
    compiled = compile_plan(plan)
    rows = [row for key in keys for row in key]
    starts = np.zeros(len(rows), np.bool_)
    starts[[s for s in np.cumsum([0, *map(len, keys)])[:-1] if s < len(rows)]] = True
    texts = sorted(
        {v for row in rows for v in row[2] if isinstance(v, str)} | set(compiled.string_constants.values()),
        key=str.encode,
    )
    for number, text in compiled.string_constants.items():
        compiled.tables.constants[number] = texts.index(text)
    matcher = CompiledMatcher(compiled.tables, FOREVER if until is None else until, capacity=capacity)
    held: list[int] = []
    found: Found = []
    ends = [min(e, len(rows)) for e in np.cumsum(sizes)] + [len(rows)]
    try:
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            positions = [*held, *range(start, end)]
            last = end == len(rows)
            emitted = matcher.run(_events(plan, rows, starts, positions, texts), finish=last and end is ends[-1])
            found += _found(emitted, positions)
            held = [positions[i] for i in matcher.hold()]
    except (ConditionFailed, SkipError):
        return "failed"
    return found


def _events(plan: Plan, rows: Sequence[Row], starts: np.ndarray, positions: list[int], texts: list[str]) -> Events:
    chosen = [rows[p] for p in positions]
    values = np.zeros((len(plan.values), len(chosen)), np.int64)
    missing = np.zeros(values.shape, np.bool_)
    for column, lifted in enumerate(plan.values):
        for i, (_, _, row) in enumerate(chosen):
            missing[column, i] = row[column] is None
            values[column, i] = 0 if row[column] is None else _code(row[column], lifted.type, texts)
    return Events(
        time=np.array([row[0] for row in chosen], np.int64),
        mask=np.array([row[1] for row in chosen], np.int64),
        values=values,
        missing=missing,
        key_start=starts[positions] if positions else np.zeros(0, np.bool_),
    )


def _code(value: object, type_: pa.DataType, texts: list[str]) -> int:
    return texts.index(value) if isinstance(value, str) else encode(value, type_)  # type: ignore[arg-type]


def _found(emitted: Emitted, positions: list[int]) -> Found:
    found: Found = []
    begin = 0
    for end, detected in zip(emitted.end.tolist(), emitted.detected_at.tolist(), strict=True):
        taken = [(int(emitted.stage[i]), positions[emitted.event[i]]) for i in range(begin, end)]
        found.append((tuple(taken), None if detected == NO_TIME else detected))
        begin = end
    return found
