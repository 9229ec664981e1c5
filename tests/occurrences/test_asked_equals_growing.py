"""Filters over values of one event whose built-ins have no SQL are asked once for each value, and find the same as
sessions.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from hypothesis import event as note
from hypothesis import given
from hypothesis import strategies as st
from tests.searching import share

from cepheid import OccurrencePattern, detect
from cepheid.detect import plan_of
from cepheid.knowledge import EventMapping, Knowledge, individual
from cepheid.requests.request_of import request_of
from knowledge.literal_filters import COLUMNS, KNOWN, NAME, tables

NUMBERS = ("long", "decimal", "double", "text")
RULES = ":Rule(?k) ∧ :pattern(?k, ?x)"
PATTERN = st.sampled_from(['"^a"', '"[A-Z]+"', '"("', '".*"', "?text", "?x"])


@st.composite
def parts(draw: st.DrawFn) -> tuple[set[str], str]:
    """Columns that are read as variables of the same name, and atoms over them."""
    one, other = draw(st.sampled_from(NUMBERS)), draw(st.sampled_from([*NUMBERS, "zoned", "length"]))
    pattern = draw(PATTERN)
    made = {
        f"matches(?text, {pattern})": {"text"},
        f'replace(?r, ?text, {pattern}, "b") ∧ contains(?r, "b")': {"text"},
        "upperCase(?r, ?text) ∧ equal(?r, ?text)": {"text"},
        f"roundHalfToEven(?r, ?{one}, 1) ∧ lessThan(?r, ?{other})": {one, other},
        f"pow(?r, ?{one}, 2) ∧ greaterThan(?r, ?{other})": {one, other},
        "substring(?r, ?text, ?long) ∧ stringLength(?n, ?r) ∧ lessThanOrEqual(?n, ?long)": {"text", "long"},
        "addDayTimeDurations(?r, ?length, ?length) ∧ addDayTimeDurationToDateTime(?z, ?zoned, ?r)": {"length", "zoned"},
        "item(?v, ?i) ∧ :limit(?i, ?l) ∧ roundHalfToEven(?r, ?decimal) ∧ lessThan(?r, ?l)": {"decimal"},
        "item(?v, ?i) ∧ :pattern(?i, ?x) ∧ matches(?text, ?x)": {"text"},
    }
    text = draw(st.sampled_from([*made]))
    asks_rules = "?x" in text and ":pattern" not in text
    return made[text], f"{RULES} ∧ {text}" if asks_rules else text


KNOWLEDGE = Knowledge.read(
    f"@prefix : <{NAME}> . @prefix owl: <http://www.w3.org/2002/07/owl#> . :item a owl:ObjectProperty . "
    f'{KNOWN.ntriples} :r1 a :Rule ; :pattern "^A" . :r2 a :Rule ; :pattern "k$", "(" . '
    ':i1 :pattern "a", "C" ; :limit 2, 3.5 . :i2 owl:sameAs :i1 . :i3 :limit 1e0, "x" .',
    prefixes={"": NAME},
)


@share(60)
@given(tables(), parts(), st.lists(st.sampled_from(["i1", "i2", ":i3", "i4", None]), min_size=6, max_size=6))
def test_asked_equals_growing(events: pa.Table, part: tuple[set[str], str], items: list[str | None]) -> None:
    """A column of facts that are all NULL makes what is known grow with the events."""
    names, text = part
    atoms = [f"{name}(?v, ?{name})" for name in sorted(names)]
    times = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number) for number in range(len(events))]
    events = events.append_column("at", pa.array(times, pa.timestamp("us", "UTC")))
    events = events.append_column("kind", pa.array(["Event"] * len(events)))
    events = events.append_column("item", pa.array(items[: len(events)], pa.string()))
    events = events.append_column("facts", pa.nulls(len(events), pa.string()))
    found = []
    for turtle in (None, "facts"):
        properties = {**{name: name for name in COLUMNS}, "item": individual("item")}
        mapping = EventMapping(f"{NAME}event/{{number}}", type="kind", properties=properties, turtle=turtle)
        filter_ = " ∧ ".join([*atoms, text])
        pattern = OccurrencePattern.of(f"?v: Event [{filter_}]", knowledge=KNOWLEDGE, mapping=mapping)
        options: dict[str, Any] = {"time": "at", "sequence": "number", "columns": ["number"]}
        plan = plan_of(events, request_of(pattern, **options))
        assert (plan.semantics is None) == (turtle is None), plan.semantics
        note("asked" if plan.questions else "SQL" if turtle is None else "growing")
        found.append([row["match_start"] for row in detect(events, pattern, **options).to_pylist()])
    assert found[0] == found[1]
    note("matches" if found[0] else "no match")
