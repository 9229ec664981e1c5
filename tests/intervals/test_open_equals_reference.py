"""Events known by their start: the matcher emits what the definition emits, which looks at all completions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
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

TIMES = pa.timestamp("us", "UTC")
SIGNS = {"insertion": "+", "retraction": "-", "completion": "=", "late": "late"}


@st.composite
def arrivals(draw: st.DrawFn, count: int, opened: int = 2) -> list[Row]:
    """The rows of events in an order of arrival: of three events about so many are opened and closed, others are
    whole.
    """
    rows: list[tuple[int, Row]] = []
    for number in range(count):
        place = 3 * number
        if draw(st.integers(0, 2)) < opened:
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
    revises: bool = False,
) -> list[LogEntry]:
    """What the matcher emits for the rows, which come one by one."""
    batch = batch_of(plan, events)
    batch = batch.with_column(EVENT_ID, batch.column(f"{EVENT_PREFIX}id"))
    starts, ends = (batch.column(name).cast("int64").to_pylist() for name in (TIME, END))
    fresh = partial(LiveOpenMatcher, plan, delay=delay, lateness=lateness, revises=revises, frequencies=None)
    matcher = fresh()
    reader = RowReader(
        delay, lateness, open_for, drops=True, revises=revises, is_held=lambda name: revises and matcher.holds(name)
    )
    ids = batch.column(EVENT_ID).to_pylist()
    names = canonical_bytes([batch.column(EVENT_ID)], len(batch)).to_pylist()
    variables = [positive.variable for positive in plan.pattern.positives]
    log: list[LogEntry] = []

    def note(rows: pa.Table, when: str, position: int) -> None:
        place = {id_: ids.index(id_) for id_ in ids}
        for one in rows.to_pylist():
            sign = SIGNS[one["kind"]]
            match = place[one["event"]["id"]] if sign == "late" else tuple(place[one[v]["id"]] for v in variables)
            log.append(LogEntry(when, position, sign, match))

    for position, row in enumerate(rows):
        if position in switches:
            note(matcher.switch(switches[position]), "switch", position)
        if position in cuts and restoring:
            data = matcher.stored({"made_for": {"of": "test"}, "kept": {}}, {}, {})
            matcher, _ = restored(fresh(), data, {"of": "test"}, batch.data.schema)
        elif position in cuts:
            matcher.forget()
        number = row.event
        given_row = GivenRow(
            names[number],
            starts[number] if row.has_start else None,
            ends[number] if row.has_end else None,
            withdraws=row.withdraws,
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


def with_last(events: pa.Table) -> pa.Table:
    """The events, and one that ends when no row of the others can be in time any more."""
    values = {"id": "last", "type": "C", "start": pa.scalar(60 * SECOND, TIMES), "end": pa.scalar(60 * SECOND, TIMES)}
    last = events.slice(0, 1)
    for name, value in values.items():
        column = pa.array([value if isinstance(value, str) else value.as_py()], last.schema.field(name).type)
        last = last.set_column(last.schema.get_field_index(name), name, column)
    return pa.concat_tables([events, last])


SIMPLE = [
    IntervalPattern.of(query)
    for query in (
        "EVENT PAL(A a before B b)",
        "EVENT PAL(A a overlap B b)",
        "EVENT PAL(A a, (!B d during_span), A b) ORDER start(a) < start(b)",
        "EVENT PAL(A a, (!B d gap), A b) ORDER end(a) <= start(b)",
        "EVENT PAL(B b, !A d) WITHIN 9 seconds",
        "EVENT PAL(!A d, B b) WITHIN 9 seconds",
    )
]
"""Patterns that are often matched, and often no longer after a revision."""


@st.composite
def revised_arrivals(draw: st.DrawFn, events: pa.Table) -> tuple[pa.Table, list[Row]]:
    """The events and a much later one, with further versions of some of them, which end at another time; and rows that
    insert, revise and withdraw them.
    """
    events = with_last(events)
    found, rows = [events], list[tuple[int, Row]]()
    for place, row in enumerate(draw(arrivals(len(events), opened=1))):
        rows.append((3 * place, row))
        if not row.has_end:
            continue
        for more in range(draw(st.sampled_from([0, 1, 1, 2]))):
            number, at = len(events) + len(found) - 1, 3 * place + more + draw(st.integers(1, 9))
            if withdraws := draw(st.booleans()):
                rows.append((at, Row(row.event, has_start=False, has_end=False, withdraws=True)))
                if draw(st.booleans()):
                    continue
            version = events.slice(row.event, 1)
            length = pa.scalar(draw(st.integers(0, 9)) * SECOND, pa.duration("us"))
            end = pc.add(version["start"], length)
            found.append(version.set_column(version.schema.get_field_index("end"), "end", end))
            rows.append((at + 1, Row(number, has_start=withdraws, has_end=True, same_as=row.event)))
    return pa.concat_tables(found).combine_chunks(), [row for _, row in sorted(rows, key=lambda one: one[0])]


@pytest.mark.slow
@share(60)
@given(
    pattern=st.sampled_from(SIMPLE) | st.sampled_from(SIMPLE[::-1]) | forbidding_patterns() | patterns(),
    events=tables(least=3, most=7),
    delay=st.sampled_from((3, 6, 12, 12, None)),
    lateness=st.sampled_from(End),
    consistency=st.sampled_from(Consistency),
    switches=st.just({}) | st.dictionaries(st.integers(1, 8), st.sampled_from(Consistency), max_size=2),
    cuts=st.lists(st.integers(1, 8), max_size=2),
    restoring=st.booleans(),
    data=st.data(),
)
def test_revised_events_give_what_the_definition_gives(  # noqa: PLR0917 - drawn by Hypothesis
    pattern: IntervalPattern,
    events: pa.Table,
    delay: int | None,
    lateness: End,
    consistency: Consistency,
    switches: dict[int, Consistency],
    cuts: list[int],
    restoring: bool,  # noqa: FBT001
    data: st.DataObject,
) -> None:
    """Each step is the same. What is left in the end is what the events have that rows in time have made, and only real
    time retracts what a row undoes.
    """
    pattern = pattern.emitting(consistency)
    plan = planned(pattern, events)
    assume(not unknown_negations(plan))
    plan = replace(plan, schema=replace(plan.schema, event_id="id"))
    versions, rows = data.draw(revised_arrivals(events))
    late_after = None if delay is None else delay * SECOND
    got = log_of(
        plan,
        versions,
        rows,
        delay=late_after,
        lateness=lateness,
        switches=switches,
        cuts=cuts,
        restoring=restoring,
        open_for=None,
        revises=True,
    )
    expected = list(
        open_log(
            plan,
            as_intervals(plan, versions),
            rows,
            delay=float("inf") if late_after is None else late_after,
            lateness=lateness,
            consistency=consistency,
            switches=switches,
            revises=True,
        )
    )
    shown = f"{pattern}\n{versions.to_pylist()}\n{rows}\ngot {got}\nexpected {expected}"
    further = {number for number, row in enumerate(rows) if not row.has_start or row.first != row.event}
    # Whether a further row of an event that was late or forgotten is late or has an unknown id depends on the memory.
    assert same_steps(
        *([one for one in log if one.sign != "late" or one.position not in further] for log in (got, expected))
    ), shown
    retracted = {one.when for one in got if one.sign == "-"}
    # At the end the events are dropped that no row has closed in time, with their matches.
    at_most = {Consistency.REALTIME: {"arrive", "eos"}, Consistency.EARLIEST: {"eos"}, Consistency.CONSERVATIVE: set()}
    assert retracted <= {when for one in (consistency, *switches.values()) for when in at_most[one]}, shown
