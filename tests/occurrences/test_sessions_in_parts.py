"""Many events of many sessions in one call, which are added to their sessions in parts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from cepheid import Matcher, OccurrencePattern, detect
from cepheid.knowledge import EventMapping, Knowledge, individual, node

KNOWN = Knowledge.read(
    """
    @prefix : <http://shop.example/> .
    @prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    :Request a owl:Class . :LogOut a owl:Class ; owl:disjointWith :Request . :Novel rdfs:subClassOf :Book .
    :about owl:propertyChainAxiom ( :input :value ) . :input a owl:ObjectProperty . :value a owl:ObjectProperty .
    :paid a owl:DatatypeProperty . :dune a :Novel . :alien a :Film .
    """,
    prefixes={"": "http://shop.example/"},
)
MAPPING = EventMapping(
    "event/{id}",
    type="kind",
    properties={"input": node({"value": individual("item")}), "paid": "price"},
)
PATTERNS = {
    "a class": "Request ; LogOut",
    "an event's filter": "?r: Request [ about(?r, ?i) ^ Book(?i) ] ; LogOut",
    "built-ins": "?r: Request [ about(?r, ?i) ^ Book(?i) ^ paid(?r, ?p) ^ swrlb:greaterThan(?p, 3) ] ; LogOut",
    "two events": "(?a: Request ; ?b: Request) [ about(?a, ?i) ^ about(?b, ?i) ]",
    "two events and built-ins": "(?a: Request ; ?b: Request) [ paid(?a, ?p) ^ paid(?b, ?q) ^ swrlb:lessThan(?q, ?p) ]",
    "others": "?a: LogOut [ about(?x, ?i) ^ Book(?i) ^ paid(?x, ?p) ^ swrlb:add(?sum, ?p, 1) ^ swrlb:equal(?sum, 5) ]",
}
OF_SESSION = 5


def events(sessions: int, kinds: str = "RRRRL") -> pa.Table:
    count = sessions * OF_SESSION
    number = range(count)
    start = datetime(2024, 1, 1, tzinfo=UTC)
    return pa.table(
        {
            "session": [one // OF_SESSION for one in number],
            "at": pa.array([start + timedelta(seconds=one % OF_SESSION) for one in number], pa.timestamp("us", "UTC")),
            "id": [*number],
            "kind": [{"R": "Request", "L": "LogOut"}[kinds[one % OF_SESSION]] for one in number],
            "item": ["dune" if one * 7 % 11 < 5 else "alien" for one in number],
            "price": [one * 5 % 7 for one in number],
        }
    )


@pytest.mark.parametrize("text", PATTERNS.values(), ids=PATTERNS)
def test_many_sessions(text: str) -> None:
    """What is found in a session does not depend on how many there are: ten thousand events at once, or a few."""
    pattern = OccurrencePattern.of(text, knowledge=KNOWN, mapping=MAPPING)
    table = events(2000)
    options = {"key": "session", "time": "at", "columns": ["id"]}
    parts = [detect(table.slice(first, 500), pattern, **options) for first in (0, 4500, 9500)]
    chosen = {one for first in (0, 900, 1900) for one in range(first, first + 100)}
    found = [row for row in detect(table, pattern, **options).to_pylist() if row["session"] in chosen]
    expected = [row for part in parts for row in part.to_pylist()]
    assert expected
    key = lambda row: row["match_id"]  # noqa: E731 - it has one use
    assert sorted(found, key=key) == sorted(expected, key=key)


def test_contradictions_of_many_sessions() -> None:
    """Each session reports the event that brought its contradiction, wherever it is in the call."""
    mapping = EventMapping("event/{call}", type="kind", properties={"input": MAPPING.properties[0][1]})
    pattern = OccurrencePattern.of("Request", knowledge=KNOWN, mapping=mapping)
    table = events(2000).append_column("call", pa.array([one // 3 for one in range(10_000)]))
    rows = detect(table, pattern, key="session", time="at", columns=["id"], outputs="inconsistent").to_pylist()
    ends = [one for one in range(10_000) if one % OF_SESSION == 4 and one // 3 == (one - 1) // 3]
    assert sorted(row["event"]["id"] for row in rows) == ends


@pytest.mark.filterwarnings("ignore:a matcher keeps what is open")
def test_a_long_session_continues_from_its_snapshot() -> None:
    """Two thousand events of one session, stored and restored on the way, give the matches of all at once."""
    text = "?r: Request [ about(?r, ?i) ^ Book(?i) ^ Request(?o) ^ paid(?o, ?p) ^ swrlb:greaterThan(?p, 5) ]"
    pattern = OccurrencePattern.of(text, knowledge=KNOWN, mapping=MAPPING)
    table = events(400).set_column(0, "session", pa.array([0] * 2000))
    times = pa.array([datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=one) for one in range(2000)])
    table = table.set_column(1, "at", times.cast(pa.timestamp("us", "UTC")))
    options = {"key": "session", "time": "at", "columns": ["id"]}
    live, found = Matcher(pattern, table.schema, lateness="0 seconds", **options), list[str]()
    for first in range(0, 2000, 500):
        found += live.process(table.slice(first, 500))["match_id"].to_pylist()
        data = live.snapshot()
        live = Matcher(pattern, table.schema, lateness="0 seconds", **options)
        live.restore(data)
    found += live.finish()["match_id"].to_pylist()
    assert found == detect(table, pattern, **options)["match_id"].to_pylist()
