"""What an interval matcher stores, forgets, and writes into a snapshot."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.intervals.events import EVENTS, NAMES, PAPER, interval_pattern, matcher, shown, table
from tests.intervals.running import ENGINE, batch_of
from tests.intervals.strategies import SECOND

from cepheid.compile.intervals.compiled import compile_intervals
from cepheid.detect import detect
from cepheid.errors import CepheidWarning, SnapshotError
from cepheid.events.batch import Schema
from cepheid.lang.consistency import End
from cepheid.matchers.intervals.matcher import LiveIntervalMatcher
from cepheid.plan.intervals.build import build_interval_plan


def test_a_snapshot_goes_on() -> None:
    """A restored matcher emits what the original one emits, with the same ids."""
    one, other = (matcher(f"{PAPER} REALTIME 1") for _ in range(2))
    one.process(table(EVENTS[:3]))
    other.restore(one.snapshot())
    assert other.counts == one.counts
    assert other.process(table(EVENTS[3:])) == one.process(table(EVENTS[3:]))


def test_a_snapshot_of_another_pattern_is_refused() -> None:
    """A snapshot with another pattern or delay, or a damaged one, is refused; the consistency may differ."""
    data = matcher(f"{PAPER} REALTIME 1").snapshot()
    matcher(PAPER).restore(data)
    with pytest.raises(SnapshotError, match=r'interval pattern\[2\] was "WITHIN 10 seconds" and'):
        matcher("EVENT PAL((A a overlap B b) (!D d) before C c) WITHIN 9 seconds").restore(data)
    with pytest.raises(SnapshotError, match='lateness was "8 seconds" and is "9 seconds"'):
        matcher(lateness="9 seconds").restore(data)
    with pytest.raises(SnapshotError, match="damaged"):
        matcher().restore(data[:-1] + b"x")


def test_what_no_match_can_use_is_forgotten() -> None:
    """The memory is bounded by the window and the delay. The other tests show that the results do not change."""
    live = matcher("EVENT PAL((A a overlap B b) before C c) WITHIN 10 seconds", lateness="5 seconds")
    live.process(table([("ABC"[i % 3], i, i + 2, str(i)) for i in range(500)]))
    live.restore(live.snapshot())
    assert live.counts.held <= 20


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("within", ["", " WITHIN 1 day"])
@pytest.mark.parametrize("late_by", ["start", "end"])
def test_a_pattern_of_one_event_holds_few(within: str, late_by: str) -> None:
    """Events that are in no other match are forgotten when no equal event can arrive in time any more."""
    pattern = f"EVENT PAL(A a){within} CONSISTENCY earliest"
    live, again = (matcher(pattern, late_by=late_by) for _ in range(2))
    rows = [live.process(table([("A", i, i + 2, "a")])) for i in range(0, 1000, 2)]
    again.restore(live.snapshot())
    assert again.counts.held == (4 if late_by == "start" else 5)  # with the clock at 1000: those from 992 to 998
    rows.append(again.process(table([("A", 998, 1000, "a"), ("A", 992, 994, "a"), ("A", 989, 991, "a")])))
    assert shown(rows[-1]) == ["a late", "+a", "+a"]
    ids = pa.concat_tables(rows).column("match_id").to_pylist()
    assert len({*ids}) == len(ids) == 503


def test_a_long_negated_event_is_stored_until_its_end() -> None:
    """With intersects_gap, an event that starts long before the match forbids it if it lasts long enough, so it is
    stored until its end.
    """
    live = matcher("EVENT PAL(A a, (!D d intersects_gap), C c) WITHIN 10 seconds", lateness="30 seconds")
    live.process(table([("D", 0, 60, "d1")]))
    live.process(table([("A", 50, 52, "a1"), ("B", 75, 78, "b1")]))
    live.restore(live.snapshot())
    assert shown(live.process(table([("C", 58, 60, "c1")]))) == []
    assert shown(live.finish()) == []


@pytest.mark.parametrize(("negation", "most"), [("", 1 << 10), ("(!D d gap), ", 1 << 11)])
def test_matches_that_are_closed_need_no_room(negation: str, most: int) -> None:
    """The table of matches is little larger than the number of open matches, however many matches there were."""
    rows = table([("AB"[i % 2], i, i, str(i)) for i in range(3000)])
    pattern = f"EVENT PAL(A a, {negation}B b) RELATE a before b WITHIN 60 seconds REALTIME 1"
    schema = Schema(rows.schema, (), "begins", end="ends")
    plan = build_interval_plan(interval_pattern(pattern).taxonomy("kind"), schema, ENGINE)
    live = LiveIntervalMatcher(compile_intervals(plan, delay=10 * SECOND, lateness=End.START))
    assert live.process(batch_of(plan, rows)).num_rows > 40_000
    assert live.open_matches < most // 2
    assert len(live.kernel.open.rows) <= most


def test_what_a_matcher_stores_for_ever_is_warned_of() -> None:
    """A warning is issued once, where the matcher is made, and says what to do; the plan shows it, too. With an
    unlimited delay everything is stored anyhow, so there is none.
    """
    grows = {
        "EVENT PAL(A a before B b)": "without within(…) an interval pattern stores all its events for ever. "
        "Add within(…).",
        "EVENT PAL(A a) WITHOUT (D d ORDER end(d) < start(a)) WITHIN 1 hour": (
            "nothing bounds the negation of 'd', whose events are stored for ever. Give it a scope."
        ),
    }
    for pattern, message in grows.items():
        with pytest.warns(CepheidWarning) as caught:
            live = matcher(pattern)
        assert [str(warning.message) for warning in caught] == [f"a matcher keeps what is open: {message}"]
        assert caught[0].filename == matcher.__code__.co_filename
        assert live.explain().splitlines()[-1] == f"Warning: {message}"
        assert "Warning" not in matcher(pattern, None).explain()


def test_events_that_agree_in_all_columns_are_different_events() -> None:
    """Matches of equal events have different ids, also over several calls and a snapshot; a retraction has the id of
    its insertion.
    """
    live, again = (matcher("EVENT PAL(A a, (!D d gap), C c) WITHIN 1 hour REALTIME 1") for _ in range(2))
    twins = [("A", 0, 1, "a"), ("A", 0, 1, "a")]
    live.process(table(twins))
    again.restore(live.snapshot())
    rows = again.process(table([*twins[:1], ("C", 5, 6, "c")]))
    ids = rows.column("match_id").to_pylist()
    assert len(set(ids)) == len(ids) == 3
    assert sorted(again.process(table([("D", 2, 3, "d")])).column("match_id").to_pylist()) == sorted(ids)
    pair = interval_pattern("EVENT PAL(A a, C c)")
    together = detect(table([*twins, *twins[:1], ("C", 5, 6, "c")]), pair, **NAMES)
    assert len(set(together.column("match_id").to_pylist())) == 3


def test_equal_late_events_have_different_ids() -> None:
    """Equal late events have different ids: within one call, in later calls, and after a snapshot."""
    live, again = (matcher("EVENT PAL(A a, B b) WITHIN 1 hour") for _ in range(2))
    live.process(table([("A", 100, 101, "a"), ("A", 95, 96, "a"), ("A", 95, 96, "a")]))
    late, other = ("A", 0, 1, "a"), ("B", 0, 1, "b")
    ids = live.process(table([late, other, late])).column("match_id").to_pylist()
    again.restore(live.snapshot())
    for _ in range(2):
        ids += live.process(table([late])).column("match_id").to_pylist()
    assert len({*ids}) == len(ids) == 5
    assert again.process(table([late])).column("match_id").to_pylist() == ids[3:4]
    one_by_one = matcher("EVENT PAL(A a, B b) WITHIN 1 hour")
    one_by_one.process(table([("A", 100, 101, "a"), ("A", 95, 96, "a")]))
    each = [one_by_one.process(table([row])).column("match_id")[0].as_py() for row in (late, other, late)]
    assert sorted(each) == sorted(ids[:3])
