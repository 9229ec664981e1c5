"""Divides the state of a matcher by key, and joins such parts: for streams that get another number of shards.

A part is a snapshot. Parts are joined only if time has advanced equally far in all of them. What a matcher counts, each
of its parts counts on: only what is added to the counts has a meaning then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.errors import SnapshotError
from cepheid.events.identity import key_names
from cepheid.events.late_ordinals import LateOrdinals
from cepheid.kernel.parts import Joined, StatePart
from cepheid.matchers.conservative import ConservativeMatcher
from cepheid.matchers.event_queue import EventQueue
from cepheid.matchers.snapshot import Snapshot, ids_of


def keep_only(matcher: ConservativeMatcher, names: Collection[bytes]) -> None:
    """Forgets all keys but those with these names (canonical bytes), with all that is open or waits for them."""
    kept = frozenset(names)
    others = np.array([number for name, number in matcher.keys.number_of.items() if name not in kept], np.int32)
    matcher.detector.kernel.drop(others)
    matcher.keys.free(others)
    matcher.detector.reported.keep_only(kept)
    waiting, matcher.waiting = matcher.waiting.all, EventQueue()
    if waiting is not None:
        is_kept = [name in kept for name in key_names(waiting.keys, len(waiting))]
        matcher.waiting.add(waiting.filter(pa.array(is_kept, pa.bool_())))
    watermark = matcher.watermark
    watermark.last = {name: last for name, last in watermark.last.items() if name in kept}


Join: TypeAlias = Callable[[Sequence[StatePart]], Joined]
"""Joins the states of kernels."""


def joined_snapshots(snapshots: Sequence[Snapshot], join: Join) -> Snapshot:
    """One snapshot with all that the snapshots of a ConservativeMatcher have. They are of one pattern, and of different
    keys.

    Raises:
        SnapshotError: they make ids in different ways.
    """
    headers = [one.header for one in snapshots]
    check_ids(headers)
    assert len({(header["now"], header["now_is_over"]) for header in headers}) == 1, "all are at the same time"
    arrays, first_keys = join([StatePart(one.arrays, held_by(one)) for one in snapshots])
    counts = {name: _added([one[name] for one in headers]) for name in ("counts", "found")}
    late = joined_late(snapshots, [header["counts"]["late"] for header in headers])
    counts["counts"]["late"] = late.count
    numbered = [_renumbered(one.batches["names"], first) for one, first in zip(snapshots, first_keys, strict=True)]
    batches = {**joined_batches(snapshots), "names": concatenated(numbered)}
    return Snapshot(headers[0] | counts, arrays, batches | ({"late": late.listed} if late.count else {}))


def check_ids(headers: Sequence[dict[str, Any]]) -> None:
    """
    Raises:
        SnapshotError: snapshots with these headers make ids in different ways.
    """
    if len({ids_of(header) for header in headers}) > 1:
        raise SnapshotError(
            "its shards make ids in different ways, as they began with different versions of Cepheid, so none can be "
            "joined: choose a multiple of the number of shards"
        )


def joined_batches(snapshots: Sequence[Snapshot]) -> dict[str, pa.RecordBatch]:
    """Each batch with the rows of all snapshots that have it."""
    names = dict.fromkeys(chain.from_iterable(one.batches for one in snapshots))
    return {name: concatenated([one.batches[name] for one in snapshots if name in one.batches]) for name in names}


def joined_late(snapshots: Sequence[Snapshot], counts: Sequence[int]) -> LateOrdinals:
    """What is known of the late events of all snapshots; `counts` has how many each had."""
    each = [LateOrdinals.restored(count, one.batches.get("late")) for one, count in zip(snapshots, counts, strict=True)]
    return LateOrdinals.joined(each)


def held_by(snapshot: Snapshot) -> int:
    """How many events are held. If they are shared, the snapshot has only their numbers."""
    if "held" in snapshot.arrays:
        return len(snapshot.arrays["held"])
    return len(snapshot.batches["held"]) if "held" in snapshot.batches else 0


def concatenated(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    table = pa.Table.from_batches(batches).combine_chunks()
    return table.to_batches()[0] if len(table) else batches[0]


def _renumbered(names: pa.RecordBatch, first: int) -> pa.RecordBatch:
    numbers: npt.NDArray[np.int32] = names.column("number").to_numpy() + np.int32(first)
    return pa.record_batch({"number": pa.array(numbers, pa.int32()), "name": names.column("name")})


def _added(counts: Sequence[dict[str, Any]]) -> dict[str, int]:
    return {name: sum(one[name] for one in counts) for name in counts[0]}
