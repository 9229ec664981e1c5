"""What a picture reads of rows that `detect` gives."""

from __future__ import annotations

import pyarrow as pa

from cepheid import Pattern, detect
from cepheid.plotting.matches import matches_of


def test_rows_about_no_match_are_left_out() -> None:
    """Timeouts are no matches, nor are the events that `unmatched` adds."""
    events = pa.table({"at": pa.array([0, 1, 2, 9], pa.timestamp("s")), "x": [1, 2, 1, 2]})
    pattern = Pattern.begin("a").where("x = 1").followed_by("b").where("x = 2").within("5 seconds")
    both = detect(events, pattern, time="at", outputs=("matches", "timeouts"))
    assert sorted(both["kind"].to_pylist()) == ["match", "timeout"]
    assert matches_of(both, [], ["at"]).rows.num_rows == 1
    rows = detect(events, pattern, time="at", rows_per="event", unmatched=True)
    assert rows["match_id"].null_count
    assert matches_of(rows, [], ["at"]).stage == ["a", "b"]
