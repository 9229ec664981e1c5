"""Events that go through Spark's shuffle in blocks: what is packed comes out whole, and in order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.errors import EventError
from cepheid.events.batch import DEFERRED
from cepheid.events.narrow import narrowed, widened
from cepheid.hosts.spark.batch.blocks import order as blocks_order
from cepheid.hosts.spark.batch.blocks.form import PARTS_OF_BLOCKS, TARGET, in_parts, whole_blocks
from cepheid.hosts.spark.batch.blocks.order import ordered_batches
from cepheid.hosts.spark.batch.blocks.pack import Packing, pack
from cepheid.kernel.order_of_columns import order_of_columns

LAYOUT = (("_key0", "c0"), ("_time", "c1"), ("_sequence0", "c2"), ("_event.text", "c3"))
ORDER = [("c0", "ascending"), ("c1", "ascending"), ("c2", "ascending")]


def events(count: int, *, keys: int = 5, seed: int = 1, nulls: bool = False) -> pa.RecordBatch:
    """Events of some keys in any order, each with a text of its own."""
    random = np.random.default_rng(seed)
    numbers = pa.array(random.permutation(count), mask=random.random(count) < 0.2 if nulls else None)
    at = pa.array(random.integers(0, max(1, count // 3), count)).cast(pa.timestamp("us", "UTC"))
    texts = [f"{seed}: event {number}" for number in range(count)]
    return pa.record_batch({"c0": random.integers(0, keys, count), "c1": at, "c2": numbers, "c3": texts})


def ordered(blocks: list[pa.RecordBatch], **options: Any) -> pa.Table:
    """The events that a matcher gets, with the shipped names."""
    batches = [batch.whole.data for batch in ordered_batches(blocks, LAYOUT, **options)]
    found = pa.Table.from_batches(batches).select([name for name, _ in LAYOUT])
    return found.rename_columns([shipped for _, shipped in LAYOUT])


def expected(blocks: list[pa.RecordBatch]) -> pa.Table:
    table = pa.Table.from_batches(blocks)
    return table.take(pc.sort_indices(table, sort_keys=ORDER))


@given(st.lists(st.integers(1, 90), min_size=1, max_size=6), st.integers(40, 4000), st.booleans())
def test_sorted_in_memory_or_in_files(sizes: list[int], most: int, nulls: bool) -> None:  # noqa: FBT001 - drawn
    """The events are in the same order, whether all fit the memory or only some at once."""
    blocks = [events(size, seed=seed, nulls=nulls) for seed, size in enumerate(sizes)]
    for found in (ordered(blocks), ordered(blocks, most=most)):
        assert found.select(["c0", "c1", "c2"]) == expected(blocks).select(["c0", "c1", "c2"])
        assert sorted(found["c3"].to_pylist()) == sorted(expected(blocks)["c3"].to_pylist())


def test_merged_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of many pieces are merged piece by piece."""
    monkeypatch.setattr("cepheid.hosts.spark.batch.blocks.order._PIECE", 300)
    blocks = [events(200, seed=seed, keys=3 + seed) for seed in range(5)]
    batches = [*ordered_batches(blocks, LAYOUT, most=blocks[0].nbytes + 1)]
    assert len(batches) > 20
    assert max(map(len, batches)) < 60
    assert ordered(blocks, most=blocks[0].nbytes + 1) == expected(blocks)


