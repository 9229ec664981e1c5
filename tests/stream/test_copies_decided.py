"""What the driver decides about copies, how the assignment beside a checkpoint is stored, and who owns a start."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stream.test_progress import REPORTED

from cepheid import CopiesChange, SnapshotError, prometheus_text
from cepheid.hosts.spark.stream.copies.assignment import Assignment, Decision, Segment, shares
from cepheid.hosts.spark.stream.copies.deciding import Figures, Loads, in_order_of_load, next_change, without_standby
from cepheid.hosts.spark.stream.copies.folder import CopiesFolder
from cepheid.hosts.spark.stream.listener import with_short
from cepheid.hosts.spark.stream.progress import progress_of

HOT, OTHER = (0, "hot"), (1, "other")


def figures(useful: list[float], shares_: dict[tuple[int, str], float] | None, seconds: float = 5) -> Figures:
    """Of two shards with 900 and 100 events, and two standbys."""
    return Figures(seconds, useful, [900, 100], shares_)


def test_a_hot_key_gets_one_copy_after_the_other() -> None:
    """A load of 3.2 s with a budget of one second needs three copies. Each micro-batch adds one."""
    loads = Loads().after(figures([4.0, 0.1, 0, 0], {HOT: 0.72}), {})
    assert loads.keys == {HOT: pytest.approx(3.2)}
    copies: dict[tuple[int, str], tuple[int, ...]] = {}
    for wanted in ((1,), (1, 0), (1, 0, 2)):
        change = next_change(loads.keys, copies, [1, 0, 2], budget=1)
        assert change is not None
        assert (change.key, change.copies, change.wanted) == (HOT, wanted, 3)
        copies[HOT] = change.copies
    assert next_change(loads.keys, copies, [1, 0, 2], budget=1) is None


def test_a_cooled_key_loses_its_newest_copy() -> None:
    """Between 40 % and 80 % of what its shards may take nothing changes; below, one copy at a time is released."""
    copies = {HOT: (1, 0)}
    assert next_change({HOT: 1.3}, copies, [0, 1], budget=1) is None
    change = next_change({HOT: 0.5}, copies, [0, 1], budget=1)
    assert change is not None
    assert change.copies == (1,)
    change = next_change({}, copies, [0, 1], budget=1)
    assert change is not None
    assert change.copies == (1,)


def test_the_hottest_key_is_first() -> None:
    """One change a micro-batch; of several keys the one with the highest load comes first, with a free standby."""
    change = next_change({HOT: 1.5, OTHER: 1.8}, {HOT: (0,)}, [0, 1], budget=1)
    assert change is not None
    assert (change.key, change.copies) == (OTHER, (1,))


def test_without_standbys_nothing_can_change() -> None:
    assert next_change({HOT: 9.0}, {}, [], budget=1) is None


def test_keys_that_need_more_than_all_standbys() -> None:
    """A key over 80 % of what its shards may take has no free standby if it has a copy in each; the hottest is first.
    One that may still grow, or is within the budget, is not meant.
    """
    loads, copies = {HOT: 2.5, OTHER: 3.0, (2, "grows"): 9.0, (3, "cool"): 2.4}, {(2, "grows"): (0,)}
    both = dict.fromkeys((HOT, OTHER, (3, "cool")), (0, 1))
    assert without_standby(loads, both | copies, 2, budget=1) == [OTHER, HOT]


def test_the_load_of_a_key_includes_its_copies() -> None:
    """A standby that holds copies of two keys counts half for each. Without a sample the parts stay as they were."""
    first = Loads().after(figures([1, 1, 0.5, 0.25], {HOT: 0.9, OTHER: 0.1}), {HOT: (0, 1), OTHER: (1,)})
    assert first.keys == {HOT: pytest.approx(1.625), OTHER: pytest.approx(1.125)}
    assert first.after(figures([1, 1, 0.5, 0.25], None), {HOT: (0, 1), OTHER: (1,)}) == first


def test_loads_are_smoothed_over_five_seconds() -> None:
    """A load that lasted a second counts for a fifth."""
    loads = Loads().after(figures([1, 0, 0, 0], {HOT: 0.9}, 5), {})
    after = loads.after(figures([2, 0, 0, 0], {HOT: 0.9}, 1), {})
    assert after.keys == {HOT: pytest.approx(1.2)}


def test_a_key_that_is_no_longer_sampled_cools() -> None:
    """Its copies count on, and a key without copies is forgotten."""
    loads = Loads().after(figures([1, 1, 0, 0], {HOT: 0.9, OTHER: 0.1}), {})
    assert loads.after(figures([1, 1, 0.3, 0], {}), {HOT: (0,)}).keys == {HOT: pytest.approx(0.3)}


def test_standbys_of_idle_partitions_come_first() -> None:
    assert in_order_of_load({0: 3, 1: 2, 2: 1}, {3: 5.0, 2: 0.1}) == [2, 1, 0]


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=40),
    st.lists(st.tuples(st.integers(0, 25), st.lists(st.integers(0, 3), unique=True)), max_size=5),
    st.integers(1, 8),
)
def test_every_start_has_one_owner(times: list[int], made: list[tuple[int, list[int]]], window: int) -> None:
    """Each event may start partial matches in exactly one place, and whatever follows it within the window comes
    there.
    """
    segments = [Segment(after, tuple(copies)) for after, copies in sorted(made, key=lambda one: one[0])]
    at = np.array(sorted(times))
    hashes = np.arange(len(at), dtype=np.uint64) * np.uint64(7)
    own, copies = shares(at, hashes, segments, window)
    owners = own.astype(int) + sum(share.starts.astype(int) for share in copies.values())
    assert (owners == 1).all()
    for share in copies.values():
        for start in at[share.starts]:
            assert share.needed[(at >= start) & (at <= start + window)].all()


def test_a_start_keeps_its_owner() -> None:
    """Whenever an event comes, later segments do not change who owns it."""
    at, hashes = np.array([3, 9]), np.array([5, 5], np.uint64)
    before = Assignment().after([Decision(0, *HOT, (0,))], 2)
    later = before.after([Decision(0, *HOT, (0, 1))], 7)
    for assignment in (before, later):
        own, copies = shares(at, hashes, assignment.of_pattern(0)[HOT], 10)
        assert not own[0]
        assert copies[0].starts[0]
    assert not shares(at, hashes, later.of_pattern(0)[HOT], 10)[1][0].starts[1]


def test_what_no_longer_matters_is_forgotten() -> None:
    """A released key is forgotten when its partial matches have ended; segments that have ended are."""
    grown = Assignment().after([Decision(0, *HOT, (0,)), Decision(0, *OTHER, (1,))], 10)
    released = grown.after([Decision(0, *HOT, ())], 20).after([Decision(0, *OTHER, (1, 0))], 30)
    assert released.copies(0) == {OTHER: (1, 0)}
    assert released.since({0: 20}) == released
    after = released.since({0: 31})
    assert after.of_pattern(0) == {OTHER: (Segment(30, (1, 0)),)}
    assert after.decisions == 4


def spark_log(checkpoint: Path, batch: int, watermark: int) -> None:
    """The part of Spark's log of a micro-batch that says its watermark, in milliseconds."""
    (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
    metadata = json.dumps({"batchWatermarkMs": watermark, "conf": {}})
    (checkpoint / "offsets" / str(batch)).write_text(f"v1\n{metadata}\n{{}}")


def test_a_repeated_micro_batch_sees_the_same_assignment(tmp_path: Path) -> None:
    """The first task of a micro-batch settles its assignment. What is decided later holds from the next one on, for
    starts after all events received until then.
    """
    folder = CopiesFolder(str(tmp_path))
    windows = {0: 1_000_000}
    for batch, watermark in ((0, 0), (1, 5000), (2, 7000)):
        spark_log(tmp_path, batch, watermark)
    assert not folder.assignment(0, 2000, windows).segments
    folder.decide(Decision(0, *HOT, (1,)))
    assert not folder.assignment(0, 2000, windows).segments
    first = folder.assignment(1, 2000, windows)
    assert first.of_pattern(0) == {HOT: (Segment(5_000_000 + 2000 + 999, (1,)),)}
    folder.decide(Decision(0, *HOT, ()))
    assert CopiesFolder(f"file://{tmp_path}").assignment(1, 2000, windows) == first
    assert folder.of_batch(1) == first
    second = folder.assignment(2, 2000, windows)
    assert [one.copies for one in second.of_pattern(0)[HOT]] == [(1,), ()]
    assert (second.decisions, folder.decisions) == (2, 2)


def test_a_copy_begins_after_all_events_also_with_a_shorter_lateness(tmp_path: Path) -> None:
    """A query that goes on with a shorter lateness has received events that are later than watermark and lateness say:
    a copy begins after these, also some micro-batches later.
    """
    folder = CopiesFolder(str(tmp_path))
    hour, minute = 3_600_000_000, 60_000_000
    spark_log(tmp_path, 0, 0)
    folder.assignment(0, hour, {0: minute})
    for batch in (1, 2):  # the watermark has not moved since
        spark_log(tmp_path, batch, 1000)
        folder.decide(Decision(0, *HOT, (batch,)))
        assignment = folder.assignment(batch, minute, {0: minute})
        assert assignment.of_pattern(0) == {HOT: (Segment(1_000_000 + hour + 999, (batch,)),)}
    spark_log(tmp_path, 3, 2 * hour // 1000)
    folder.decide(Decision(0, *HOT, (3,)))
    assert folder.assignment(3, minute, {0: 3 * hour}).of_pattern(0)[HOT][-1] == Segment(2 * hour + minute + 999, (3,))


def test_assignments_of_the_first_version(tmp_path: Path) -> None:
    """A file that an earlier version wrote, which says nothing about received events, is read."""
    spark_log(tmp_path, 1, 5000)
    file = tmp_path / "copies" / "batches" / "000000000000.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"format": 1, "decisions": 0, "keys": []}')
    assert CopiesFolder(str(tmp_path)).assignment(1, 2000, {}) == Assignment(0, {}, 2000, 5_000_000 + 2999)


def test_old_assignments_are_removed(tmp_path: Path) -> None:
    """Those of the last two hundred micro-batches stay; Spark repeats none before its last hundred."""
    folder = CopiesFolder(str(tmp_path))
    for batch in range(230):
        spark_log(tmp_path, batch, 0)
        folder.assignment(batch, 0, {})
    assert len([*(tmp_path / "copies" / "batches").iterdir()]) == 201


def test_keys_that_are_short_of_standbys(tmp_path: Path) -> None:
    """They are stored for `progress`, also that there are none; what an earlier listener has left does not count."""
    folder, load = CopiesFolder(str(tmp_path)), timedelta(seconds=3.5)
    key = CopiesChange("q", 7, "p", "hot", copies=2, wanted=4, load=load, decided=False, standbys=2)
    assert folder.short(7) is None
    folder.report_short(7, [key])
    assert [CopiesFolder(str(tmp_path)).short(batch) for batch in (6, 7, 8, 9)] == [(key,), (key,), (key,), None]
    folder.report_short(8, [])
    assert [folder.short(batch) for batch in (8, 9, 10)] == [(), (), None]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-9],
        lambda text: f"[{text}]",
        lambda text: text.replace('"format": 1', '"format": 99'),
        lambda text: text.replace('"batch": 7, "keys"', '"keys"'),
        lambda text: text.replace('"wanted"', '"desired"'),
        lambda text: text.replace('"wanted"', '"since": 3, "wanted"'),
        lambda text: text.replace('"load"', '"loads"'),
        lambda text: text.replace('"load": 3.5', '"load": "much"'),
        lambda text: text.replace('"load": 3.5', '"load": 1e300'),
    ],
)
def test_keys_that_are_not_known(tmp_path: Path, damage: Callable[[str], str]) -> None:
    """A file that cannot be used says nothing about keys that are short of standbys, and does no harm."""
    folder, load = CopiesFolder(str(tmp_path)), timedelta(seconds=3.5)
    folder.report_short(7, [CopiesChange("q", 7, "p", "hot", 2, 4, load, decided=False, standbys=2)])
    file = tmp_path / "copies" / "short.json"
    text = file.read_text()
    damaged = damage(text)
    assert damaged != text
    file.write_text(damaged)
    assert folder.short(7) is None


