"""Events known by their start: the matcher emits what the definition emits, which looks at all completions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.intervals.running import as_intervals, batch_of, same_steps
from tests.intervals.strategies import SECOND, forbidding_patterns, patterns, tables
from tests.intervals.test_engine_equals_reference import planned
from tests.searching import share

from cepheid.events.batch import END, EVENT_ID, EVENT_PREFIX, TIME, Batch
from cepheid.events.identity import canonical_bytes
from cepheid.kernel.consistency_reference import LogEntry
from cepheid.kernel.intervals.open_reference import Row, open_log
from cepheid.lang.consistency import Consistency, End
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.matchers.intervals.open_matcher import LiveOpenMatcher
from cepheid.matchers.intervals.rows import GivenRow, RowKind, RowReader
from cepheid.matchers.snapshot import restored
from cepheid.plan.intervals.ends import unknown_negations
from cepheid.plan.intervals.plan import IntervalPlan

SIGNS = {"insertion": "+", "retraction": "-", "completion": "=", "late": "late"}


@st.composite
def arrivals(draw: st.DrawFn, count: int) -> list[Row]:
    """The rows of events in an order of arrival: some events are opened and closed, others are whole."""
    rows: list[tuple[int, Row]] = []
    for number in range(count):
        place = 3 * number
        if draw(st.integers(0, 2)):
            rows += [(place, Row(number, has_start=True, has_end=False))]
            rows += [(place + draw(st.integers(1, 12)), Row(number, has_start=False, has_end=True))]
        else:
            rows.append((place + draw(st.integers(0, 4)), Row(number, has_start=True, has_end=True)))
    return [row for _, row in sorted(rows, key=lambda one: one[0])]


def log_of(
    plan: IntervalPlan,
    events: pa.Table,
    rows: Sequence[Row],
    *,
    delay: int | None,
    lateness: End,
    switches: Mapping[int, Consistency],
    cuts: Sequence[int],
    restoring: bool,
    open_for: int | None,
) -> list[LogEntry]:
    """What the matcher emits for the rows, which come one by one."""
    batch = batch_of(plan, events)
    batch = batch.with_column(EVENT_ID, batch.column(f"{EVENT_PREFIX}id"))
    starts, ends = (batch.column(name).cast("int64").to_pylist() for name in (TIME, END))
    reader = RowReader(delay, lateness, open_for, drops=True)
    matcher = LiveOpenMatcher(plan, delay=delay, lateness=lateness, frequencies=None)
    ids = batch.column(EVENT_ID).to_pylist()
    names = canonical_bytes([batch.column(EVENT_ID)], len(batch)).to_pylist()
    variables = [positive.variable for positive in plan.pattern.positives]
    log: list[LogEntry] = []

    def note(rows: pa.Table, when: str, position: int) -> None:
        place = {id_: number for number, id_ in enumerate(ids)}
        for one in rows.to_pylist():
            sign = SIGNS[one["kind"]]
            match = place[one["event"]["id"]] if sign == "late" else tuple(place[one[v]["id"]] for v in variables)
            log.append(LogEntry(when, position, sign, match))

    for position, row in enumerate(rows):
        if position in switches:
            note(matcher.change(switches[position]), "switch", position)
        if position in cuts and restoring:
            data = matcher.stored({"made_for": {"of": "test"}, "kept": {}}, {}, {})
            fresh = LiveOpenMatcher(plan, delay=delay, lateness=lateness, frequencies=None)
            matcher, _ = restored(fresh, data, {"of": "test"}, batch.data.schema)
        elif position in cuts:
            matcher.forget()
        number = row.event
        given_row = GivenRow(
            names[number],
            starts[number] if row.has_start else None,
            ends[number] if row.has_end else None,
            has_key=True,
        )
        steps = reader.steps([given_row])
        one = batch.slice(number, number + 1) if any(step.row >= 0 for step in steps) else batch.slice(0, 0)
        if steps and steps[0].kind is RowKind.OPENS:
            place_of_end = one.data.schema.get_field_index(END)
            one = Batch(one.data.set_column(place_of_end, END, one.column(TIME)))
        note(matcher.process_steps(one, steps), "arrive", position)
    note(matcher.end(reader.finish()), "eos", len(rows))
    return log


@pytest.mark.slow
@share(25)
@given(
    pattern=patterns() | forbidding_patterns(),
    events=tables(least=2, most=6),
    delay=st.sampled_from((0, 3, 6, 12, None)),
    lateness=st.sampled_from(End),
    switches=st.dictionaries(st.integers(0, 8), st.sampled_from(Consistency), max_size=2),
    cuts=st.lists(st.integers(1, 8), max_size=2),
    restoring=st.booleans(),
    open_for=st.none() | st.integers(2, 9),
    data=st.data(),
)
def test_logs_are_those_of_all_completions(  # noqa: PLR0917 - drawn by Hypothesis
    pattern: IntervalPattern,
    events: pa.Table,
    delay: int | None,
    lateness: End,
    switches: dict[int, Consistency],
    cuts: list[int],
    restoring: bool,  # noqa: FBT001
    open_for: int | None,
    data: st.DataObject,
) -> None:
    """Each step is the same, also when the matcher forgets or is restored in between, and when events expire."""
    plan = planned(pattern, events)
    assume(not unknown_negations(plan))
    plan = replace(plan, schema=replace(plan.schema, event_id="id"))
    rows = data.draw(arrivals(len(events)))
    bound = None if open_for is None else open_for * SECOND
    options = {"delay": None if delay is None else delay * SECOND, "lateness": lateness, "switches": switches}
    got = log_of(plan, events, rows, **options, cuts=cuts, restoring=restoring, open_for=bound)  # type: ignore[arg-type]
    expected = list(
        open_log(
            plan,
            as_intervals(plan, events),
            rows,
            delay=float("inf") if delay is None else delay * SECOND,
            lateness=lateness,
            consistency=pattern.consistency,
            switches=switches,
            open_for=float("inf") if bound is None else bound,
        )
    )
    assert same_steps(got, expected), f"{pattern}\n{events.to_pylist()}\n{rows}\ngot {got}\nexpected {expected}"
