"""The events that the kernel reads, as Arrow batches and as arrays of 64-bit values.

Events that partial matches hold are stored together with events that nothing holds any more. When there are too many of
the latter, the held events are copied. So an event is copied only a few times while it is held, and the cost of a batch
depends only on its own size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.arrays import Ints
from cepheid.errors import ConditionError
from cepheid.events.batch import TIME, Batch, join, mask_column
from cepheid.events.identity import as_integers, filled
from cepheid.kernel.arrays import Events, Int32s, row_type
from cepheid.kernel.failures import JointConditionFailed
from cepheid.output.values import columns_text
from cepheid.plan.calendar import Deadlines, deadlines_after
from cepheid.plan.conditions.types import is_binary, is_string
from cepheid.plan.plan_set import LiftedFor

Mask: TypeAlias = npt.NDArray[np.int64]

_LONGER = 4
"""How much longer than the average of its column a list may be."""
_LEAST = 64
"""The events that there is room for at first."""


class Tables(Protocol):
    """The arrays of a compiled pattern that a working set writes to."""

    @property
    def constants(self) -> Ints: ...


class Compiled(Protocol):
    """A compiled pattern of any kind."""

    @property
    def plan(self) -> LiftedFor: ...
    @property
    def tables(self) -> Tables: ...
    @property
    def string_constants(self) -> Mapping[int, str]:
        """The string constants, by their number among the constants. The working set assigns their codes."""

    @property
    def script_columns(self) -> frozenset[int]:
        """The lifted columns that scripts read."""

    @property
    def orders_texts(self) -> bool:
        """Whether scripts compare strings by their order."""

    @property
    def deadlines(self) -> Deadlines | None:
        """How deadlines follow from the times of events, if the window follows the calendar. They are a value of each
        event, after the lifted ones.
        """


class EventParts:
    """Events by position: first the retained ones, then those added since, in their order."""

    def __init__(self) -> None:
        self._parts: list[Batch] = []
        self._widest_deferred: int | None = None
        """`widest` of all events of the host, once it is known, if chosen columns are deferred."""

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def add(self, batch: Batch) -> None:
        """Appends events."""
        parts = self._parts
        while len(parts) > 1 and len(parts[-2]) < 2 * len(parts[-1]):  # few parts remain, as in EventQueue
            last = parts.pop()
            parts[-1] = join([parts[-1], last])
        parts.append(batch)

    def take(self, positions: Int32s) -> Batch:
        """The events at `positions`, which ascend; at least one batch must have been added. They are not copied if they
        lie side by side in one batch.
        """
        return self._at(positions, _taken)

    def _at(self, positions: Int32s, take: Callable[[Batch, Int32s], Batch]) -> Batch:
        """The events at `positions`; `take` gives those of a batch."""
        starts = [0, *accumulate(map(len, self._parts))]
        bounds = np.searchsorted(positions, starts).tolist()
        taken = [
            take(part, positions[begin:end] - first)
            for part, first, (begin, end) in zip(self._parts, starts, pairwise(bounds), strict=False)
            if begin < end
        ]
        return join(taken) if taken else self._parts[0].take(pa.array(positions))

    def integers(self, name: str) -> Ints:
        """The column `name`, of type int64 without NULLs, of all events."""
        return np.concatenate([np.empty(0, np.int64), *(part.column(name).to_numpy() for part in self._parts)])

    def keep(self, positions: Int32s) -> None:
        """Retains only the events at `positions`, which ascend. From now on they have the positions from 0."""
        if self._parts:
            self._parts = [self._at(positions, _copied)]

    @property
    def last_batch(self) -> int:
        """The position of the first event of the batch that was added last, or of one before that is joined with it."""
        return len(self) - len(self._parts[-1]) if self._parts else 0

    @property
    def bytes(self) -> int:
        """About the number of bytes of all events."""
        return sum(part.bytes for part in self._parts)

    @property
    def widest(self) -> int:
        """The bytes of the longest text in a chosen column, or about those of a list; at least 1. Of deferred columns
        it is that of all events of the host: the events' own would have to be taken for it.
        """
        deferred = self._parts[0].deferred if self._parts else None
        if deferred is None:
            return max([1, *(widest(column) for part in self._parts for column in part.chosen)])
        if self._widest_deferred is None:
            self._widest_deferred = max([1, *map(widest, deferred.columns.columns)])
        return self._widest_deferred

    def shown(self, position: int) -> dict[str, Any]:
        """The chosen columns of an event, for a message."""
        return self.take(np.array([position], np.int32)).shown(0)

    @property
    def all(self) -> Batch | None:
        """All events; None if there has been no batch."""
        return join(self._parts) if self._parts else None


class WorkingSet(EventParts):
    """The events of one matcher, also as arrays."""

    def __init__(self, pattern: Compiled) -> None:
        super().__init__()
        self._pattern = pattern
        self._arrays = EventArrays(pattern)

    def add(self, batch: Batch) -> None:
        super().add(batch)
        if not self._pattern.plan.functions:
            self._arrays.add(batch)

    def keep(self, positions: Int32s) -> None:
        super().keep(positions)
        if not self._pattern.plan.functions:
            self._arrays.keep(positions)

    @property
    def events(self) -> Events:
        """The arrays for the kernel, with spare room at the end. Codes of strings are valid until a batch is added."""
        return self._arrays.events


def _copied(part: Batch, positions: Int32s) -> Batch:
    """The events at these positions, without the memory of the others."""
    return part.take(pa.array(positions))


def _taken(part: Batch, positions: Int32s) -> Batch:
    """The events at these positions, at least one; they ascend."""
    first, end = int(positions[0]), int(positions[-1]) + 1
    return part.slice(first, end) if end - first == len(positions) else _copied(part, positions)


class Shown(Protocol):
    """Events by position that a message can show."""

    def shown(self, position: int) -> dict[str, Any]: ...


def joint_error(failed: JointConditionFailed, events: Shown, names: Sequence[str]) -> ConditionError:
    """An error that says which condition failed on which events; `names` are the variables' names."""
    shown = []
    for number, bound in failed.bound.items():
        each = (f"({columns_text(events.shown(event))})" for event in dict.fromkeys(bound))
        shown.append(f"{names[number]} {' … '.join(each)}")
    return ConditionError(f"{failed.reason} in {failed.condition}, at {', '.join(shown)}")


