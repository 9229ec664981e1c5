"""Many keys whose events arrive in turns, in bursts, or after a long pause: each is matched as if it were alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.intervals.events import TIMES, Row, matcher, shown, table
from tests.intervals.running import DELAYS, ENGINE, as_intervals, batch_of, log_of, same_steps
from tests.intervals.strategies import SECOND, TYPES, forbidding_patterns
from tests.searching import share

from cepheid.compile.intervals.compiled import compile_intervals
from cepheid.events.batch import Schema
from cepheid.kernel.consistency_reference import Arrival, Life, emission_log
from cepheid.kernel.intervals import kernel as interval_kernel
from cepheid.kernel.intervals.kernel import IntervalKernel
from cepheid.kernel.intervals.reference import Interval, Match, by_acceptance
from cepheid.lang.consistency import Consistency, End
from cepheid.lang.intervals.pattern import IntervalPattern, interval_pattern
from cepheid.matchers.intervals import joiner
from cepheid.matchers.intervals import matcher as live_intervals
from cepheid.matchers.intervals.matcher import LiveIntervalMatcher
from cepheid.plan.intervals.build import build_interval_plan
from cepheid.plan.intervals.plan import IntervalPlan

KEYS = 5


@st.composite
def keyed_tables(draw: st.DrawFn) -> pa.Table:
    """Events of several keys in the order of their arrival, which is mostly the order of their ends. A burst fills a
    key's lists more than once while other keys receive nothing.
    """
    burst = st.tuples(st.integers(0, KEYS - 1), st.sampled_from([1, 1, 2, 14]))
    bursts = draw(st.lists(burst, min_size=4, max_size=12))
    keys = [key for key, length in bursts for _ in range(length)]
    starts = [i // 2 + draw(st.sampled_from([0, 0, 1, 3])) for i in range(len(keys))]
    lengths = [draw(st.sampled_from([0, 1, 2, 5])) for _ in keys]
    moved = [draw(st.sampled_from([0, 0, 0, 4, 9])) for _ in keys]
    order = sorted(range(len(keys)), key=lambda i: starts[i] + lengths[i] + moved[i])
    return pa.table(
        {
            "id": pa.array([f"e{i}" for i in range(len(keys))]),
            "key": pa.array([f"k{keys[i]}" for i in order]),
            "type": pa.array([draw(st.sampled_from(TYPES)) for _ in keys]),
            "start": pa.array([starts[i] * SECOND for i in order], TIMES),
            "end": pa.array([(starts[i] + lengths[i]) * SECOND for i in order], TIMES),
            "u": pa.array([draw(st.sampled_from(["x", "y", None])) for _ in keys], pa.string()),
            "n": pa.array([draw(st.sampled_from([0, 1, 2, None])) for _ in keys], pa.int64()),
        }
    )


def each_key_alone(
    plan: IntervalPlan, events: Sequence[Interval], keys: Sequence[str], lateness: End
) -> Callable[[Sequence[int], float], dict[Match, Life]]:
    """The matches of the accepted events, as the reference finds them for each key alone."""
    alone = by_acceptance(plan, events, lateness)
    before: dict[str, tuple[list[int], Mapping[Match, Life]]] = {}

    def known(accepted: Sequence[int], clock: float) -> dict[Match, Life]:
        for key in {keys[i] for i in accepted}:
            own = [i for i in accepted if keys[i] == key]
            if before.get(key, ([], {}))[0] != own:  # the reference is slow
                before[key] = own, alone(own, clock)
        return {match: life for _, found in before.values() for match, life in found.items()}

    return known


@pytest.mark.slow
@share(25)
@given(
    pattern=forbidding_patterns(),
    events=keyed_tables(),
    consistency=st.sampled_from(Consistency),
    delay=st.sampled_from(DELAYS),
    lateness=st.sampled_from(End),
    cuts=st.lists(st.integers(1, 40), max_size=2),
    restoring=st.booleans(),
)
def test_each_key_is_matched_as_if_it_were_alone(  # noqa: PLR0917 - drawn by Hypothesis
    pattern: IntervalPattern,
    events: pa.Table,
    consistency: Consistency,
    delay: int | None,
    lateness: End,
    cuts: list[int],
    restoring: bool,  # noqa: FBT001
) -> None:
    """Each step of the log is that of the reference, which uses one clock for the events of all keys."""
    schema = Schema(events.schema, ("key",), "start", end="end")
    plan = build_interval_plan(pattern.taxonomy("type"), schema, ENGINE)
    compiled = compile_intervals(plan, delay=None if delay is None else delay * SECOND, lateness=lateness)
    got = log_of(compiled, batch_of(plan, events), consistency=consistency, cuts=cuts, restoring=restoring)
    known = as_intervals(plan, events)
    expected = list(
        emission_log(
            [Arrival(event.start, event.end) for event in known],
            each_key_alone(plan, known, events.column("key").to_pylist(), lateness),
            delay=float("inf") if delay is None else delay * SECOND,
            lateness=lateness,
            consistency=consistency,
        )
    )
    assert same_steps(got, expected), f"{pattern}\n{events.to_pylist()}\ngot {got}\nexpected {expected}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "consistency",
    ["realtime", *(pytest.param(other, marks=pytest.mark.long) for other in ("earliest", "conservative"))],
)
def test_matches_of_many_keys_are_those_of_each_alone(consistency: str) -> None:
    """This also holds for more matches than fit into the first table, after a snapshot, and for keys that pause and
    return.
    """
    pattern = f"EVENT PAL(A a, (!D d gap), B b) RELATE a before b WITHIN 10 seconds CONSISTENCY {consistency}"
    events = [_event(i) for i in range(14000)]
    each: dict[str, list[Row]] = defaultdict(list)
    for event in events:
        each[event[4]].append(event)
    alone = [row for own in each.values() for row in _emitted(pattern, own)]
    assert len(alone) > 4 * 1024
    assert sorted(_emitted(pattern, events)) == sorted(alone)


@pytest.mark.parametrize("consistency", [c.value for c in Consistency])
def test_lists_fit_however_small_the_first_room_is(consistency: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel cannot grow its lists while it processes an event, so a list that is too small would overwrite other
    rows.
    """
    pattern = f"EVENT PAL(A a, (!D d gap), B b) RELATE a before b WITHIN 10 seconds CONSISTENCY {consistency}"
    events = [_event(i) for i in range(2000)]
    expected = _emitted(pattern, events)
    full: list[float] = []

    def run(kernel: IntervalKernel, *arguments: Any) -> Any:
        emitted = as_it_is(kernel, *arguments)
        for lists, used, row in (
            (kernel.stores.lists, kernel.cursor.stored, kernel.stores.by_start),
            (kernel.open.lists, kernel.cursor.scoped, kernel.open.by_scope),
        ):
            laid = np.sort(lists[lists["room"] > 0], order="first")
            assert (laid["count"] <= laid["room"]).all()
            assert (laid["first"][1:] >= (laid["first"] + laid["room"])[:-1]).all()
            assert used <= len(row)
            full.append(used / len(row))
        return emitted

    as_it_is = IntervalKernel.run
    monkeypatch.setattr(IntervalKernel, "run", run)
    monkeypatch.setattr(interval_kernel, "_ROOM", 2)
    monkeypatch.setattr(joiner, "LEAST_HELD", 6)
    monkeypatch.setattr(live_intervals, "_PIECE", 7)
    assert sorted(_emitted(pattern, events)) == sorted(expected)
    assert max(full) > 0.5


