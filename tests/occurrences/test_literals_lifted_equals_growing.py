"""Patterns with filters over literals of two events find the same by SQL and in sessions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event as note
from hypothesis import given
from hypothesis import strategies as st
from tests.searching import share

from cepheid import OccurrencePattern, detect, event
from cepheid.detect import plan_of
from cepheid.knowledge.events.mapping import EventMapping
from cepheid.lang.semantic import semantic
from cepheid.requests.request_of import request_of
from knowledge.literal_filters import COLUMNS, KNOWN, NAME, filters, tables


@share(150)
@given(tables(), filters(), st.sampled_from([">>", "&"]))
def test_lifted_equals_growing(events: pa.Table, filter_: tuple[list[str], str], operator: str) -> None:
    """The first column is one event's, the second another's. A column of facts that are all NULL changes the way."""
    names, text = filter_
    atoms = [f"{name}(?v{number}, ?{name})" for number, name in enumerate(names)]
    first, second = event("Event").named("v0"), event("Event").named("v1")
    both = (first >> second if operator == ">>" else first & second).where(semantic(" ∧ ".join([*atoms, text])))
    times = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number // 2) for number in range(len(events))]
    events = events.append_column("at", pa.array(times, pa.timestamp("us", "UTC")))
    events = events.append_column("kind", pa.array(["Event"] * len(events)))
    events = events.append_column("facts", pa.nulls(len(events), pa.string()))
    found = []
    for turtle in (None, "facts"):
        properties = {name: name for name in COLUMNS}
        mapping = EventMapping(f"{NAME}event/{{number}}", type="kind", properties=properties, turtle=turtle)
        pattern = OccurrencePattern.of(both, knowledge=KNOWN, mapping=mapping).policy("unrestricted")
        options: dict[str, Any] = {"time": "at", "sequence": "number", "columns": ["number"]}
        if turtle is None:
            semantics = plan_of(events, request_of(pattern, **options)).semantics
            note("lifted" if semantics is None else f"growing: {semantics.why}"[:40])
            if semantics is not None:
                return
        rows = detect(events, pattern, **options).to_pylist()
        found.append([(row["match_start"], row["match_end"], row["events"]) for row in rows])
    assert found[0] == found[1]


pytestmark = pytest.mark.filterwarnings("ignore:policy 'recent' with the condition")
