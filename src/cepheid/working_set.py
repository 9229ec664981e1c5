"""The events that the kernel sees: those that partial matches hold, then the batch; as arrays of 64-bit values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.compiled import CompiledPattern
from cepheid.events import MASK, TIME, Batch, join
from cepheid.identity import as_integers
from cepheid.kernel.layout import Events, Int32s


@dataclass(frozen=True)
class WorkingSet:
    """Events by position: first the held ones, then the batch's."""

    held: Batch | None
    batch: Batch

    def take(self, positions: Int32s) -> Batch:
        """The events at `positions`, which ascend."""
        if self.held is None:
            return self.batch.take(pa.array(positions))
        border = int(np.searchsorted(positions, len(self.held)))
        held = self.held.take(pa.array(positions[:border]))
        return join([held, self.batch.take(pa.array(positions[border:] - len(self.held)))])

    def events(self, pattern: CompiledPattern) -> Events:
        """As the kernel takes them; sets the codes of the pattern's string constants, which hold for this working
        set.
        """
        parts = [self.batch] if self.held is None else [self.held, self.batch]
        length = sum(map(len, parts))
        values = np.zeros((len(pattern.plan.values), length), np.int64)
        missing = np.zeros(values.shape, np.bool_)
        texts: dict[int, pa.ChunkedArray] = {}
        for column in sorted(pattern.script_columns):
            chunks = pa.chunked_array([part.values[column] for part in parts])
            missing[column] = chunks.is_null().to_numpy()
            if _is_text(chunks.type):
                texts[column] = chunks.cast(pa.large_string())
            else:
                values[column] = np.concatenate([_as_words(chunk) for chunk in chunks.chunks])
        if texts or pattern.string_constants:
            _rank_texts(pattern, texts, values)
        return Events(
            time=np.concatenate([part.column(TIME).cast(pa.int64()).to_numpy() for part in parts]),
            mask=np.concatenate([_mask(part) for part in parts]),
            values=values,
            missing=missing,
        )


def relevant(batch: Batch, pattern: CompiledPattern) -> Batch:
    """The batch without events that cannot matter to the pattern."""
    if pattern.relevant is None:
        return batch
    matters = _mask(batch) & pattern.relevant != 0
    return batch if matters.all() else batch.take(pa.array(np.flatnonzero(matters)))


def _mask(batch: Batch) -> npt.NDArray[np.int64]:
    mask: npt.NDArray[np.int64] = batch.column(MASK).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return mask


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


def _as_words(column: pa.Array) -> npt.NDArray[np.int64]:
    """Values as 64 bits: doubles as their bits, decimals scaled; NULL as 0."""
    if pa.types.is_floating(column.type):
        doubles = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        words: npt.NDArray[np.int64] = doubles.view(np.int64)
        return words
    if pa.types.is_decimal128(column.type):
        filled = pc.fill_null(column, pa.scalar(0, column.type))
        halves = np.frombuffer(filled.buffers()[1], dtype=np.int64)  # little endian; 18 digits fit the lower half
        low: npt.NDArray[np.int64] = halves[2 * filled.offset : 2 * (filled.offset + len(filled)) : 2]
        return low
    integers = as_integers(column)
    assert integers is not None, column.type
    return integers


def _rank_texts(pattern: CompiledPattern, texts: dict[int, pa.ChunkedArray], values: npt.NDArray[np.int64]) -> None:
    """Gives strings codes that compare as the strings do: their rank in byte order among all in the working set."""
    constants = pa.chunked_array([pa.array(pattern.string_constants.values(), pa.large_string())])
    distinct = pc.unique(_joined([*texts.values(), constants]))
    distinct = distinct.take(pc.sort_indices(distinct))
    for column, chunks in texts.items():
        values[column] = pc.index_in(chunks, distinct).fill_null(0).to_numpy()
    for number, text in pattern.string_constants.items():
        pattern.tables.constants[number] = pc.index(distinct, pa.scalar(text, pa.large_string())).as_py()


def _joined(columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    return pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.large_string())
