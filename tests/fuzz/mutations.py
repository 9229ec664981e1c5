"""Changes of texts, bytes and snapshots, drawn from a source of random numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.matchers.snapshot import Snapshot

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_EXTREMES = (0, 1, -1, 2, 7, 255, 10_000, 2**31 - 1, -(2**31), 2**62, -(2**63), 2**63 - 1)
_JSON = (None, True, -1, 0, 3, 10**20, 1.5, "", "x", [], {}, [[]])


def mutated_text(source: Random, text: str, words: Sequence[str]) -> str:
    """The text after one to three changes of its tokens, some of which become other words."""
    tokens = _TOKEN.findall(text)
    for _ in range(source.choice([1, 1, 1, 2, 3])):
        at = source.randrange(len(tokens) + 1)
        end = min(len(tokens), at + source.choice([1, 1, 1, 2, 5]))
        match source.randrange(5):
            case 0:
                del tokens[at:end]
            case 1:
                tokens[at:at] = tokens[at:end]
            case 2:
                tokens.insert(at, source.choice(words))
            case 3:
                tokens[at:end] = [source.choice(words)]
            case _:
                other = source.randrange(len(tokens) + 1)
                tokens[other:other] = tokens[at:end]
    return "".join(tokens)


def mutated_bytes(source: Random, data: bytes) -> bytes:
    """The bytes with some of them changed, left out or repeated."""
    at = source.randrange(len(data))
    size = source.choice([1, 1, 4, 64])
    match source.randrange(3):
        case 0:
            return data[:at] + bytes(source.randrange(256) for _ in range(size)) + data[at + size :]
        case 1:
            return data[:at] + data[at + size :]
        case _:
            return data[: at + size] + data[at:]


def mutated_snapshot(source: Random, snapshot: Snapshot) -> Snapshot:
    """The snapshot with one array, one batch of events or one value of its header changed."""
    kinds = [kind for kind in ("arrays", "batches", "header") if getattr(snapshot, kind)]
    kind = source.choice(kinds)
    if kind == "header":
        return snapshot._replace(header=mutated_json(source, snapshot.header))
    parts: dict[str, Any] = {**getattr(snapshot, kind)}
    name = source.choice(sorted(parts))
    if source.randrange(12) == 0:
        del parts[name]
    else:
        parts[name] = (_mutated_array if kind == "arrays" else mutated_batch)(source, parts[name])
    return snapshot._replace(**{kind: parts})


def mutated_json(source: Random, value: Any) -> Any:
    """The JSON value with a part of it changed or left out."""
    if isinstance(value, dict) and value:
        name = source.choice(sorted(value))
        rest = {key: item for key, item in value.items() if key != name}
        return rest if source.randrange(8) == 0 else {**rest, name: mutated_json(source, value[name])}
    if isinstance(value, list) and value and source.randrange(3):
        at = source.randrange(len(value))
        return [*value[:at], mutated_json(source, value[at]), *value[at + 1 :]]
    return source.choice(_JSON)


def _mutated_array(source: Random, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    match source.randrange(6):
        case 0:
            return array[: source.randrange(len(array) + 1)] if array.ndim else array
        case 1:
            return np.concatenate([array, array]) if array.ndim else array
        case 2:
            return array.astype(np.float64) if array.dtype.names is None and array.dtype.kind in "iub" else array[:0]
        case _:
            return _with_other_element(source, array)


def _with_other_element(source: Random, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if not array.size:
        return array
    changed = array.copy()
    raw = changed.reshape(-1)
    at = source.randrange(raw.size)
    element = raw[at : at + 1]
    if array.dtype.names:
        element = element[source.choice(array.dtype.names)]
    if element.dtype.kind in "iu":
        bits = 8 * element.dtype.itemsize
        element[...] = np.array([source.choice(_EXTREMES) % 2**bits], np.uint64).astype(element.dtype)
    elif element.dtype.kind in "bf":
        element[...] = source.choice([0, 1])
    return changed


def mutated_batch(source: Random, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with a column or some rows changed or left out."""
    names = batch.schema.names
    match source.randrange(4):
        case 0:
            return batch.slice(0, source.randrange(len(batch) + 1))
        case 1 if names:
            return batch.drop_columns([source.choice(names)])
        case 2 if names:
            at = source.randrange(len(names))
            field = batch.schema.field(at)
            return batch.set_column(at, field, pa.nulls(len(batch), field.type))
        case _:
            order = [source.randrange(len(batch)) for _ in range(len(batch))]
            return batch.take(pa.array(order, pa.int64()))