def test_many_runs_are_merged_in_few_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many runs there are, an event is sorted a few times, not once for each run."""
    sizes = list[int]()

    def counted(columns: list[pa.Array], length: int) -> Any:
        sizes.append(length)
        return order_of_columns(columns, length)

    monkeypatch.setattr(blocks_order, "_PIECE", 500)
    monkeypatch.setattr(blocks_order, "order_of_columns", counted)
    blocks = [events(200, seed=seed) for seed in range(40)]
    assert ordered(blocks, most=1) == expected(blocks)
    assert sum(sizes) < 10 * 40 * 200


def test_what_only_rows_need_is_not_moved() -> None:
    """Batches sorted in memory have the rows of the chosen columns, not the columns."""
    (batch,) = ordered_batches([events(50)], LAYOUT)
    assert "_event.text" not in batch.data.schema.names
    assert sorted(batch.column(DEFERRED).to_pylist()) == [*range(50)]


@given(st.integers(1, 400), st.integers(1, 9), st.integers(200, 5000), st.randoms())
def test_parts_in_any_order(count: int, targets: int, part: int, random: Any) -> None:
    """Whatever the order in which the parts of blocks come, each event arrives once, at its target."""
    given_events = events(count)
    target = pa.array(np.random.default_rng(count).integers(0, targets, count).astype(np.int32))
    labels = tuple(100 + number for number in range(targets))
    packed = [*pack(iter([given_events.append_column(TARGET, target)]), tuple(Packing(labels, part)))]
    rows = pa.Table.from_batches(packed, PARTS_OF_BLOCKS)
    assert max(map(len, rows["bytes"].to_pylist())) <= part
    mixed = rows.take(pa.array(random.sample(range(rows.num_rows), rows.num_rows)))
    for number, label in enumerate(labels):
        found = [*whole_blocks(mixed.filter(pc.field(TARGET) == label).to_batches())]
        wanted = given_events.filter(pc.equal(target, number))
        assert pa.Table.from_batches(found, wanted.schema) == pa.Table.from_batches([wanted])


def test_wide_events_are_packed_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch with too many bytes is packed piece by piece."""
    monkeypatch.setattr("cepheid.hosts.spark.batch.blocks.pack._GATHERED_BYTES", 1000)
    target = pa.array(np.zeros(300, np.int32))
    packed = [*pack(iter([events(300).append_column(TARGET, target)]), tuple(Packing((7,), 1 << 20)))]
    assert len(packed) > 5
    assert pa.Table.from_batches([*whole_blocks(packed)]) == pa.Table.from_batches([events(300)])


def test_a_lost_part_is_an_error() -> None:
    """A block without one of its parts is not silently left out."""
    parts = in_parts([(0, events(100))], 0, 500)
    with pytest.raises(EventError, match="1 block of events came without all its parts"):
        [*whole_blocks([parts.slice(1)])]


def narrow_types(events: pa.RecordBatch, parts: int = 1) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in narrowed(events, parts).schema}


def test_narrow_columns() -> None:
    """Whole numbers and times are distances from the least one, and texts that repeat are numbers of distinct ones."""
    numbers = np.arange(300)
    given_events = pa.record_batch(
        {
            "byte": 10**15 + numbers // 2,
            "negative": -numbers * 100,
            "wide": numbers * 10**12,
            "at": pa.array(numbers * 10**6).cast(pa.timestamp("us", "UTC")),
            "day": pa.array(numbers.astype(np.int32)).cast(pa.date32()),
            "repeated": [f"text {number % 7}" for number in numbers],
            "distinct": [f"text {number}" for number in numbers],
            "price": numbers / 7,
        }
    )
    assert narrow_types(given_events) == {
        "byte": pa.uint8(),
        "negative": pa.uint16(),
        "wide": pa.int64(),
        "at": pa.uint32(),
        "day": pa.uint16(),
        "repeated": pa.dictionary(pa.uint8(), pa.string()),
        "distinct": pa.string(),
        "price": pa.float64(),
    }
    assert widened(narrowed(given_events, 1)) == given_events


_NUMBERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.date32(), pa.timestamp("us"), pa.duration("us")]


@given(st.data(), st.sampled_from(_NUMBERS))
def test_numbers_come_back_from_narrow_columns(data: st.DataObject, type_: pa.DataType) -> None:
    """Also at the ends of a type's range, with NULLs, and from some of the rows."""
    bits = type_.bit_width
    numbers = st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
    near = data.draw(numbers)
    close = st.integers(max(near - 300, -(1 << bits - 1)), min(near + 300, (1 << bits - 1) - 1))
    values = data.draw(st.lists(st.none() | close, max_size=40) | st.lists(st.none() | numbers, max_size=40))
    column = pa.array(values, {32: pa.int32(), 64: pa.int64()}.get(bits, type_)).view(type_)
    events_ = pa.record_batch({"c0": column})
    rows = data.draw(st.lists(st.integers(0, len(values) - 1))) if values else []
    taken = pa.array(rows, pa.int64())
    assert widened(narrowed(events_, 1).take(taken)) == events_.take(taken)


