"""Rows of pieces of a finite input are merged in the order of match_end, match_start and match_id."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from cepheid.events.time import TIME_TYPE
from cepheid.output.intervals.finite import merged_by_end
from cepheid.plan.reserved import BY_END

SCHEMA = pa.schema([("match_end", TIME_TYPE), ("match_start", TIME_TYPE), ("match_id", pa.string())])
ORDER = [(name, "ascending") for name in BY_END]


def rows(ends: list[tuple[int, int]], piece: int) -> pa.Table:
    """A piece with these ends and starts, in order; no id is in two rows."""
    given = [(end, start, f"{(7 * i + piece) % 5}-{piece}-{i}") for i, (end, start) in enumerate(ends)]
    end, start, match_id = zip(*given, strict=True) if given else ((), (), ())
    times = (pa.array(times, pa.int64()).cast(TIME_TYPE) for times in (end, start))
    return pa.table([*times, pa.array(match_id, pa.string())], SCHEMA).sort_by(ORDER).combine_chunks()


@given(st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(-3, 3)), max_size=6), max_size=6))
def test_any_pieces(pieces: list[list[tuple[int, int]]]) -> None:
    """Rows of one piece may belong before those of earlier ones, and pieces may be empty."""
    table = pa.concat_tables([SCHEMA.empty_table(), *(rows(ends, i) for i, ends in enumerate(pieces))])
    assert merged_by_end(table).to_pylist() == table.sort_by(ORDER).to_pylist()
