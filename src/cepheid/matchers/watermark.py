"""How far time has passed, and so which events are late."""

from __future__ import annotations

import math
from collections.abc import Mapping
from operator import index
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.events.batch import ORDINAL, TIME, Batch, Schema
from cepheid.events.identity import canonical_bytes, key_names
from cepheid.events.late_ordinals import LateOrdinals
from cepheid.kernel.stages.layout import NO_TIME, Flags
from cepheid.matchers.event_queue import times_of


class Passed:
    """Time passes to an instant, or to within it: then further events of it may come, of each key behind its last."""

    def __init__(self) -> None:
        self.now = NO_TIME
        """Microseconds: time has passed to here; what comes with an earlier time is late."""
        self.now_is_over = False
        """Whether what comes with this time is late, too."""
        self.last: dict[bytes, dict[str, Any]] = {}
        """If it is not over: the sequence of the last event that each key had at this time."""
        self.late = LateOrdinals()

    def has(self, time: int) -> bool:
        """Whether time has passed `time`."""
        return time < self.now or (time == self.now and self.now_is_over)

    def to(self, time: int) -> None:
        """No event up to `time` comes any more."""
        self.now, self.now_is_over, self.last = time, True, {}

    def settle(self, time: int, events: Batch | None) -> None:
        """No event before `time` comes any more and, where `events` are in a sequence, of each key none at `time` whose
        sequence is not greater than theirs.
        """
        if time > self.now:
            self.last = {}
        self.now, self.now_is_over = time, False
        if events is None:
            return
        here = events.take(pa.array(np.flatnonzero(times_of(events) == time)))
        for name, sequence in zip(key_names(here.keys, len(here)), _sequences(here), strict=True):
            if name not in self.last or _rank(self.last[name]) < _rank(sequence):
                self.last[name] = sequence

    def parted(self, batch: Batch) -> tuple[Batch, Batch]:
        """The late events, with their ordinals, and the others."""
        late = self._is_late(batch)
        if not late.any():
            return self.numbered(batch.slice(0, 0)), batch
        chosen, others = (batch.take(pa.array(np.flatnonzero(which))) for which in (late, ~late))
        return self.numbered(chosen), others

    def numbered(self, late: Batch) -> Batch:
        """Events that are late, with their ordinals: among those that are known by the same."""
        columns = [*late.keys, late.column(TIME), *(late.sequence or late.chosen)]
        return late.with_column(ORDINAL, pa.array(self.late.of(canonical_bytes(columns, len(late)))))

    @property
    def header(self) -> dict[str, Any]:
        """For a snapshot."""
        return {"now": self.now, "now_is_over": self.now_is_over}

    def batches(self, schema: Schema) -> dict[str, pa.RecordBatch]:
        """Likewise."""
        last = {"last": self._listed(schema)} if self.last else {}
        return last | ({"late": self.late.listed} if self.late.count else {})

    def _listed(self, schema: Schema) -> pa.RecordBatch:
        """What `last` has."""
        fields = [pa.field(str(i), schema.columns.field(name).type) for i, name in enumerate(schema.sequence)]
        sequence = pa.struct(fields)
        values = pa.array(self.last.values(), _with_numbers(sequence)).cast(sequence)
        return pa.record_batch({"name": pa.array(self.last, pa.binary()), "sequence": values})

    @staticmethod
    def of(header: Mapping[str, Any], batches: Mapping[str, pa.RecordBatch]) -> Passed:
        """What a snapshot has, which counts the late events."""
        passed, last = Passed(), batches.get("last")
        passed.late = LateOrdinals.restored(index(header["counts"]["late"]), batches.get("late"))
        passed.now, passed.now_is_over = index(header["now"]), bool(header["now_is_over"])
        if last is not None:
            names, sequences = last.column("name").to_pylist(), _in_numbers(last.column("sequence"))
            passed.last = dict(zip(names, sequences, strict=True))
        return passed

    def _is_late(self, batch: Batch) -> Flags:
        times = times_of(batch)
        late: Flags = times <= self.now if self.now_is_over else times < self.now
        if not self.now_is_over and self.last:
            at = np.flatnonzero(times == self.now)
            here = batch.take(pa.array(at))
            for place, name, sequence in zip(at, key_names(here.keys, len(here)), _sequences(here), strict=True):
                late[place] = name in self.last and _rank(sequence) <= _rank(self.last[name])
        return late


def _sequences(batch: Batch) -> list[dict[str, Any]]:
    """The values of each event's sequence columns, by their numbers."""
    columns = {str(i): column for i, column in enumerate(batch.sequence)}
    return _in_numbers(pa.record_batch(columns).to_struct_array())


def _in_numbers(sequences: pa.Array) -> list[dict[str, Any]]:
    """As Python's, but times are numbers, which compare as they do: Python has not all of the years."""
    rows: list[dict[str, Any]] = sequences.cast(_with_numbers(sequences.type)).to_pylist()
    return rows


def _with_numbers(sequence: pa.DataType) -> pa.DataType:
    """Sequences have no structure within their struct of columns."""
    return pa.struct([field.with_type(_number(field.type)) for field in sequence])


def _number(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_date32(type_):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(type_) else type_


def _rank(sequence: Mapping[str, Any]) -> list[tuple[int, Any]]:
    """What orders sequences: NaN comes behind all numbers, NULL last."""
    return [_placed(value) for value in sequence.values()]


def _placed(value: Any) -> tuple[int, Any]:
    if value is None:
        return 2, 0
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)