class EventArrays:
    """The events' times, masks and values as arrays, which grow by doubling."""

    def __init__(self, pattern: Compiled) -> None:
        self._pattern = pattern
        self._length = 0
        self._texts = _TextCodes(pattern)
        self._text_columns: list[int] = []
        self.events = _room(len(pattern.plan.values) + (pattern.deadlines is not None), 0)

    def add(self, batch: Batch) -> None:
        begin, end = self._length, self._length + len(batch)
        self._make_room(end)
        self._length = end
        events = self.events
        events.time[begin:end] = batch.column(TIME).view(pa.int64()).to_numpy()
        events.mask[begin:end] = mask_of(batch)
        if self._pattern.deadlines is not None:
            events.values[-1, begin:end] = deadlines_after(events.time[begin:end], self._pattern.deadlines)
        if not self._pattern.script_columns:
            return
        values = batch.values
        texts: dict[int, pa.Array] = {}
        for column in sorted(self._pattern.script_columns):
            events.missing[column, begin:end] = values[column].is_null().to_numpy(zero_copy_only=False)
            if is_string(values[column].type):
                texts[column] = values[column].cast(pa.large_string())
            else:
                events.values[column, begin:end] = _as_words(values[column])
        self._texts.add(texts, events.values, begin, end)
        self._text_columns = [*texts]

    def keep(self, positions: Int32s) -> None:
        """Retains only the events at `positions`, which ascend."""
        before, self._length = self.events, len(positions)
        self.events = _room(len(before.values), max(_LEAST, self._length))
        for former, kept in zip(before, self.events, strict=True):
            kept[..., : self._length] = former[..., positions]
        self._texts.keep([self.events.values[column, : self._length] for column in self._text_columns])

    def _make_room(self, length: int) -> None:
        before = self.events
        if length > len(before.time):
            self.events = _room(len(before.values), max(_LEAST, length, 2 * len(before.time)))
            for smaller, larger in zip(before, self.events, strict=True):
                larger[..., : smaller.shape[-1]] = smaller


