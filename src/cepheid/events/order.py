"""The order of events within a key, which is the same on every host.

Events arrive ordered by key, time and sequence. Events that agree in all three are ordered by content: by a digest of
their chosen columns, then by a digest of the columns that conditions read. Events with the same chosen columns get
ordinals, which are part of their identity. A group of events of equal rank may be split between two batches, so the
last group of a batch is held back until the next batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import EventError
from cepheid.events.batch import (
    AFTER,
    END,
    EVENT_PREFIX,
    LIFTED_BITS,
    MASK,
    ORDINAL,
    ROW_PREFIX,
    TIME,
    Batch,
    Schema,
    join,
    python_values,
)
from cepheid.events.direction import Direction
from cepheid.events.identity import canonical_bytes, canonical_parts, digests, filled

Flags: TypeAlias = npt.NDArray[np.bool_]
Rows: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = tuple[npt.NDArray[np.uint64], ...]

CONTENT = b"content"
"""The purpose of the digests that order events of equal rank. They may never change."""


@dataclass(frozen=True)
class Ordered:
    """Events in their final order, with ordinals. `key_start` flags each event whose key or sub-key differs from that
    of the event before.
    """

    batch: Batch
    key_start: Flags
    ties: int = 0
    """How many of the events were ordered by their content alone."""


MAX_TIME = 1 << 62
"""The greatest distance of an event time from 1970, in microseconds. Deadlines computed from such times still fit 64
bits.
"""


class Ordering:
    """Takes batches and returns their events in the final order. The last group of equal rank is returned one batch
    later.
    """

    def __init__(self, *, begins_key: bool = True) -> None:
        """`begins_key` says whether a key begins with the first event; otherwise that key has earlier events, too."""
        self._waiting: Batch | None = None
        self._waiting_starts_key = True
        self._begins_key = begins_key

    def process(self, batch: Batch) -> Iterator[Ordered]:
        """The events whose order is certain now.

        Raises:
            EventError: an event comes after one of the same key that is later in time or sequence.
        """
        if len(batch) == 0:
            return
        key_start, group_start = self._borders(batch)
        group_starts = np.flatnonzero(group_start)
        if self._waiting is not None:
            merged = int(group_starts[0]) if len(group_starts) else len(batch)
            self._waiting = join([self._waiting, batch.slice(0, merged)])
            if not len(group_starts):
                return
            yield self._release()
        first, last = int(group_starts[0]), int(group_starts[-1])
        if first < last:
            yield self._ordered(batch.slice(first, last), key_start[first:last], group_start[first:last])
        self._waiting, self._waiting_starts_key = batch.slice(last, len(batch)), bool(key_start[last])

    def whole(self, batch: Batch) -> Ordered:
        """The events of a batch that is the whole input, and is not empty.

        Raises:
            EventError: as `process`.
        """
        return self._ordered(batch, *self._borders(batch))

    def finish(self) -> Iterator[Ordered]:
        """Ends the input and returns the events that are still held back."""
        if self._waiting is not None:
            yield self._release()
            self._waiting = None

    def _release(self) -> Ordered:
        assert self._waiting is not None
        key_start = np.zeros(len(self._waiting), np.bool_)
        group_start = key_start.copy()
        key_start[0], group_start[0] = self._waiting_starts_key, True
        return self._ordered(self._waiting, key_start, group_start)

    def _borders(self, batch: Batch) -> tuple[Flags, Flags]:
        """Flags of the events at which a key or sub-key begins, and at which a group of events of equal rank begins."""
        if self._waiting is None:
            key_start, group_start = _borders_within(batch)
            key_start[0], group_start[0] = self._begins_key, True
            return key_start, group_start
        seam = join([self._waiting.slice(len(self._waiting) - 1, len(self._waiting)), batch.slice(0, 1)])
        at_seam = _borders_within(seam)
        key_start, group_start = _borders_within(batch)
        key_start[0], group_start[0] = at_seam[0][1], at_seam[1][1]
        return key_start, group_start

    def _ordered(self, batch: Batch, key_start: Flags, group_start: Flags) -> Ordered:
        tied, ordinals, ties = _tied(group_start), np.zeros(len(batch), np.int32), 0
        if len(tied):
            group = np.cumsum(group_start, dtype=np.int64)
            events = _without_chosen(batch).take(pa.array(tied))
            ties = self.counted(events)
            rows, ordinals[tied] = _by_content(_content(batch, tied), events, group[tied])
            batch = _rearranged(batch, tied, rows)
        return Ordered(batch.with_column(ORDINAL, pa.array(ordinals)), key_start, ties)

    def counted(self, tied: Batch) -> int:
        """How many of these events count as ties."""
        return len(tied)


def ordering_of(schema: Schema, *, begins_key: bool = True) -> Ordering:
    """What orders the events of a finite input. `begins_key` is as in Ordering."""
    return InRowOrder(begins_key=begins_key) if schema.in_row_order else Ordering(begins_key=begins_key)


class InRowOrder(Ordering):
    """As Ordering, for events of equal rank that are in the right order as they come. None of them counts as a tie."""

    def _ordered(self, batch: Batch, key_start: Flags, group_start: Flags) -> Ordered:
        tied, ordinals = _tied(group_start), np.zeros(len(batch), np.int32)
        if len(tied):
            group = np.cumsum(group_start, dtype=np.int64)
            ordinals[tied] = _ordinals(_content(batch, tied), group[tied], np.arange(len(tied)))
        return Ordered(batch.with_column(ORDINAL, pa.array(ordinals)), key_start)


class ByKey(Ordering):
    """As Ordering, for events whose order within an instant does not matter: those of equal rank stay as they come, and
    get no ordinals.
    """

    def process(self, batch: Batch) -> Iterator[Ordered]:
        """The events whose key is certain now.

        Raises:
            EventError: the events are not in order, or a time is out of range.
        """
        check_times(batch, TIME, END)
        yield from super().process(batch)

    def _ordered(self, batch: Batch, key_start: Flags, group_start: Flags) -> Ordered:  # noqa: ARG002
        return Ordered(batch, key_start)


class TierOrdering(Ordering):
    """As Ordering, for a later tier: events that have ordinals already, among partial matches (`AFTER`) at the place of
    their last event, and directly after it.
    """

    def _ordered(self, batch: Batch, key_start: Flags, group_start: Flags) -> Ordered:
        group = np.cumsum(group_start, dtype=np.int64)
        is_event = ~_flags(batch.column(AFTER))
        # The order of partial matches among themselves does not matter.
        tied = np.flatnonzero((np.bincount(group)[group] > 1) & (np.bincount(group, is_event)[group] > 0))
        if len(tied):
            rows = _by_ordinal(batch.take(pa.array(tied)), group[tied])
            batch = _rearranged(batch, tied, rows)
        return Ordered(batch, key_start)


def _tied(group_start: Flags) -> Rows:
    """The events that are not alone in their group."""
    tied = ~group_start
    tied[:-1] |= tied[1:]
    return np.flatnonzero(tied)


def _rearranged(batch: Batch, tied: Rows, rows: Rows) -> Batch:
    """The batch with the rows at `tied`, which is ascending, in the order `rows`, which are indices of `tied`."""
    order = np.arange(len(batch))
    order[tied] = tied[rows]
    return batch.take(pa.array(order))


def _by_ordinal(tied: Batch, group: Rows) -> Rows:
    """The rows in the order of groups, then that of `_by_content`, then with events before partial matches."""
    contents = canonical_bytes(tied.chosen, len(tied)).dictionary_encode()
    distinct = digests(contents.dictionary, range(1, len(contents.dictionary) + 1), CONTENT)
    places = np.empty(len(distinct), np.int64)
    places[sorted(range(len(distinct)), key=distinct.__getitem__)] = np.arange(len(distinct))
    ordinals, after = tied.column(ORDINAL).to_numpy(), _flags(tied.column(AFTER))
    return np.lexsort((after, ordinals, places[contents.indices.to_numpy()], group))


def _by_content(content: Words, tied: Batch, group: Rows) -> tuple[Rows, npt.NDArray[np.int32]]:
    """The rows of `tied` in their final order, group by group, and the ordinal of each."""
    rows = _by_digests(content, group)
    alike = ~_begins(rows, group, *content)
    alike[:-1] |= alike[1:]  # also the first of those that agree with the one before
    if alike.any():
        # Whether an event may start partial matches here (the mask's last bit) does not decide its place among equal
        # ones.
        some = rows[alike]
        mask = pc.bit_wise_and(tied.column(MASK), LIFTED_BITS).take(pa.array(some))
        values = [mask, *(value.take(pa.array(some)) for value in tied.values)]
        lifted = _words_of([canonical_bytes(values, len(some))], b"lifted")
        places = np.cumsum(_begins(some, group, *content), dtype=np.int64)
        rows[alike] = some[_by_digests(lifted, places)]
    numbered = () if tied.sequence else content
    return rows, _ordinals(numbered, group, rows)


def _ordinals(content: Words, group: Rows, rows: Rows) -> npt.NDArray[np.int32]:
    """For each of the `rows` the number of those before it that agree with it in group and content."""
    order = np.lexsort((np.arange(len(rows)), *(words[rows] for words in content), group[rows]))
    begins = np.flatnonzero(_begins(rows[order], group, *content))
    ordinals = np.empty(len(rows), np.int32)
    ordinals[order] = np.arange(len(rows)) - np.repeat(begins, np.diff(begins, append=len(rows)))
    return ordinals


def _begins(rows: Rows, *columns: npt.NDArray[Any]) -> Flags:
    """Whether each row differs from the one before in one of the columns; true for the first."""
    differ = np.zeros(len(rows), np.bool_)
    differ[:1] = True
    for column in columns:
        differ[1:] |= column[rows[1:]] != column[rows[:-1]]
    return differ


def _by_digests(digests: Words, group: Rows) -> Rows:
    """The rows by group, then by digest."""
    first, second = digests
    return np.lexsort((second, first, group))


def _without_chosen(batch: Batch) -> Batch:
    """The events without the columns that only the output needs, which may be wide."""
    names = [name for name in batch.data.schema.names if not name.startswith((EVENT_PREFIX, ROW_PREFIX))]
    return batch.with_data(batch.data.select(names))


def _content(batch: Batch, rows: Rows) -> Words:
    """The digests of the chosen columns of these events."""
    if batch.deferred is not None:
        tied = batch.take(pa.array(rows))
        return content_digests(tied.chosen, len(tied))
    return content_digests(batch.chosen, len(batch), rows)


def content_digests(columns: Sequence[pa.Array], length: int, rows: Rows | None = None) -> Words:
    """The digests of the chosen columns of all events, or of these rows, which order events of equal rank."""
    return _words_of(canonical_parts(columns, length, rows), CONTENT)


def _words_of(parts: Iterable[pa.Array], purpose: bytes) -> Words:
    """The digest of each row as two numbers, which sort as its bytes do."""
    found = [digest for part in parts for digest in digests(part, range(1, len(part) + 1), purpose)]
    words = np.frombuffer(b"".join(found), ">u8").reshape(-1, 2).astype(np.uint64)
    return words[:, 0], words[:, 1]


def _borders_within(batch: Batch) -> tuple[Flags, Flags]:
    """Two flags per event: whether its key, and whether its key or rank, differs from the event before. Both are False
    for the first event.
    """
    key_start = np.zeros(len(batch), np.bool_)
    for column in (*batch.keys, *batch.sub_keys):
        key_start[1:] |= differs(column)
    group_start = key_start.copy()
    for column in batch.order:
        group_start[1:] |= differs(column)
    _check_order(batch, key_start)
    return key_start, group_start


def check_times(batch: Batch, *columns: str) -> None:
    """Raises EventError if a time in these columns (by default in `_time`) is so far from 1970 that deadlines would not
    fit 64 bits.
    """
    for name in columns or (TIME,):
        times = batch.column(name).drop_null().view(pa.int64()).to_numpy()
        if len(times) and not -MAX_TIME <= times.min() <= times.max() <= MAX_TIME:
            what = "an event's time is further than 100,000 years from 1970"
            raise EventError(f"{what}: is it a placeholder? Make it NULL")


def _check_order(batch: Batch, key_start: Flags) -> None:
    check_times(batch)
    wrong = np.flatnonzero(descends(ranks_of(batch)) & ~key_start[1:])
    if len(wrong):
        at = int(wrong[0]) + 1
        values = zip(*(python_values(column.slice(at - 1, 2)) for column in batch.order), strict=True)
        before, after = (", ".join(map(str, row)) for row in values)
        raise EventError(
            f"{len(wrong)} events come after a later one of the same key, the first at {after} after {before}. "
            "A matcher takes events in order of key, time and sequence: sort them, or let detect do it"
        )


def leaves(column: pa.Array) -> list[pa.Array]:
    """The column as columns without structure, which sort as the column does. Two rows are equal in all of them exactly
    if Spark groups these rows together; NULL equals NULL. Floats become DOUBLE, with one zero and one NaN.
    """
    if pa.types.is_null(column.type):  # an empty pandas column of strings
        return []
    if pa.types.is_dictionary(column.type):
        return leaves(column.dictionary_decode())
    if pa.types.is_struct(column.type):
        return [column.is_valid(), *(leaf for part in column.flatten() for leaf in leaves(part))]
    if pa.types.is_floating(column.type):
        doubles = pc.add(column.cast(pa.float64()), 0.0)  # -0.0 becomes 0.0
        return [pc.if_else(pc.is_nan(doubles), math.nan, doubles)]
    return [column]


def ranks_of(batch: Batch) -> list[pa.Array]:
    """Columns without structure, one value per event, that sort as the events of a key do: ascending, NULL last."""
    columns = zip(batch.order, batch.directions, strict=True)
    return [leaf for column, direction in columns for leaf in ranked(column, direction)]


def ranked(column: pa.Array, direction: Direction) -> list[pa.Array]:
    """The column as columns that sort in this direction when they are ascending, NULL last."""
    parts = leaves(column)
    if direction.descending:
        parts = [_reversed(part) for part in parts]
    return [column.is_valid(), *parts] if direction.nulls_first else parts


def _reversed(leaf: pa.Array) -> pa.Array:
    """Numbers that are the smaller the greater the values are; NULL stays NULL."""
    encoded = leaf.dictionary_encode()
    numbers = np.empty(len(encoded.dictionary), np.int64)
    numbers[pc.sort_indices(encoded.dictionary).to_numpy()] = -np.arange(len(numbers))
    return pa.array(numbers).take(encoded.indices)


def differs(column: pa.Array) -> Flags:
    """Whether each value but the first differs from the one before, as Spark groups values: NULL equals NULL, NaN
    equals NaN, and -0.0 equals 0.0.
    """
    return _any((_leaf_differs(leaf) for leaf in leaves(column)), len(column) - 1)


def descends(columns: Sequence[pa.Array]) -> Flags:
    """Whether each row but the first sorts before the previous row. Rows are compared column by column, and sort as on
    hosts: ascending, strings and binaries by their bytes, NaN after all numbers, and NULL last.
    """
    found = [leaf for column in columns for leaf in leaves(column)]
    if not found:
        return np.zeros(max(0, len(columns[0]) - 1), np.bool_)
    below = _leaf_descends(found[-1])
    for leaf in reversed(found[:-1]):
        below = _leaf_descends(leaf) | ~_leaf_differs(leaf) & below
    return below


def _any(flags: Iterable[Flags], length: int) -> Flags:
    found = np.zeros(max(0, length), np.bool_)
    for part in flags:
        found |= part
    return found


def _leaf_differs(leaf: pa.Array) -> Flags:
    if (numbers := _numbers(leaf)) is not None:
        changed: Flags = numbers[1:] != numbers[:-1]
        return changed
    before, after = _neighbours(leaf)
    different = _flags(pc.not_equal(after, before))
    if pa.types.is_floating(leaf.type):
        nan = _flags(pc.is_nan(leaf))
        different &= ~(nan[1:] & nan[:-1])
    if leaf.null_count:
        valid = _flags(leaf.is_valid())
        different |= valid[1:] != valid[:-1]
    return different


def _leaf_descends(leaf: pa.Array) -> Flags:
    if (numbers := _numbers(leaf)) is not None:
        falls: Flags = numbers[1:] < numbers[:-1]
        return falls
    before, after = _neighbours(leaf)
    below = _flags(pc.less(after, before))
    if pa.types.is_floating(leaf.type):
        below |= _flags(pc.and_(pc.is_nan(before), pc.invert(pc.is_nan(after))))
    if leaf.null_count:
        valid = _flags(leaf.is_valid())
        below |= ~valid[:-1] & valid[1:]
    return below


def _numbers(leaf: pa.Array) -> npt.NDArray[Any] | None:
    """The values, without a copy, as numbers that compare as they do; None where NumPy would compare them in another
    way, or slower than Arrow.
    """
    if leaf.null_count:
        return None
    if pa.types.is_timestamp(leaf.type):
        leaf = leaf.view(pa.int64())
    return leaf.to_numpy() if pa.types.is_integer(leaf.type) else None


def _neighbours(leaf: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Each value but the last, and the value after it."""
    return leaf.slice(0, max(0, len(leaf) - 1)), leaf.slice(1)


def _flags(values: pa.Array) -> Flags:
    """The booleans, with NULL as False."""
    flags: Flags = filled(values, fill_value=False).to_numpy(zero_copy_only=False)
    return flags if flags.flags.writeable else flags.copy()
