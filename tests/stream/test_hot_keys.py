"""The hottest keys of a stream, from a sample of the events that are packed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.stream.test_packing import COLUMNS, LAYOUT, A, plans, shipped

from cepheid.hosts.spark.stream.load import hot_keys
from cepheid.hosts.spark.stream.load.hot_keys import (
    LISTED,
    Counted,
    HotKey,
    KeySample,
    KeySampler,
    from_texts,
    key_hash,
    merged,
    to_text,
)
from cepheid.hosts.spark.stream.packing import pack
from cepheid.hosts.spark.stream.placement import Placement


@pytest.fixture(autouse=True)
def _the_same_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hot_keys, "_CHANCE", np.random.default_rng(1))


def sampled(*columns: pa.Array, show: bool = True, shards: int = 4) -> KeySample:
    """The sample of events with these keys, in shards by row."""
    sampler = KeySampler(show=show)
    sampler.add(columns, np.arange(len(columns[0])) % shards)
    return sampler.sample


def keys_of(share: float, events: int = 300_000, others: int = 20_000) -> pa.Array:
    """Events of which this share has the key "hot", and the others have one of many keys, at random."""
    chance = np.random.default_rng(1)
    names = [f"key {number}" for number in chance.integers(0, others, events)]
    return pa.array(
        ["hot" if is_hot else name for is_hot, name in zip(chance.random(events) < share, names, strict=True)]
    )


def test_one_percent() -> None:
    """One percent of the events is sampled. A hot key is found with its share; keys with few events are not listed."""
    sample = sampled(keys_of(0.1))
    assert sample.events == 3000
    ((key, _, share),) = sample.hottest
    assert key == "hot"
    assert share == pytest.approx(0.1, abs=0.04)
    assert sample.number is None
    assert not sample.complete
    assert sampled(keys_of(0)).hottest == ()


def test_few_events_are_sampled_at_random() -> None:
    """Of a few events at a time, one percent is sampled on average."""
    sampler = KeySampler(show=True)
    for _ in range(3000):
        sampler.add([pa.array(["a"] * 200)], np.zeros(200, np.int32))
    assert sampler.sample.events == pytest.approx(6000, rel=0.5)
    sampler.add([pa.array([], pa.string())], np.zeros(0, np.int32))


def test_keys_are_hashed_unless_asked_for() -> None:
    """Without `show`, a key is named by a hash that is the same everywhere."""
    (shown,) = sampled(keys_of(0.5)).hottest
    (hashed,) = sampled(keys_of(0.5), show=False).hottest
    assert shown.key == "hot"
    assert hashed.key == key_hash(("hot",)) == "f0db7dea07632d4f"


def test_all_types_of_keys() -> None:
    """Keys may have several columns, of any type, also nested ones. Each key has its shard."""
    events = 300_000
    numbers = pa.array([number % 4 for number in range(events)])
    nested = pa.StructArray.from_arrays([pa.array([number % 2 for number in range(events)])], names=["x"])
    sample = sampled(numbers, nested)
    assert {key.key: key.shard for key in sample.hottest} == {
        "0, {'x': 0}": 0,
        "1, {'x': 1}": 1,
        "2, {'x': 0}": 2,
        "3, {'x': 1}": 3,
    }
    assert sample.number == 4
    assert len(sampled(numbers, nested, show=False).hottest) == 4


def test_no_key() -> None:
    """Without a key nothing is sampled."""
    sampler = KeySampler(show=False)
    sampler.add([], np.zeros(100_000, np.int32))
    assert sampler.sample == KeySample()
    assert KeySample().hottest == ()
    assert KeySample().number is None


def test_samples_of_several_tasks() -> None:
    """What tasks report of a key is added up; only the keys that were sampled most stay listed."""
    one, two = KeySample(100, {"a": Counted(3, 50), "b": Counted(1, 9)}), KeySample(60, {"a": Counted(3, 30)})
    both = KeySample(160, {"a": Counted(3, 80), "b": Counted(1, 9)})
    assert merged([one, two]) == both
    assert both.hottest == (HotKey("a", 3, 0.5), HotKey("b", 1, 9 / 160))
    assert both.number == 2
    many = KeySample(1000, {f"k{number}": Counted(0, 20) for number in range(LISTED)})
    assert len(merged([many, both]).keys) == LISTED
    assert not merged([many, both]).complete
    assert merged([KeySample(9, {"a": Counted(0, 7)}, complete=False)]).number is None


def test_reports() -> None:
    """A report as text has the same samples, and the time of packing."""
    sample = KeySample(100, {"a": Counted(3, 50)}, complete=False)
    texts = [to_text({"pair": sample, "none": KeySample()}, 5_000_999), to_text({"pair": sample}, 1_000)]
    assert from_texts(texts) == ({"pair": merged([sample, sample])}, 5001)
    assert from_texts([]) == ({}, 0)


def test_packing_reports() -> None:
    """A task that packs events reports its sample in a last row, which calls no shard; one without events does not."""
    events = pa.concat_batches([shipped(*[("a", number, 1, 2) for number in range(1000)])] * 300)
    *_, last = pack(
        iter([events]), (LAYOUT, COLUMNS, "stages", plans(A), Placement(4, even=True), True, (0,), ("pair",))
    )
    (row,) = last.to_pylist()
    samples, microseconds = from_texts([row.pop("_figures")])
    assert row == {"_shard": None, "_events": None, "_error": None, "_count": 300_000}
    assert microseconds > 0
    (found,) = samples["pair"].hottest
    assert (found.shard, found.share) == (2, 1)
    assert [
        *pack(iter([]), (LAYOUT, COLUMNS, "stages", plans(A), Placement(4, even=True), True, (0,), ("pair",)))
    ] == []