class _TextCodes:
    """Codes of strings and of the pattern's string constants. Equal strings have equal codes; if the pattern compares
    their order, codes are in the order of the strings' bytes.
    """

    def __init__(self, pattern: Compiled) -> None:
        self._pattern = pattern
        self._codes: dict[str, int] = {}
        self._named(pattern.string_constants.values())
        self._give_constants()

    def add(self, texts: Mapping[int, pa.Array], values: npt.NDArray[np.int64], begin: int, end: int) -> None:
        """Writes the codes of columns to `values[:, begin:end]`. Ordered codes before `begin` may change, too."""
        if not texts:
            return
        known = len(self._codes)
        for column, array in texts.items():
            encoded = array.dictionary_encode()
            codes = np.array(self._named(encoded.dictionary.to_pylist()) or [0], np.int64)
            values[column, begin:end] = codes[encoded.indices.fill_null(0).to_numpy()]
        if self._pattern.orders_texts and len(self._codes) > known:
            ranks = self._rank()
            for column in texts:
                values[column, :end] = ranks[values[column, :end]]

    def keep(self, columns: Sequence[Ints]) -> None:
        """Forgets the strings that are in none of these columns of codes and are no constants. Their codes change."""
        if not columns:
            return
        known, constants = [*self._codes], {*self._pattern.string_constants.values()}
        is_used = np.zeros(max(1, len(known)), np.bool_)  # without any string, the code of NULL is 0
        for codes in columns:
            is_used[codes] = True
        kept = [name for code, name in enumerate(known) if is_used[code] or name in constants]
        now = {name: code for code, name in enumerate(kept)}
        code_now = np.array([now.get(name, 0) for name in known] or [0], np.int64)
        for codes in columns:
            codes[:] = code_now[codes]
        self._codes = now
        self._give_constants()

    def _named(self, names: Iterable[str]) -> list[int]:
        return [self._codes.setdefault(name, len(self._codes)) for name in names]

    def _rank(self) -> npt.NDArray[np.int64]:
        """Replaces codes by ranks. Element i of the result is the new code for the former code i."""
        ordered = sorted(self._codes)  # by code points, and so by bytes
        ranks = np.empty(len(ordered), np.int64)
        ranks[[self._codes[name] for name in ordered]] = np.arange(len(ordered))
        self._codes = {name: rank for rank, name in enumerate(ordered)}
        self._give_constants()
        return ranks

    def _give_constants(self) -> None:
        for number, text in self._pattern.string_constants.items():
            self._pattern.tables.constants[number] = self._codes[text]


def relevant(batch: Batch, bits: int | None) -> Batch:
    """The events that have at least one of these bits; None: all events."""
    return with_any(batch, None if bits is None else (bits,))


def with_any(batch: Batch, words: Sequence[int] | None) -> Batch:
    """The events that have at least one of these bits, given as a number per word of the mask; None: all events."""
    if words is None:
        return batch
    rows = rows_with_any([mask_of(batch, word) for word in range(len(words))], words)
    return batch if len(rows) == len(batch) else batch.take(pa.array(rows))


def rows_with_any(masks: Sequence[npt.NDArray[Any]], words: Sequence[int]) -> npt.NDArray[Any]:
    """The rows of the events whose masks have at least one of these bits, given as a number per word. The rows have 32
    bits where these suffice.
    """
    has_any = np.zeros(len(masks[0]), np.bool_)
    for mask, bits in zip(masks, words, strict=True):
        if bits:
            has_any |= mask & bits != 0
    return np.flatnonzero(has_any).astype(row_type(len(has_any)))


def widest(column: pa.Array) -> int:
    """The bytes of the longest text in the column, or about those of a list; at least 1."""
    if pa.types.is_dictionary(column.type):
        return widest(column.dictionary)
    if pa.types.is_nested(column.type):
        return int(_LONGER * column.nbytes // max(1, len(column)))
    if is_string(column.type) or is_binary(column.type):
        return int(pc.max(pc.binary_length(column)).as_py() or 1)
    return 1


def _room(columns: int, length: int) -> Events:
    words = np.empty(length, np.int64), np.empty(length, np.int64)
    return Events(*words, np.zeros((columns, length), np.int64), np.zeros((columns, length), np.bool_))


def mask_of(batch: Batch, word: int = 0) -> Mask:
    """One word of the events' masks; not to be written to."""
    mask = batch.column(mask_column(word)).to_numpy(zero_copy_only=False)
    assert mask.dtype.kind in "iu", mask.dtype
    signed: Mask = mask.view(np.int64) if mask.itemsize == np.int64().itemsize else mask.astype(np.int64)
    return signed


def _as_words(column: pa.Array) -> npt.NDArray[np.int64]:
    """Values as 64 bits: doubles as their bits, decimals scaled; NULL as 0."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.int64)
    if pa.types.is_floating(column.type):
        doubles = filled(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
        words: npt.NDArray[np.int64] = doubles.view(np.int64)
        return words
    if pa.types.is_decimal128(column.type):
        whole = pc.fill_null(column, pa.scalar(0, column.type))
        halves = np.frombuffer(whole.buffers()[1], dtype=np.int64)  # little endian; 18 digits fit the lower half
        low: npt.NDArray[np.int64] = halves[2 * whole.offset : 2 * (whole.offset + len(whole)) : 2]
        return low
    integers = as_integers(column)
    assert integers is not None, column.type
    return integers
