"""Divides the state of a matcher of stages by key, and joins such parts: for streams that get another number of shards.

A part is a snapshot. Parts are joined only if time has advanced equally far in all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.compile.stages.tables import Tables
from cepheid.errors import SnapshotError
from cepheid.events.identity import key_names
from cepheid.kernel.stages.division.joined import Part, first_numbers, joined
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


def joined_snapshots(snapshots: Sequence[Snapshot], tables: Tables) -> Snapshot:
    """One snapshot with all that the snapshots have. They are of one pattern, and of different keys.

    Raises:
        SnapshotError: they make ids in different ways, or have advanced to different times.
    """
    if len(snapshots) == 1:
        return snapshots[0]
    headers = [one.header for one in snapshots]
    if len({ids_of(header) for header in headers}) > 1:
        raise SnapshotError(
            "its shards make ids in different ways, as they began with different versions of Cepheid, so none can be "
            "joined: choose a multiple of the number of shards"
        )
    assert len({(header["now"], header["now_is_over"]) for header in headers}) == 1, "all are at the same time"
    parts = [Part(one.arrays, _length(one, "held")) for one in snapshots]
    header = headers[0] | {name: _added([one[name] for one in headers]) for name in ("counts", "found")}
    return Snapshot(header, joined(parts, tables), _joined_batches(snapshots, first_numbers(parts)))


def _joined_batches(snapshots: Sequence[Snapshot], first: Sequence[int]) -> dict[str, pa.RecordBatch]:
    batches = dict[str, pa.RecordBatch]()
    for name in dict.fromkeys(chain.from_iterable(one.batches for one in snapshots)):
        each = [one.batches[name] for one in snapshots if name in one.batches]
        match name:
            case "names":
                batches[name] = _concatenated([_renumbered(*pair) for pair in zip(each, first, strict=True)])
            case "late":
                batches[name] = _counted(each)
            case _:
                batches[name] = _concatenated(each)
    return batches


def _renumbered(names: pa.RecordBatch, first: int) -> pa.RecordBatch:
    numbers: npt.NDArray[np.int32] = names.column("number").to_numpy() + np.int32(first)
    return pa.record_batch({"number": pa.array(numbers, pa.int32()), "name": names.column("name")})


def _counted(late: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The counts of late events, added up."""
    counts = Counter[bytes]()
    for batch in late:
        counts.update(dict(zip(*(column.to_pylist() for column in batch.columns), strict=True)))
    return pa.record_batch({"event": pa.array(counts, pa.binary()), "count": pa.array(counts.values(), pa.int64())})


def _added(counts: Sequence[dict[str, Any]]) -> dict[str, int]:
    return {name: sum(one[name] for one in counts) for name in counts[0]}


def _length(snapshot: Snapshot, name: str) -> int:
    return len(snapshot.batches[name]) if name in snapshot.batches else 0


def _concatenated(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    table = pa.Table.from_batches(batches).combine_chunks()
    return table.to_batches()[0] if len(table) else batches[0]
