"""Limits on what the events of a key say."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from cepheid import CepheidWarning, LimitExceeded, Limits, Matcher, OccurrencePattern, Report, SchemaError, detect
from cepheid.knowledge import EventMapping, Knowledge, individual

KNOWLEDGE = Knowledge.read(
    """
@prefix : <http://x/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
:Step a owl:Class . :after a owl:TransitiveProperty . :step0 a :Start .
:alias a owl:ObjectProperty ; <http://www.w3.org/2000/01/rdf-schema#subPropertyOf> owl:sameAs .
""",
    prefixes={"": "http://x/"},
)
AFTER = EventMapping("http://x/step{id}", type="type", properties={"after": individual("http://x/step{before}")})
FROM_START = OccurrencePattern.of("?s: Step [ after(?s, step0) ]", knowledge=KNOWLEDGE, mapping=AFTER)
FROM_START = FROM_START.policy("unrestricted")


def steps(count: int, key: str = "k") -> pa.Table:
    """Steps of which each is after the one before: all but the first follow from all before."""
    return pa.table(
        {
            "key": [key] * count,
            "at": pa.array(
                [datetime(2026, 1, 1, second=i, tzinfo=UTC) for i in range(count)], pa.timestamp("us", "UTC")
            ),
            "id": pa.array(range(1, count + 1), pa.int64()),
            "before": pa.array(range(count), pa.int64()),
            "type": ["Step"] * count,
        }
    )


def found(rows: pa.Table) -> list[int]:
    return [row["s"]["id"] for row in rows.to_pylist()]


OPTIONS: dict[str, Any] = {"key": "key", "time": "at", "columns": ["id"]}


def test_too_many_facts() -> None:
    """The error names the limit, the key and its event, and what to do."""
    table = steps(9)
    assert found(detect(table, FROM_START, **OPTIONS)) == [*range(1, 10)]
    with pytest.raises(LimitExceeded) as caught:
        detect(table, {"chain": FROM_START, "other": FROM_START}, limits=Limits(max_facts=9), **OPTIONS)
    assert str(caught.value) == (
        "more than 9 facts for one key (max_facts), 'k', at the event with id = 3. "
        "Choose a key that ends, raise the limit, or leave out what passes it with on_limit='drop'"
    )


def test_what_passes_the_limit_says_nothing() -> None:
    """The event and later ones of its key are of no class, and filters are answered without them. Other keys do not
    change.
    """
    table = pa.concat_tables([steps(6), steps(2, "other")])
    report = Report()
    limits = Limits(max_facts=9, on_limit="drop")
    assert found(detect(table, FROM_START, limits=limits, report=report, **OPTIONS)) == [1, 2, 1, 2]
    assert report.counts.dropped_facts == 8  # four events with their class and the one before
    with pytest.warns(CepheidWarning, match="dropped, as on_limit is 'drop': 8 facts of events over a limit"):
        detect(table, FROM_START, limits=limits, **OPTIONS)


@pytest.mark.filterwarnings("ignore:a matcher keeps what is open")
def test_a_live_matcher_continues() -> None:
    """However the events are divided into calls the result is the same, also with snapshots between."""
    table, limits = pa.concat_tables([steps(6), steps(2, "other")]), Limits(max_facts=9, on_limit="drop")
    expected = detect(table, FROM_START, limits=limits, report=Report(), **OPTIONS)
    table = table.sort_by([("at", "ascending"), ("key", "ascending")])

    def matcher() -> Matcher:
        return Matcher(FROM_START, table.schema, limits=limits, **OPTIONS)

    live, rows = matcher(), list[pa.Table]()
    for row in range(0, 8, 2):
        rows.append(live.process(table.slice(row, 2)))
        restored = matcher()
        restored.restore(live.snapshot())
        live = restored
    rows.append(live.finish())
    assert sorted(pa.concat_tables(rows)["match_id"].to_pylist()) == sorted(expected["match_id"].to_pylist())
    assert live.counts.dropped_facts == 8


def test_too_many_names() -> None:
    """Names of one individual are counted before what follows from them."""
    table = steps(40)
    mapping = EventMapping("http://x/step{id}", type="type", properties={"alias": individual("http://x/step{before}")})
    pattern = OccurrencePattern.of("?s: Step [ Start(?s) ]", knowledge=KNOWLEDGE, mapping=mapping)
    pattern = pattern.policy("unrestricted")
    assert found(detect(table, pattern, **OPTIONS)) == [*range(1, 41)]
    message = r"more than 5 names for one individual of one key \(max_same_as\), 'k', at the event with id = 5"
    with pytest.raises(LimitExceeded, match=message):
        detect(table, pattern, limits=Limits(max_same_as=5), **OPTIONS)
    report = Report()
    few = found(detect(table, pattern, limits=Limits(max_same_as=5, on_limit="drop"), report=report, **OPTIONS))
    assert few == [1, 2, 3, 4]
    assert report.counts.dropped_facts == 72


def test_bad_limits() -> None:
    """Limits are whole numbers from 1."""
    with pytest.raises(
        SchemaError, match=r"max_facts is a whole number from 1 .* got 0\nlimits: max_same_as is a whole"
    ):
        Limits(max_facts=0, max_same_as=True)
