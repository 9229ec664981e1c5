"""The watermark: how far time has advanced, and which events are late."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import total_ordering
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.events.batch import ORDINAL, TIME, Batch, Schema
from cepheid.events.direction import Direction
from cepheid.events.identity import canonical_bytes, key_names
from cepheid.events.late_ordinals import LateOrdinals
from cepheid.kernel.arrays import NO_TIME, Flags
from cepheid.matchers.event_queue import times_of
from cepheid.matchers.snapshot import stored_number


class Reached(NamedTuple):
    """How far time has advanced. Of two values the greater one is later."""

    time: int
    """Microseconds: events before it are late."""
    over: bool = True
    """Whether events at `time` are late, too. If not, a key may still get events of that time after its last one."""


class Watermark:
    """The watermark is past an instant, or within it. While it is within an instant, a key may still get events of that
    time after its last one.
    """

    def __init__(self) -> None:
        self.now = NO_TIME
        """The watermark, in microseconds: events before it are late."""
        self.now_is_over = False
        """Whether events at `now` are late, too."""
        self.last: dict[bytes, dict[str, Any]] = {}
        """If `now` is not over: the sequence of each key's last event at `now`."""
        self.late = LateOrdinals()

    def has(self, time: int) -> bool:
        """Whether events at `time` are late."""
        return time < self.now or (time == self.now and self.now_is_over)

    def advance_past(self, time: int) -> None:
        """Events up to `time` are late from now on."""
        self.now, self.now_is_over, self.last = time, True, {}

    def advance_within(self, time: int, events: Batch | None) -> None:
        """Events before `time` are late from now on. `events` are the newly processed ones, given only if they have a
        sequence: then an event at `time` is late, too, if its sequence is not greater than that of its key's last one.
        """
        if time > self.now:
            self.last = {}
        self.now, self.now_is_over = time, False
        if events is None:
            return
        at = np.flatnonzero(times_of(events) == time)
        if not len(at):
            return
        here = events.take(pa.array(at))
        rank = _rank_in(here)
        for name, sequence in zip(key_names(here.keys, len(here)), _sequences(here), strict=True):
            if name not in self.last or rank(self.last[name]) < rank(sequence):
                self.last[name] = sequence

    def parted(self, batch: Batch) -> tuple[Batch, Batch]:
        """Separates the late events, with their ordinals if there are any, from the others."""
        late = self._is_late(batch)
        if not late.any():
            return batch.slice(0, 0), batch
        chosen, others = (batch.take(pa.array(np.flatnonzero(which))) for which in (late, ~late))
        return self.numbered(chosen), others

    def numbered(self, late: Batch) -> Batch:
        """Late events, each with its ordinal among the late events with the same identity."""
        columns = [*late.keys, late.column(TIME), *(late.sequence or late.chosen)]
        return late.with_column(ORDINAL, pa.array(self.late.of(canonical_bytes(columns, len(late)))))

    @property
    def header(self) -> dict[str, Any]:
        """The values for a snapshot's header."""
        return {"now": self.now, "now_is_over": self.now_is_over}

    def batches(self, schema: Schema) -> dict[str, pa.RecordBatch]:
        """The batches for a snapshot."""
        last = {"last": self._listed(schema)} if self.last else {}
        return last | ({"late": self.late.listed} if self.late.count else {})

    def _listed(self, schema: Schema) -> pa.RecordBatch:
        """The content of `last`, as a batch."""
        fields = [pa.field(str(i), schema.columns.field(name).type) for i, name in enumerate(schema.sequence)]
        sequence = pa.struct(fields)
        values = pa.array(self.last.values(), _with_numbers(sequence)).cast(sequence)
        return pa.record_batch({"name": pa.array(self.last, pa.binary()), "sequence": values})

    @staticmethod
    def of(header: Mapping[str, Any], batches: Mapping[str, pa.RecordBatch]) -> Watermark:
        """The watermark in a snapshot's header and batches."""
        watermark, last = Watermark(), batches.get("last")
        watermark.late = LateOrdinals.restored(stored_number(header["counts"]["late"]), batches.get("late"))
        watermark.now, watermark.now_is_over = stored_number(header["now"]), bool(header["now_is_over"])
        if last is not None:
            if last.column("name").null_count or last.column("sequence").null_count:
                raise ValueError("a key lacks its name or its sequence")
            names, sequences = last.column("name").to_pylist(), _in_numbers(last.column("sequence"))
            watermark.last = dict(zip(names, sequences, strict=True))
        return watermark

    def _is_late(self, batch: Batch) -> Flags:
        times = times_of(batch)
        late: Flags = times <= self.now if self.now_is_over else times < self.now
        if not self.now_is_over and self.last:
            at = np.flatnonzero(times == self.now)
            if not len(at):
                return late
            here = batch.take(pa.array(at))
            rank = _rank_in(here)
            for place, name, sequence in zip(at, key_names(here.keys, len(here)), _sequences(here), strict=True):
                late[place] = name in self.last and rank(sequence) <= rank(self.last[name])
        return late


def _sequences(batch: Batch) -> list[dict[str, Any]]:
    """For each event the values of its sequence columns, by the columns' numbers."""
    columns = {str(i): column for i, column in enumerate(batch.sequence)}
    return _in_numbers(pa.record_batch(columns).to_struct_array())


def _in_numbers(sequences: pa.Array) -> list[dict[str, Any]]:
    """The sequences as Python values. Times are numbers, which sort in the same order, because Python's dates do not
    cover all years.
    """
    rows: list[dict[str, Any]] = sequences.cast(_with_numbers(sequences.type)).to_pylist()
    return rows


def _with_numbers(sequence: pa.DataType) -> pa.DataType:
    """The struct type with numbers in place of times; a sequence column is never nested itself."""
    return pa.struct([field.with_type(_number(field.type)) for field in sequence])


def _number(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_date32(type_):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(type_) else type_


def _rank_in(batch: Batch) -> Callable[[Mapping[str, Any]], list[tuple[int, Any]]]:
    """What gives the sort key of a sequence, in the directions of the batch."""
    directions = batch.directions[-len(batch.sequence) :]

    def rank(sequence: Mapping[str, Any]) -> list[tuple[int, Any]]:
        return [_placed(value, direction) for value, direction in zip(sequence.values(), directions, strict=True)]

    return rank


def _placed(value: Any, direction: Direction) -> tuple[int, Any]:
    """The sort key of a value; NaN is greater than all numbers."""
    if value is None:
        return 0 if direction.nulls_first else 2, 0
    place = (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)
    return 1, _Descending(place) if direction.descending else place


@total_ordering
class _Descending:
    """A sort key that is the smaller the greater the value is."""

    def __init__(self, value: tuple[int, Any]) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and self.value == other.value

    def __lt__(self, other: _Descending) -> bool:
        return other.value < self.value

    __hash__ = None  # type: ignore[assignment]