@pytest.mark.parametrize("checkpoint", ["s3://bucket/checkpoint", "/dev/null", "/none\0"])
def test_a_checkpoint_that_the_driver_cannot_read(checkpoint: str) -> None:
    """Progress and Prometheus then say nothing about keys that are short of standbys."""
    found = progress_of(REPORTED)
    assert found is not None
    assert with_short(found, checkpoint) == found
    assert "standbys" not in prometheus_text(with_short(found, checkpoint))


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    """A damaged file, one of a newer version, and a checkpoint that workers do not reach are named."""
    folder = CopiesFolder(str(tmp_path))
    with pytest.raises(SnapshotError, match=r"the checkpoint cannot be read by a worker, .* or leave out standbys="):
        folder.assignment(3, 0, {})
    spark_log(tmp_path, 3, 0)
    folder.decide(Decision(0, *HOT, (1,)))
    (decided,) = (tmp_path / "copies" / "decisions").iterdir()
    for text, message in (
        ("{", r"the file .*000000000001.json is damaged. Restore the checkpoint from a copy"),
        ('{"format": 2}', "the checkpoint has format 2, and this version reads formats up to 1. "),
    ):
        decided.write_text(text)
        with pytest.raises(SnapshotError, match=message):
            folder.assignment(3, 0, {})