def test_numbers_of_closed_keys_are_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a burst of keys, memory and time depend only on the remaining keys."""
    monkeypatch.setattr(joiner, "LEAST_HELD", 64)
    pattern = "EVENT PAL(A a, (!D d gap), B b) RELATE a before b WITHIN 10 seconds"
    burst = [("A", 0, i % 3, f"e{i}", f"b{i}") for i in range(5000)]
    after = [_event(i) for i in range(2000, 14000)]
    schema = Schema(table(burst).schema, ("user",), "begins", end="ends")
    plan = build_interval_plan(interval_pattern(pattern).taxonomy("kind"), schema, ENGINE)
    compiled = compile_intervals(plan, delay=8 * SECOND, lateness=End.END)
    crowded, alone = LiveIntervalMatcher(compiled), LiveIntervalMatcher(compiled)
    crowded.process(batch_of(plan, table(burst)))
    alone.process(batch_of(plan, table([("A", 0, 2, "first", "first")])))
    for at in range(0, len(after), 1000):
        events = batch_of(plan, table(after[at : at + 1000]))
        assert shown(crowded.process(events)) == shown(alone.process(events))
    assert len(crowded.key_names) < 1000
    assert len(crowded.kernel.stores.lists) < 2000


def _event(i: int) -> Row:
    """Twenty events a second, up to 3 seconds out of order; the first keys have most events, the others pause and
    return.
    """
    key = i % 7 if i % 3 else (i // 500 + i * 31) % 60
    start = i // 20 - (3 if i % 11 == 0 else 0)
    return "AABBD"[(i * i + i // 13) % 5], start, start + i % 2, f"e{i}", f"k{key}"


def _emitted(pattern: str, events: Sequence[Row]) -> list[str]:
    """What a matcher emits. The calls are cut at the same events as with all keys, since the events of one call are
    sorted by their ends.
    """
    live, emitted = matcher(pattern, key="user"), []
    for number, piece in groupby(events, lambda event: int(event[3][1:]) // 1000):
        if number == 7:
            data, live = live.snapshot(), matcher(pattern, key="user")
            live.restore(data)
        emitted += shown(live.process(table(piece)))
    return emitted + shown(live.finish())
