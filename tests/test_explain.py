"""`explain`: what a pattern looks for and how it runs, in Python."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from cepheid import Limits, OccurrencePattern, Pattern, PatternError, Report, SchemaError, detect, event, explain
from cepheid.intervals import interval_pattern

EVENTS = pa.table({"symbol": ["A", "A"], "at": [datetime(2026, 3, 2), datetime(2026, 3, 3)], "price": [8.0, 12.0]})  # noqa: DTZ001
RISING = Pattern.begin("low", name="rising").where("price < 10").next("high").where("price > low.price")
PLACE = {"key": "symbol", "time": "at"}


def test_without_events() -> None:
    """Without events, the text has the stages as written and the automaton; the diagram is the automaton."""
    found = explain(RISING)
    assert str(found) == repr(found) == found.text
    assert found.text.startswith("Pattern rising\n\n  1. low: begins with\n     where price < 10\n")
    assert "\nAutomaton\n  low (start)\n" in found.text
    assert found.diagram is not None
    assert found.diagram.startswith("stateDiagram-v2\n")


def test_states_of_one_stage_are_told_apart() -> None:
    """Where a stage is in several states, these have numbers, in the text and in the diagram."""
    found = explain(Pattern.begin("a").next(Pattern.begin("b").followed_by("c")).times(2))
    assert "    take [c] → b (2)\n" in found.text
    assert "\n  b (2)\n    take [b] → c (2)\n" in found.text
    assert (found.diagram or "").count(": b (2)\n") == (found.diagram or "").count(": b\n") == 1


def test_with_events() -> None:
    """With events, the text has the plan: what is lifted, with types, and the key."""
    text = explain(RISING, events=EVENTS, measures={"n": "count(high)"}, **PLACE).text
    assert "lifted: bit 0, price < 10" in text
    assert "price  (double)" in text
    assert "Key: symbol\n" in text
    assert "\n  n = count(high)" in text
    assert "\nSpark batch: events are shuffled in blocks by key, and sorted by Cepheid's workers\n" in text


def test_events_of_pandas() -> None:
    """Any table that `detect` takes gives the same plan."""
    frame = EVENTS.to_pandas()
    assert explain(RISING, events=frame, **PLACE).text == explain(RISING, events=EVENTS, **PLACE).text


def test_all_kinds_of_pattern() -> None:
    """Occurrences have a tree of operators; joins of intervals are drawn only with events."""
    occurrences = explain(OccurrencePattern.of(event("a") >> event("b")).taxonomy("type"))
    assert occurrences.text.startswith("Pattern 'pattern': occurrences of")
    assert (occurrences.diagram or "").startswith("flowchart BT\n")
    intervals = interval_pattern("EVENT SEQ(A x, B y) WITHIN 1 hour").taxonomy("type")
    assert explain(intervals).diagram is None
    table = EVENTS.append_column("end", EVENTS["at"]).append_column("type", EVENTS["symbol"])
    assert "⋈" in (explain(intervals, events=table, time=("at", "end")).diagram or "")


def test_events_in_two_rows() -> None:
    """With `event_id` the text says that rows open and close events; it is refused where `detect` refuses it."""
    intervals = interval_pattern("EVENT SEQ(A x, B y) WITHIN 1 hour").taxonomy("type")
    table = EVENTS.append_column("end", EVENTS["at"]).append_column("type", [["A", "B"]])
    found = explain(intervals, events=table, time=("at", "end"), event_id="symbol")
    assert "\nEvents, which rows with the same 'symbol' open and close:\n" in found.text
    with pytest.raises(SchemaError, match="event_id: no column named 'id'"):
        explain(intervals, events=table, time=("at", "end"), event_id="id")
    with pytest.raises(SchemaError, match="event_id: it is about events; give events=… with it"):
        explain(intervals, event_id="symbol")
    with pytest.raises(SchemaError, match="event_id: it joins the rows in which an interval opens and closes"):
        explain(RISING, events=EVENTS, event_id="symbol", **PLACE)


def test_notebooks_show_picture_and_text() -> None:
    """A notebook shows the pattern's picture, then the text with its lines."""
    found = explain(RISING)
    page = found._repr_html_()
    assert page.startswith(RISING._repr_html_() + "<pre")
    assert "where price &lt; 10\n" in page


def test_windows_before_and_between_events() -> None:
    """`max_gap` and `begin_without` are in the text."""
    quiet = RISING.max_gap("2 hours").begin_without("calm", within="1 hour", where="price = 0")
    lines = explain(quiet.within("1 day")).text.splitlines()
    assert "Gap: each event less than 2 hours after the one before it" in lines
    assert "Before: no calm, in the 1 hour before the first event, where price = 0" in lines


@pytest.mark.parametrize(
    ("pattern", "given", "message"),
    [
        ({"a": RISING, "b": RISING}, {}, "explain is about one pattern: call it for each of 'a', 'b'"),
        ({"a": RISING}, {"events": EVENTS, **PLACE}, "explain is about one pattern: call it for each of 'a'"),
        (RISING.next("low"), {}, "two stages are named 'low'"),
    ],
)
def test_wrong_patterns(pattern: Any, given: dict[str, Any], message: str) -> None:
    """Several patterns are refused with what to do; problems of the pattern are reported as by `detect`."""
    with pytest.raises(PatternError) as raised:
        explain(pattern, **given)
    assert message in str(raised.value)


def test_arguments_about_events_need_events() -> None:
    """Arguments that only mean something with events are refused without them, all at once."""
    with pytest.raises(SchemaError) as raised:
        explain(RISING, **PLACE, limits=Limits(), rows_per="event")
    about = "it is about events; give events=… with it, or leave it out"
    assert str(raised.value) == "\n".join(f"{name}: {about}" for name in ("key", "limits", "time", "rows_per"))


def test_problems_with_events() -> None:
    """With events, a column that they do not have is reported as by `detect`."""
    with pytest.raises(PatternError, match="volume"):
        explain(Pattern.begin("a").where("volume > 1"), events=EVENTS, **PLACE)


def test_report_shows_its_counts() -> None:
    """A report shows its counts as text and as a table, once it has some."""
    report = Report()
    assert repr(report) == "Report(not given to detect yet)"
    assert report._repr_html_() == '<pre style="white-space:pre-wrap">Report(not given to detect yet)</pre>'
    detect(EVENTS, RISING, report=report, **PLACE)
    assert repr(report) == f"Report({report.counts})"
    assert '<tr><td>events</td><td style="text-align:right">2</td></tr>' in report._repr_html_()
    assert report._repr_mimebundle_() == {"text/plain": str(report), "text/html": report._repr_html_()}


def test_showing_a_report_does_not_wait() -> None:
    """A report whose counts wait for work shows that, and its counts once they were read."""
    counts = Report()
    detect(EVENTS, RISING, report=counts, **PLACE)
    asked = list[str]()
    report = Report()
    report.set(lambda: asked.append("read") or counts.counts, waits=True)
    assert repr(report) == "Report(report.counts waits for Spark's action)"
    assert "<table>" not in report._repr_html_()
    assert not asked
    assert report.counts == report.counts == counts.counts
    assert asked == ["read"]
    assert repr(report) == repr(counts)
