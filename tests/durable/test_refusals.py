"""What a host refuses: with all problems at once, and the store as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from tests.durable.test_stores import PAIRS, SCHEMA, count, events, prepared

import cepheid
from cepheid.errors import EventError, PatternError, SchemaError, StoreError
from cepheid.host import Host, open_host
from cepheid.hosts.durable.state import MatchesOf


def pattern(first: str = "what = 'a'", second: str = "what = 'b'") -> cepheid.Pattern:
    return cepheid.Pattern.begin("a", name="other").where(first).followed_by("b").where(second).within("1 hour")


DEPLOYS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a wrong pattern": (
        {
            "pattern": pattern("wat = 1", "whot = 2"),
            "key": ("user", "nokey"),
            "columns": "none",
            "measures": {"m": "a.zz"},
            "promote": {"p": "a.yy"},
        },
        [
            "'nokey'",
            "'none'",
            "'wat' (stage 'a'",
            "'whot' (stage 'b'",
            "'zz' (measure 'm'",
            "'yy' (promoted column 'p'",
        ],
    ),
    "promoted columns that do not exist": (
        {"promote": {"p": "a.yy", "q": "c.id"}},
        ["no column named 'yy' (promoted column 'p'", "no column or stage named 'c' (promoted column 'q'"],
    ),
    "a promoted column of the key": ({"promote": {"user": "a.what"}}, ["'user' has the name of another column"]),
    "a promoted column of the table": ({"promote": {"wakeup": "a.id"}}, ["'wakeup' has the name of another column"]),
    "promoted columns alike": ({"promote": {"p": "a.id", "P": "a.what"}}, ["two promoted columns are named 'P'"]),
    "no such input": ({"input": "clicks"}, ["there is no input 'clicks'. The host has: events"]),
    "tiers over nothing": (
        {"input": MatchesOf(("none", "pairs"))},
        ["pattern 'none', whose matches are the input, is not deployed", "pattern 'pairs' has no measures"],
    ),
    "a version that was there": (
        {"pattern": PAIRS},
        ["with version '1' before: give it another one", "Say what becomes of what is open of it"],
    ),
    "kept events that are none": ({"since": "2024-03-04T10:00:00Z"}, ["since: input 'events' keeps no events"]),
}


@pytest.mark.parametrize("case", DEPLOYS)
def test_deployments_refused(url: str, case: str) -> None:
    """A deployment that is refused names all that is wrong with it, and leaves the store and the host as they were."""
    given, messages = DEPLOYS[case]
    arguments: dict[str, Any] = {"pattern": pattern(), "input": "events", "key": "user", **given}
    with prepared(url) as host:
        host.feed(events("a"), input="events", position=1)
        with pytest.raises((PatternError, SchemaError)) as refused:
            host.deploy(arguments.pop("pattern"), **arguments)
        assert [text for text in messages if text not in str(refused.value)] == []
        assert count(host, "patterns") == 1
        with pytest.raises(StoreError):
            host.sql("SELECT * FROM open_other")
        host.feed(events("b", after=1), input="events", position=2)
        assert count(host, "matches_pairs") == 1


def test_long_names(url: str, kind: str) -> None:
    """PostgreSQL cuts names after 63 bytes: measures that are one then are refused, and nothing has changed; others
    have them all.
    """
    start = "m" * 62
    measures = {f"{start}éa": "a.id", f"{start}жb": "b.id"}  # the cut is within the last letter but one
    with prepared(url) as host:
        if kind == "postgresql":
            cut = (
                r"two columns of one name, as the database cuts names after 63 bytes: '(m+éa)' and '(m+жb)'\. Give one"
            )
            with pytest.raises(StoreError, match=cut):
                host.deploy(pattern(), input="events", key="user", measures=measures)
            assert count(host, "patterns") == 1
            measures = {f"{start}é": "a.id", f"{start}x": "b.id"}
        host.deploy(pattern(), input="events", key="user", measures=measures)
        host.feed(events("a", "b"), input="events", position=2)
        assert [*host.sql("SELECT * FROM matches_other").to_pylist()[0].values()][-2:] == [0, 1]


def test_names_that_the_tables_have(url: str) -> None:
    """A key column or a measure may not have the name of a column that the tables have for something else; the message
    also has what else is wrong.
    """
    with open_host(url) as host:
        host.input("events", SCHEMA.append(pa.field("Status", pa.string())), time="at", sequence="id")
        with pytest.raises(SchemaError) as refused:
            host.deploy(pattern("wat = 1"), input="events", key="Status", measures={"version": "a.id"})
        assert "key: the tables of a pattern have a column 'status' of their own" in str(refused.value)
        assert "measure 'version' has the name of another column of the table of matches" in str(refused.value)
        assert "no column named 'wat'" in str(refused.value)
        assert count(host, "patterns") == 0


FEEDS: dict[str, tuple[Callable[[Host], object], type[Exception], str]] = {
    "overlapping": (
        lambda host: host.feed(events("a", "b", "a"), input="events", position=3),
        EventError,
        "events of input 'events' up to 2 are stored already, and some of these 3 events, up to 3, are among them",
    ),
    "of another kind": (
        lambda host: host.feed(events("a"), input="events", position={"0": 3}),
        EventError,
        "the position of input 'events' was 2 and is {'0': 3}: use numbers, or maps",
    ),
    "of another input": (
        lambda host: host.feed(events("a"), input="clicks"),
        SchemaError,
        "there is no input 'clicks'. The host has: events",
    ),
}


@pytest.mark.parametrize("case", FEEDS)
def test_feeds_refused(url: str, case: str) -> None:
    """A feed that is refused changes nothing."""
    feed, kind, message = FEEDS[case]
    with prepared(url) as host:
        host.feed(events("a", "a"), input="events", position=2)
        with pytest.raises(kind) as refused:
            feed(host)
        assert message in str(refused.value)
        assert host.inputs["events"].position == 2
        assert count(host, "open_pairs") == 2


def test_a_position_that_goes_back_is_stored_already(url: str) -> None:
    """Events before the stored position are a repetition: nothing happens, and the host says so."""
    with prepared(url) as host:
        host.feed(events("a", "a"), input="events", position=2)
        assert host.feed(events("a"), input="events", position=1).skipped
        assert host.inputs["events"].position == 2
        assert count(host, "open_pairs") == 2


def test_partitions_that_go_back(url: str) -> None:
    """One partition that goes back while another one advances is an error."""
    with prepared(url) as host:
        host.feed(events("a", "a"), input="events", position={"0": 1, "1": 1})
        with pytest.raises(EventError, match="are stored already"):
            host.feed(events("a", "a", after=2), input="events", position={"0": 0, "1": 4})


def test_what_does_not_run_is_not_retired(url: str) -> None:
    """Retiring a pattern that does not run says which ones do."""
    with prepared(url) as host, pytest.raises(SchemaError, match=r"no pattern 'other' runs\. Known here: pairs"):
        host.retire("other", how="drop")


def test_conditions_in_python(url: str) -> None:
    """A condition in Python cannot be stored, so its pattern is refused."""

    def wanted(event: Any) -> bool:
        return bool(event)

    with prepared(url) as host:
        with pytest.raises(PatternError, match="Python"):
            host.deploy(cepheid.Pattern.begin("a", name="other").where(wanted), input="events", key="user")
        assert count(host, "patterns") == 1