@given(st.lists(st.none() | st.sampled_from(["", "a", "äöü", "long " * 9]), max_size=600), st.booleans())
def test_texts_come_back_from_narrow_columns(values: list[str | None], as_bytes: bool) -> None:  # noqa: FBT001 - drawn
    texts = pa.record_batch({"c0": pa.array(values, pa.string()).cast(pa.binary() if as_bytes else pa.string())})
    assert widened(narrowed(texts, 1)) == texts


def test_equal_columns_are_stored_once() -> None:
    """Times of different zones, too, but not doubles: 0.0 and -0.0 are equal. A column of NULLs takes no bytes."""
    at = pa.array([3, None, 5], pa.int64())
    given_events = pa.record_batch(
        {
            "at": at.view(pa.timestamp("us", "UTC")),
            "local": at.view(pa.timestamp("us")),
            "key": at,
            "other": pa.array([3, 4, 5], pa.int64()),
            "text": ["a", "b", "c"],
            "again": ["a", "b", "c"],
            "bytes": pa.array([b"a", b"b", b"c"]),
            "zero": [0.0, 0.0, 0.0],
            "minus": [-0.0, 0.0, 0.0],
            "nothing": pa.nulls(3, pa.float64()),
            "dictionary": pa.array(["a", "b", "a"]).dictionary_encode(),
        }
    )
    assert [*narrow_types(given_events)] == ["at", "other", "text", "bytes", "zero", "minus", "nothing", "dictionary"]
    back = widened(narrowed(given_events, 1))
    assert back == given_events
    assert np.signbit(back.column("minus")[0].as_py())


def test_other_events_are_not_widened() -> None:
    assert widened(events(5)) == events(5)


def test_texts_stay_as_they_are_if_their_numbers_save_little() -> None:
    """Each part has all distinct texts of the events that are packed with it."""
    given_events = pa.record_batch({"c0": [f"text {number % 500}" for number in range(3_000)]})
    assert pa.types.is_dictionary(narrow_types(given_events)["c0"])
    assert narrow_types(given_events, parts=200) == {"c0": pa.string()}
    many = pa.record_batch({"c0": [f"text {number}" for number in np.random.default_rng(1).integers(0, 3_000, 20_000)]})
    assert pa.types.is_dictionary(narrow_types(many)["c0"])
    assert narrow_types(many, parts=4) == {"c0": pa.string()}
    assert widened(narrowed(given_events, 200)) == given_events


_UNDER_A_LIMIT = """
import sys
import numpy as np, pyarrow as pa
from cepheid.hosts.spark.batch.blocks.order import ordered_batches
from cepheid.hosts.worker_memory import bound_memory

LAYOUT = (("_key0", "c0"), ("_time", "c1"), ("_event.text", "c2"))
def blocks():
    random = np.random.default_rng(1)
    for _ in range(60):
        at = pa.array(random.integers(0, 1 << 40, 20_000)).cast(pa.timestamp("us", "UTC"))
        texts = pa.array(["x" * 400] * 20_000)
        yield pa.record_batch({"c0": random.integers(0, 2, 20_000), "c1": at, "c2": texts})

pa.set_memory_pool(pa.system_memory_pool())
[*ordered_batches([next(blocks())], LAYOUT)]
bound_memory(400 << 20)
print(sum(map(len, ordered_batches(blocks(), LAYOUT, most=int(sys.argv[1])))))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory can be bound on Linux only")
def test_a_partition_larger_than_the_memory(tmp_path: Path) -> None:
    """A partition of 500 MB is sorted in 400 MB, with files that do not remain; it would not fit."""
    environment = {"SPARK_LOCAL_DIRS": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(Path.home())}

    def sort(most: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", _UNDER_A_LIMIT, str(most)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    spilled = sort(30 << 20)
    assert spilled.stdout.strip() == "1200000", spilled.stderr
    assert not [*tmp_path.iterdir()]
    in_memory = sort(1 << 40)
    assert in_memory.returncode != 0
    assert "MemoryError" in in_memory.stderr
