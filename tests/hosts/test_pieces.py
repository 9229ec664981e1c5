"""Events are processed in pieces. Matches with events of two pieces come with the others, in their order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cepheid import Pattern, detect
from cepheid.hosts.in_process import detect as in_process
from cepheid.matchers.stages import detector

PAIRS = Pattern.begin("a").where("x = 0").next("b").where("x = 1").within("1 minute")


def test_matches_over_the_border_of_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows do not depend on the pieces, nor on whether the few matches with held events are made to rows apart."""
    number = np.arange(200)
    at = pa.array(1_000_000 * number).cast(pa.timestamp("us", "UTC"))
    events = pa.table({"k": number // 100, "at": at, "x": number % 2, "text": [f"event {i}" for i in number]})
    whole = detect(events, PAIRS, key="k", time="at")
    assert whole.num_rows == 100
    monkeypatch.setattr(in_process, "PIECE", 31)  # odd, so that pairs lie over borders
    in_pieces = detect(events, PAIRS, key="k", time="at")
    monkeypatch.setattr(detector, "_FEW", 4)
    apart = detect(events, PAIRS, key="k", time="at")
    assert in_pieces.to_pylist() == whole.to_pylist()
    assert apart.to_pylist() == whole.to_pylist()
    assert apart.column("match_id").num_chunks > in_pieces.column("match_id").num_chunks
