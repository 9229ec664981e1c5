"""Which shards and standbys a pattern's events go to, where some of its keys have copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.events.batch import MASK, TIME, Batch
from cepheid.events.identity import canonical_bytes, key_id, values_and_bounds
from cepheid.hosts.spark.stream.copies.assignment import Segment, shares
from cepheid.kernel.siphash import siphash
from cepheid.matchers.event_queue import times_of
from cepheid.matchers.working_set import mask_of

_HASH_KEY = b"cepheid: copies."


class Marking(NamedTuple):
    """What routing knows of a pattern whose keys may have copies."""

    may_start: int
    """The mask's bit of events that may start partial matches where they go."""
    window: int
    """Microseconds: a partial match has ended when its first event is that old."""


def routed(
    batch: Batch, shards: Ints, keys: Mapping[str, Sequence[Segment]], marking: Marking, first: int
) -> tuple[Batch, Ints]:
    """The events with marked starts, and the number of the shard that each goes to. Events of a key with copies are
    there several times: standby s has the number `first + s`. `shards` has the events' original shards.
    """
    starts = np.ones(len(batch), np.bool_)
    rows, places, marked = [np.arange(len(batch))], [shards], [starts]
    for mine, segments in _rows_of(batch, keys):
        own, copies = shares(times_of(batch)[mine], _hashes(batch.take(pa.array(mine))), segments, marking.window)
        starts[mine] = own
        for standby, share in copies.items():
            rows.append(mine[share.needed])
            places.append(np.full(len(rows[-1]), first + standby, shards.dtype))
            marked.append(share.starts[share.needed])
    if len(rows) > 1:
        batch = batch.take(pa.array(np.concatenate(rows)))
    return _marked(batch, np.concatenate(marked), marking.may_start), np.concatenate(places)


def _rows_of(batch: Batch, keys: Mapping[str, Sequence[Segment]]) -> list[tuple[Ints, Sequence[Segment]]]:
    """The positions of the events of each of the keys, with the key's segments."""
    if not keys or not len(batch):
        return []
    if not batch.keys:
        segments = keys.get(key_id(b""))
        return [] if segments is None else [(np.arange(len(batch)), segments)]
    names = canonical_bytes(batch.keys, len(batch)).dictionary_encode()
    codes = {key_id(name): code for code, name in enumerate(names.dictionary.to_pylist())}
    indices = names.indices.to_numpy()
    found = [(np.flatnonzero(indices == codes[key]), segments) for key, segments in keys.items() if key in codes]
    return [(mine.astype(np.int64), segments) for mine, segments in found]


def _hashes(events: Batch) -> npt.NDArray[np.uint64]:
    """(n,) a hash of each event's identity, but for the ordinal of equal events: these have one owner."""
    columns = [events.column(TIME), *(events.sequence or events.chosen)]
    return siphash(*values_and_bounds(canonical_bytes(columns, len(events))), _HASH_KEY)[:, 0]


def _marked(batch: Batch, starts: npt.NDArray[np.bool_], bit: int) -> Batch:
    place = batch.data.schema.get_field_index(MASK)
    field = batch.data.schema.field(place)
    masks = pa.array(mask_of(batch) | np.where(starts, np.int64(bit), np.int64(0))).cast(field.type)
    return Batch(batch.data.set_column(place, field, masks))
