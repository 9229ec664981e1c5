"""What pandas has that other tables lack: an index, and periods."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from cepheid import Matcher, Pattern, Report, SchemaError, detect, why

PATTERN = Pattern.begin("big").where("v > 0")
EVENTS = pd.DataFrame(
    {"user": ["a", "a"], "at": pd.to_datetime(["2026-02-01", "2026-02-02"]), "seq": [1, 2], "v": [1, 2]}
)
OPTIONS: dict[str, Any] = {"key": "user", "time": "at", "sequence": "seq DESC"}
RESET = "is in the index of the table, not among its columns: give events.reset_index()"


@pytest.mark.parametrize(
    ("levels", "faults"),
    [
        (["at"], [f"time: 'at' {RESET}"]),
        (["user", "at"], [f"key: 'user' {RESET}", f"time: 'at' {RESET}"]),
        (["seq"], [f"sequence: 'seq' {RESET}"]),
    ],
)
@pytest.mark.parametrize("call", [detect, why, lambda events, pattern, **options: Matcher(pattern, events, **options)])
def test_columns_in_the_index(call: Any, levels: list[str], faults: list[str]) -> None:
    """A key, a time or a sequence in the index is refused, with what to write."""
    with pytest.raises(SchemaError) as error:
        call(EVENTS.set_index(levels), PATTERN, **OPTIONS)
    assert str(error.value).splitlines() == faults
    assert len(detect(EVENTS.set_index(levels).reset_index(), PATTERN, **OPTIONS)) == 2


def test_times_in_an_index_without_a_name() -> None:
    """An index without a name may have the times that are missing. One with numbers may not, nor may one that no
    argument names.
    """
    index = pd.DatetimeIndex(EVENTS["at"]).rename(None)
    without = EVENTS.drop(columns="at")
    with pytest.raises(
        SchemaError, match=r"but the index, which has no name, has times. If they are meant, give "
    ) as error:
        detect(without.set_index(index), PATTERN, **OPTIONS)
    advised = str(error.value).removesuffix(".reset_index()").split("events.")[-1]
    assert advised == "rename_axis('at')"
    assert len(detect(without.set_index(index).rename_axis("at").reset_index(), PATTERN, **OPTIONS)) == 2
    with pytest.raises(SchemaError, match=r"^time: no column named 'at'. Known here: user, seq, v$"):
        detect(without, PATTERN, **OPTIONS)
    assert len(detect(EVENTS.set_index(index), PATTERN, **OPTIONS)) == 2


def test_periods_are_texts() -> None:
    """Periods, which Arrow would have as numbers, are texts in keys and conditions; in columns of the output they are
    periods again. A missing one is NULL.
    """
    months = pd.Series(pd.PeriodIndex(["2026-01", None], freq="M"))
    found = detect(EVENTS.assign(user=months), PATTERN, **OPTIONS, nulls="drop", report=Report())
    assert found["user"].tolist() == [pd.Period("2026-01", "M")]
    compared = PATTERN.where("month = '2026-01'")
    assert len(detect(EVENTS.assign(month=months), compared, **OPTIONS)) == 1
    with pytest.raises(SchemaError, match="time: 'at' is of type STRING; event time is a TIMESTAMP"):
        detect(EVENTS.assign(at=months), PATTERN, **OPTIONS)
