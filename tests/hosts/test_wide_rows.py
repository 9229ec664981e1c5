"""Events with long texts: their rows fit Arrow's columns, whatever is found."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cepheid import CepheidWarning, Pattern, detect
from cepheid.events import identity
from cepheid.events.identity import canonical_bytes, canonical_parts
from cepheid.hosts.in_process import detect as in_process
from cepheid.hosts.in_process import source_rows
from cepheid.matchers.stages import detector
from cepheid.output.stages import rows

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
TIES = pytest.mark.filterwarnings("ignore:.*agree in key and time")
LOOP = Pattern.begin("a").where("n < 5").followed_by("b").where("n >= 5").one_or_more().within("5 seconds")


def table(count: int = 60) -> pa.Table:
    numbers = np.random.default_rng(7).integers(0, 10, count)
    at = [NOON + timedelta(seconds=second // 2) for second in range(count)]
    texts = [f"{number:09}" * int(number + 1) for number in numbers]
    columns = {"k": [second % 3 for second in range(count)], "at": at, "n": numbers, "text": texts}
    return pa.table({**columns, "lists": [[text] * 2 for text in texts]})


@TIES
@pytest.mark.parametrize("shape", [{}, {"rows_per": "event"}, {"outputs": "matches"}])
def test_rows_come_in_parts(shape: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that one column cannot hold come in several chunks, and are the same rows."""
    options = {"key": "k", "time": "at", **shape}
    whole = detect(table(), LOOP, **options)
    with monkeypatch.context() as patched:
        for module in (rows, detector, source_rows):
            patched.setattr(module, "MOST_BYTES", 600)
        patched.setattr(in_process, "PIECE_BYTES", 900)
        patched.setattr(identity, "_AT_ONCE", 200)
        parts = detect(table(), LOOP, **options)
    assert whole.num_rows > 20
    assert parts.equals(whole)
    assert parts.column(-1).num_chunks > 5 * whole.column(-1).num_chunks


def test_parts_have_the_bytes_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of rows do not depend on how many are computed at once; rows may be chosen."""
    columns = [column.combine_chunks() for column in table().columns]
    whole = canonical_bytes(columns, 60).to_pylist()
    monkeypatch.setattr(identity, "_AT_ONCE", 200)
    parts = [*canonical_parts(columns, 60)]
    assert len(parts) > 5
    assert [value for part in parts for value in part.to_pylist()] == whole
    chosen = np.arange(50, 7, -3)
    assert [value for part in canonical_parts(columns, 60, chosen) for value in part.to_pylist()] == [
        whole[row] for row in chosen
    ]


def test_the_warning_of_ties_says_what_wide_events_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where much is hashed to order ties, fewer columns are the remedy."""
    options: dict[str, Any] = {"key": "k", "time": "at"}
    two = pa.concat_tables([table(9), table(9)])
    with pytest.warns(CepheidWarning, match=r"if the rows are in order$"):
        detect(two, LOOP, **options)
    monkeypatch.setattr(in_process, "_MUCH", 900)
    with pytest.warns(CepheidWarning, match=r"Events have \d+ bytes on average, .* choose columns=\[…\]$"):
        detect(two, LOOP, **options)
    with pytest.warns(CepheidWarning, match=r"if the rows are in order$"):
        detect(two, LOOP, columns=["n"], **options)
