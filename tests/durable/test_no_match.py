"""Partial matches that a negation has ended, as rows of a table."""

from __future__ import annotations

from typing import Any

from tests.durable.test_stores import PAIRS, SCHEMA, count, events

from cepheid import Pattern, detect
from cepheid.host import Host, Letter, open_host

PATTERN = (
    Pattern.begin("a", name="pairs", version="1")
    .where("what = 'a'")
    .not_followed_by("n")
    .where("what = 'n'")
    .followed_by("b")
    .where("what = 'b'")
    .within("10 minutes")
)
ALL = ("matches", "timeouts", "no_match")
TEXT = "aanabnaananb"


def prepared(url: str, pattern: Pattern = PATTERN, **how: Any) -> Host:
    host = open_host(url, **how)
    host.input("events", SCHEMA, time="at", sequence="id")
    host.deploy(pattern, input="events", key="user", outputs=ALL)
    return host


def test_rows_without_a_match(url: str) -> None:
    """The table has the rows that `detect` finds, each with its cause, also if the host is opened anew in between; the
    counts are the same.
    """
    whole = events(*TEXT)
    with prepared(url) as host:
        host.feed(whole.slice(0, 5), input="events", position=5)
    with open_host(url) as host:
        host.feed(whole.slice(5), input="events", position=len(TEXT))
        columns = "match_id, cause, detected_at, version"
        found = host.sql(f"SELECT {columns} FROM no_match_pairs ORDER BY match_id").to_pylist()
        expected = detect(whole, PATTERN, key="user", time="at", sequence="id", outputs="no_match").to_pylist()
        assert [(row["match_id"], row["cause"], row["version"]) for row in found] == [
            (row["match_id"], "n", "1") for row in sorted(expected, key=lambda row: str(row["match_id"]))
        ]
        assert len(found) == 5
        assert host.figures().no_match == {("pairs", "1"): {"n": 5}}
        assert count(host, "outbox WHERE kind = 'no_match'") == 5
        assert count(host, "matches_pairs") == count(host, "outbox WHERE kind = 'match'") == 1
        assert "cause" not in host.sql("SELECT * FROM matches_pairs").column_names


def test_not_asked_for(url: str) -> None:
    """Without the output there is no table, and no row of the outbox; a later version may ask for it."""
    with open_host(url) as host:
        host.input("events", SCHEMA, time="at", sequence="id")
        host.deploy(PATTERN, input="events", key="user")
        host.feed(events(*"aan"), input="events")
        assert count(host, "outbox") == 0
        later = Pattern(PATTERN.stages, name="pairs", version="2", window=PATTERN.window)
        host.deploy(later, input="events", key="user", outputs=ALL, old="drop")
        host.feed(events(*"an", after=3), input="events")
        rows = host.sql("SELECT version, cause FROM no_match_pairs").to_pylist()
        assert rows == [{"version": "2", "cause": "n"}]


def test_draining(url: str) -> None:
    """A version that drains gives rows for what a negation ends of it."""
    with prepared(url) as host:
        host.feed(events("a"), input="events")
        later = Pattern(PATTERN.stages, name="pairs", version="2", window=PATTERN.window)
        host.deploy(later, input="events", key="user", outputs=ALL, old="drain")
        host.feed(events(*"an", after=1), input="events")
        versions = host.sql("SELECT version FROM no_match_pairs ORDER BY version").column(0).to_pylist()
        assert versions == ["1", "2"]


def test_retained(url: str) -> None:
    """The table keeps as many rows as it is asked to, and at most a tenth more."""
    with prepared(url, retain_rows=10) as host:
        for number in range(40):
            host.feed(events(*"an", after=2 * number), input="events")
        assert 10 <= count(host, "no_match_pairs") <= 11


def test_subscribed(url: str) -> None:
    """A subscription may choose them by their kind and cause."""
    letters: list[Letter] = []
    with prepared(url) as host:
        host.subscribe("ended", to=letters.append, where="kind = 'no_match' AND cause = 'n'")
        host.feed(events(*"anab"), input="events")
        assert host.deliver()
    assert [letter.row["cause"] for letter in letters] == ["n"]


def test_without_a_negation(url: str) -> None:
    """A pattern without a negation may ask for them among other outputs: its table stays empty."""
    with prepared(url, PAIRS) as host:
        host.feed(events(*"ab"), input="events")
        assert count(host, "no_match_pairs") == 0
        assert count(host, "matches_pairs") == 1
