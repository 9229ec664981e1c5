"""Lengths and times of many near misses in words, computed for whole columns."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.arrays import Ints
from cepheid.events.batch import python_values
from cepheid.lang.duration import WHOLE_UNITS
from cepheid.output.values import plain_text

_YEARS = 1000, 9999
"""Years that Python and Arrow write alike."""
_LAST_IN_ZONES = 2037
"""The last year whose changes of the clock Arrow knows."""


def lengths_text(microseconds: Ints) -> pa.Array:
    """Each positive length as `format_duration` writes it."""
    parts, rest = [pa.repeat("", len(microseconds))], microseconds
    for name, length in WHOLE_UNITS.items():
        count, rest = rest // length, rest % length
        if not count.any():
            continue
        unit = pc.if_else(pa.array(count > 1), f" {name}s", f" {name}")
        parts.append(pc.if_else(pa.array(count > 0), joined([" ", pa.array(count).cast(pa.string()), unit], ""), ""))
    return pc.utf8_ltrim(joined(parts, ""), " ")


def times_text(times: pa.ChunkedArray) -> pa.Array:
    """Each time as `plain_text` writes it."""
    if not _is_usual(times):
        return pa.array([plain_text(time) for time in python_values(times)], pa.string())
    local = times if times.type.tz is None else pc.local_timestamp(times)
    texts = local.cast(pa.timestamp("us")).cast(pa.string()).combine_chunks()
    return pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")


def joined(parts: list[pa.Array | str], between: str = " ") -> pa.Array:
    """The parts of each row as one text. None of them is NULL."""
    return pc.binary_join_element_wise(*parts, between)


def _is_usual(times: pa.ChunkedArray) -> bool:
    """Whether Arrow can write the times: those without nanoseconds, in years of four digits."""
    if not pa.types.is_timestamp(times.type) or times.type.unit == "ns" or times.null_count:
        return False
    years = pc.min_max(pc.year(times)).as_py()
    first, last = _YEARS
    last = last if times.type.tz in (None, "UTC") else _LAST_IN_ZONES
    return len(times) > 0 and bool(first < years["min"] and years["max"] < last)
