"""Other hosts as targets: tiers over hosts of different kinds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from tests.durable.routing.hosts import find, opened, subscriptions, tier_opened
from tests.durable.test_commands import started
from tests.durable.test_stores import count

import cepheid
from cepheid.errors import SchemaError
from cepheid.host import Host, InputOf, open_host
from cepheid.hosts.durable import lock

GROUPS = pa.schema([("at", pa.timestamp("us")), ("pattern", pa.string()), ("id", pa.int64()), ("kind", pa.string())])


def test_in_one_program(new_store: Callable[[], str], tmp_path: Path) -> None:
    """Matches are events of a host of another kind that the program has open, each exactly once."""
    with opened(new_store()) as host, tier_opened(f"duckdb:///{tmp_path}/tier") as tier:
        host.subscribe("tier", to=InputOf(tier, "pairs"))
        find(host, 1, 3, 5)
        assert host.deliver()
        assert count(tier, "matches_growing") == 2
        assert tier.inputs["pairs"].position == {"subscription tier": 3}
        host.unsubscribe("tier")
        host.subscribe("tier", to=InputOf(tier, "pairs"), after=0)
        find(host, 7)
        assert host.deliver()
        assert tier.inputs["pairs"].events == 4
        assert count(tier, "matches_growing") == 3


def test_by_its_url(new_store: Callable[[], str], tmp_path: Path) -> None:
    """A host that nobody runs is opened for each feed."""
    tier = f"sqlite:///{tmp_path}/tier.db"
    tier_opened(tier).close()
    with opened(new_store(), tier) as host:
        host.subscribe("tier", to=f"{tier}#pairs")
        find(host, 1, 3)
        assert host.deliver()
    with tier_opened(tier) as other:
        assert count(other, "matches_growing") == 1


def test_its_own_store(new_store: Callable[[], str]) -> None:
    """A host is no target of its own: it could not take the events while it waits for their delivery."""
    own = new_store()
    with (
        opened(own, own) as host,
        pytest.raises(SchemaError, match=r"^to: this is the host's own store: deploy patterns with MatchesOf as input"),
    ):
        host.subscribe("tier", to=f"{own}#events")


def test_that_runs(tmp_path: Path) -> None:
    """A host that another process runs gets its events by its socket, and finds patterns in them."""
    url = f"sqlite:///{tmp_path}/tier.db"
    tier_opened(url).close()
    with opened(f"sqlite:///{tmp_path}/first.db", url) as host:
        host.subscribe("tier", to=f"{url}#pairs", pause="10 milliseconds")
        with started(url):
            find(host, 1, 3)
            assert host.deliver()
        find(host, 5)
        assert host.deliver()
    with tier_opened(url) as tier:
        assert count(tier, "matches_growing") == 2


def test_that_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another host cannot be reached, the subscription tries again and gives up nothing."""
    monkeypatch.setattr(lock, "PATIENCE", 0.1)
    url = f"sqlite:///{tmp_path}/tier.db"
    with tier_opened(url) as tier, opened(f"sqlite:///{tmp_path}/first.db", url) as host:
        host.subscribe("tier", to=f"{url}#nothing", attempts=1, pause="10 milliseconds")
        find(host, 1, 3)
        assert not host.deliver("1 second")
        assert "another host has the store" in subscriptions(host)["tier"]["problem"]
        assert (subscriptions(host)["tier"]["status"], host.dead_letters.num_rows) == ("failing", 0)
        tier.close()
        assert not host.deliver("1 second")
        problem = subscriptions(host)["tier"]["problem"]
        assert problem == "the host has no input 'nothing'. It has: pairs"


def test_columns(tmp_path: Path) -> None:
    """An event has the time of the detection in the zone of the input, the pattern, and what both have by name; what
    the other host refuses becomes a dead letter, and the others go on.
    """
    with opened(f"sqlite:///{tmp_path}/first.db") as host, open_host(f"sqlite:///{tmp_path}/tier.db") as tier:
        tier.input("pairs", GROUPS, time="at", time_zone="Europe/Berlin")
        tier.deploy(
            cepheid.Pattern.begin("x", name="divided").where("10 / (id - 3) < 100 AND pattern = 'pairs'"),
            input="pairs",
            measures={"at": "x.at", "id": "x.id", "what": "x.kind"},
        )
        host.subscribe("tier", to=InputOf(tier, "pairs"))
        find(host, 1, 3, 5)
        assert host.deliver()
        (dead,) = host.dead_letters.to_pylist()
        assert (dead["number"], dead["attempts"]) == (2, 1)
        assert "10 / (id - 3)" in dead["problem"]
        tier.advance_time("2024-03-04 12:00:00")
        rows = tier.sql("SELECT at, id, what FROM matches_divided ORDER BY id").to_pylist()
        assert rows == [
            {"at": "2024-03-04T11:01:00.000000", "id": 1, "what": "match"},
            {"at": "2024-03-04T11:05:00.000000", "id": 5, "what": "match"},
        ]


def test_beside_raw_events(tmp_path: Path) -> None:
    """An input may get matches of another host and events of a source, with a position for each."""
    with opened(f"sqlite:///{tmp_path}/first.db") as host, _mixed(f"duckdb:///{tmp_path}/tier") as tier:
        host.subscribe("tier", to=InputOf(tier, "mixed"))
        raw = pa.table({"at": ["2024-03-04T10:02:30Z"], "pattern": [None], "id": [2], "kind": ["raw"]})
        find(host, 1)
        assert host.deliver()
        tier.feed(raw.set_column(0, "at", raw["at"].cast(pa.timestamp("us", "UTC"))), input="mixed", position={"0": 1})
        find(host, 3)
        assert host.deliver()
        tier.advance_time("2024-03-04T12:00:00Z")
        assert tier.inputs["mixed"].position == {"subscription tier": 2, "0": 1}
        assert tier.sql("SELECT first, raw FROM matches_beside").to_pylist() == [{"first": 1, "raw": 2}]


def _mixed(url: str) -> Host:
    tier = open_host(url)
    columns = [("at", pa.timestamp("us", "UTC")), ("pattern", pa.string()), ("id", pa.int64()), ("kind", pa.string())]
    tier.input("mixed", pa.schema(columns), time="at", lateness="10 minutes")
    beside = cepheid.Pattern.begin("x", name="beside").where("pattern = 'pairs'").followed_by("y").where("kind = 'raw'")
    tier.deploy(beside, input="mixed", measures={"first": "x.id", "raw": "y.id"})
    return tier
