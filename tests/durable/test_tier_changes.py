"""Patterns over the matches of others, while these change."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from tests.durable.test_stores import PAIRS, SCHEMA, START, count, events

import cepheid
from cepheid.errors import SchemaError
from cepheid.host import Host, MatchesOf, open_host

TWO = cepheid.Pattern.begin("x", name="two").followed_by("y").where("n > x.n").within("1 hour")
MEASURES = {"n": "b.id"}


def prepared(url: str, **of_two: Any) -> Host:
    """A host in which `two` finds two matches of `pairs`, one after the other."""
    host = open_host(url)
    host.input("events", SCHEMA, time="at", sequence="id")
    host.deploy(PAIRS, input="events", key="user", measures=MEASURES)
    host.deploy(TWO, input=MatchesOf(("pairs",)), **of_two)
    return host


@pytest.mark.parametrize("old", ["drain", "drop"])
def test_a_new_version_of_what_it_reads(url: str, old: Any) -> None:
    """It takes the matches of the new version, in the same step, and of an old one that drains."""
    with prepared(url) as host:
        host.feed(events(*"aba"), input="events")
        host.deploy(PAIRS.named("pairs", version="2"), input="events", key="user", measures=MEASURES, old=old)
        host.feed(events(*"ab", after=3), input="events")
    with open_host(url) as host:
        host.feed(events(*"ab", after=5), input="events")
        host.advance_time(START + timedelta(hours=1), input="events")
        assert count(host, "matches_two") == (3 if old == "drain" else 2)


def test_without_what_it_reads(url: str) -> None:
    """If what it reads is retired, it gets no more matches, and its time goes on."""
    with prepared(url, outputs=("matches", "timeouts")) as host:
        host.feed(events(*"ab"), input="events")
        host.retire("pairs", how="drop")
        host.feed(events(*"ab", after=2), input="events")
    with open_host(url) as host:
        host.advance_time(START + timedelta(hours=2))
        assert (count(host, "matches_two"), count(host, "timeouts_two")) == (0, 1)


def test_a_version_that_does_not_fit(url: str) -> None:
    """Without a column that it needs, or with a column of another type, a new version is refused; all is said."""
    pairs = PAIRS.named("pairs", version="2")
    with prepared(url) as host:
        with pytest.raises(SchemaError, match=r"'two' reads the matches of 'pairs', and needs column 'n': add it to"):
            host.deploy(pairs, input="events", key="user", measures={"m": "b.id"}, old="drain")
        with pytest.raises(SchemaError, match="and takes column 'n' as int64; here it is string"):
            host.deploy(pairs, input="events", key="user", measures={"n": "b.what"}, old="drain")
        with pytest.raises(SchemaError, match="'two' reads the matches of 'pairs': add 'matches' to the outputs"):
            host.deploy(pairs, input="events", key="user", measures=MEASURES, outputs=("late",), old="drain")
        host.feed(events(*"abab"), input="events")
        host.advance_time(START + timedelta(hours=1), input="events")
        assert count(host, "matches_two") == 1


def test_what_is_retired(url: str) -> None:
    """A tier over a pattern that was retired, or drains, is refused with what to do; then it is accepted."""
    with prepared(url) as host:
        host.deploy(PAIRS.named("others"), input="events", key="user", measures=MEASURES)
        host.feed(events("a"), input="events")
        host.retire("pairs", how="drop")
        host.retire("others", how="drain")
        over = MatchesOf(("pairs", "others", "none"))
        with pytest.raises(SchemaError) as refused:
            host.deploy(TWO.named("three"), input=over)
        again = "retired or drains, so it begins no more matches: deploy it with a new version first"
        assert str(refused.value).splitlines() == [
            f"pattern 'pairs', whose matches are the input, is {again}",
            f"pattern 'others', whose matches are the input, is {again}",
            "pattern 'none', whose matches are the input, is not deployed: deploy it first",
        ]
        host.deploy(PAIRS.named("pairs", version="2"), input="events", key="user", measures=MEASURES)
        host.deploy(TWO.named("three"), input=MatchesOf(("pairs",)))


def test_its_own_matches(url: str) -> None:
    """No pattern takes its own matches as events, through other patterns either."""
    with prepared(url) as host:
        with pytest.raises(SchemaError, match="own matches as events: 'pairs' reads 'two' reads 'pairs'"):
            host.deploy(PAIRS.named("pairs", version="2"), input=MatchesOf(("two",), raw="events"), old="drop")
        with pytest.raises(SchemaError, match="own matches as events: 'two' reads 'two'"):
            host.deploy(TWO.named("two", version="2"), input=MatchesOf(("two",)), old="drop")


def test_another_input(url: str) -> None:
    """Once no version reads an input any more, its time does not hold up the matches."""
    with prepared(url) as host:
        host.input("others", SCHEMA, time="at", sequence="id")
        host.deploy(PAIRS.named("pairs", version="2"), input="others", key="user", measures=MEASURES, old="drop")
        host.feed(events(*"abab"), input="others")
        host.advance_time(START + timedelta(hours=1), input="others")
        assert count(host, "matches_two") == 1


def test_times_of_several_zones(url: str) -> None:
    """Matches of inputs in several zones are in the order of their instants, in the outbox too."""
    with open_host(url) as host:
        for zone in ("UTC", "Asia/Tokyo"):
            local = SCHEMA.set(1, pa.field("at", pa.timestamp("us")))
            host.input(zone, local, time="at", sequence="id", time_zone=zone)
            host.deploy(PAIRS.named(zone[-5:]), input=zone, key="user", measures=MEASURES)
        host.deploy(TWO, input=MatchesOf(("UTC", "Tokyo")))
        for zone, after in (("UTC", 0), ("Asia/Tokyo", 2)):
            table = events(*"ab", after=after)
            hours = timedelta(hours=9 if zone != "UTC" else 0)
            at = pa.array([(one + hours).replace(tzinfo=None) for one in table.column("at").to_pylist()])
            host.feed(table.set_column(1, "at", at), input=zone)
        host.advance_time(START + timedelta(hours=1))
        assert count(host, "matches_two") == 1
        found = host.sql("SELECT pattern FROM outbox ORDER BY number").column(0).to_pylist()
        assert found == ["UTC", "Tokyo", "two"]
        assert host.figures().outbox_age > 0


def test_dropping_what_drains(url: str) -> None:
    """A version that drains can be dropped."""
    with prepared(url) as host:
        host.feed(events("a"), input="events")
        host.retire("pairs", how="drain")
        assert count(host, "open_pairs") == 1
        with pytest.raises(SchemaError, match=r"^pattern 'pairs' drains already: drop it to end it now"):
            host.retire("pairs", how="drain")
        host.retire("pairs", how="drop")
        assert count(host, "open_pairs") == 0


def test_versions_with_other_measures(url: str) -> None:
    """If two versions find something in one step, the rows of both are returned."""
    with prepared(url) as host:
        host.feed(events("a"), input="events")
        measures = MEASURES | {"more": "a.id"}
        host.deploy(PAIRS.named("pairs", version="2"), input="events", key="user", measures=measures, old="drain")
        host.feed(events("a", after=1), input="events")
        rows = host.feed(events("b", after=2), input="events").rows["pairs"]
        assert sorted(rows.column("more").to_pylist(), key=str) == [1, None]


def test_matches_of_a_version_that_takes_kept_events(url: str) -> None:
    """What a new version finds in kept events reaches those who read its matches: in time if it is of the present
    instant, else late, which is counted; and so on through further patterns. What was found before is not sent again.
    """
    each = cepheid.Pattern.begin("m", name="each")
    with open_host(url) as host:
        host.input("events", SCHEMA, time="at", sequence="id", keep="1 hour")
        host.deploy(PAIRS, input="events", key="user", measures=MEASURES)
        tier = {"measures": {"n": "m.n"}, "outputs": ("matches", "late")}
        host.deploy(each, input=MatchesOf(("pairs",)), **tier)
        host.deploy(each.named("above"), input=MatchesOf(("each",)), **tier)
        host.feed(events(*"abcbac"), input="events")
        assert tables(host) == {"matches_each": [1], "late_each": 0, "matches_above": [1]}
        other = cepheid.Pattern.begin("a", name="pairs", version="2").where("what = 'a'")
        other = other.followed_by_any("b").where("what != 'a'").within("3 minutes")  # 0 1, 0 2 and 4 5
        host.deploy(other, input="events", key="user", measures=MEASURES, old="drop", since=START)
        assert host.figures().patterns["each", "1"]["late"] == 1
        assert tables(host)["late_each"] == 1
    with open_host(url) as host:
        host.advance_time(START + timedelta(hours=1), input="events")
        assert tables(host) == {"matches_each": [1, 5], "late_each": 1, "matches_above": [1, 5]}


def tables(host: Host) -> dict[str, Any]:
    """What the tiers have found, and how many matches were late for the lower one."""
    found: dict[str, Any] = {"late_each": count(host, "late_each")}
    for name in ("matches_each", "matches_above"):
        found[name] = host.sql(f"SELECT n FROM {name} ORDER BY n").column("n").to_pylist()
    return found
