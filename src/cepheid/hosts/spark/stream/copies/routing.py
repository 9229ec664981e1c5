"""Which shards and standbys a pattern's events go to, where some of its keys have copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.events.batch import MASK, TIME, Batch
from cepheid.events.identity import canonical_bytes, values_and_bounds
from cepheid.hosts.spark.stream.copies.assignment import Key, Segments, shares
from cepheid.hosts.spark.stream.load.hot_keys import key_hash, key_hashes
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
    batch: Batch, shards: Ints, keys: Mapping[Key, Segments], marking: Marking, first: int
) -> tuple[Batch, Ints]:
    """The events with marked starts, and the number of the shard that each goes to. Events of a key with copies are
    there several times: standby s has the number `first + s`. `shards` has the events' original shards.
    """
    starts = np.ones(len(batch), np.bool_)
    rows, places, marked = [np.arange(len(batch))], [shards], [starts]
    for mine, segments in _rows_of(batch, shards, keys):
        own, copies = shares(times_of(batch)[mine], _hashes(batch.take(pa.array(mine))), segments, marking.window)
        starts[mine] = own
        for standby, share in copies.items():
            rows.append(mine[share.needed])
            places.append(np.full(len(rows[-1]), first + standby, shards.dtype))
            marked.append(share.starts[share.needed])
    if len(rows) > 1:
        batch = batch.take(pa.array(np.concatenate(rows)))
    return _marked(batch, np.concatenate(marked), marking.may_start), np.concatenate(places)


def _rows_of(batch: Batch, shards: Ints, keys: Mapping[Key, Segments]) -> Iterator[tuple[Ints, Segments]]:
    """The positions of the events of each of the keys, with the key's segments."""
    for shard in {shard: None for shard, _ in keys}:
        mine = np.flatnonzero(shards == shard)
        if len(mine):
            hashes, numbers = _named(batch.take(pa.array(mine)))
            for number, hashed in enumerate(hashes):
                if (shard, hashed) in keys:
                    yield mine[numbers == number], keys[shard, hashed]


def _named(events: Batch) -> tuple[list[str], Ints]:
    """The hashes of the distinct keys of the events, and for each event the number of its key."""
    if not events.keys:
        return [key_hash(())], np.zeros(len(events), np.int64)
    names = canonical_bytes(events.keys, len(events)).dictionary_encode()
    numbers = names.indices.to_numpy().astype(np.int64)
    first = np.empty(len(names.dictionary), np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    return key_hashes([column.take(pa.array(first)) for column in events.keys]), numbers


def _hashes(events: Batch) -> npt.NDArray[np.uint64]:
    """(n,) a hash of each event's identity, but for the ordinal of equal events: these have one owner."""
    columns = [events.column(TIME), *(events.sequence or events.chosen)]
    return siphash(*values_and_bounds(canonical_bytes(columns, len(events))), _HASH_KEY)[:, 0]


def _marked(batch: Batch, starts: npt.NDArray[np.bool_], bit: int) -> Batch:
    place = batch.data.schema.get_field_index(MASK)
    field = batch.data.schema.field(place)
    masks = pa.array(mask_of(batch) | np.where(starts, np.int64(bit), np.int64(0))).cast(field.type)
    return Batch(batch.data.set_column(place, field, masks))
