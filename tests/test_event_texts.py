"""Events as error messages show them."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from cepheid import ConditionError, Pattern, detect
from cepheid.output.values import columns_text, event_text


def test_what_is_shown() -> None:
    """Values in one line, the first hundred characters of each, and the first twenty columns."""
    assert columns_text({"a": None, "b": True, "c": "it's\n\x1b[31m"}) == "a = NULL, b = true, c = 'it''s\\n\\x1b[31m'"
    assert columns_text({"long": "x" * 3_000_000}) == f"long = '{'x' * 99}…"
    assert len(columns_text({"numbers": [*range(5000)]})) < 120
    assert columns_text({f"c{n}": n for n in range(200)}).endswith("c19 = 19, and 180 more columns")
    assert event_text("", columns_text({"a": 1})) == "the event with a = 1"
    assert event_text("", "") == "an event without columns"


@pytest.mark.parametrize(
    ("zone", "columns", "shown"),
    [
        ("Europe/Berlin", None, "at = 2026-03-02 09:01:00, v = 2"),
        ("Europe/Berlin", ["v"], "at = 2026-03-02 08:01:00 UTC, v = 2"),
        (None, ["at"], "at = 2026-03-02 08:01:00"),
        (None, [], "at = 2026-03-02 07:01:00 UTC"),
    ],
)
def test_the_time_of_the_event(zone: str | None, columns: list[str] | None, shown: str) -> None:
    """A time that is among the chosen columns is shown as it is there, any other in UTC, which is said."""
    at = pa.array([datetime(2026, 3, 2, 8, minute, tzinfo=UTC) for minute in range(2)], pa.timestamp("us", "UTC"))
    times = at.cast(pa.timestamp("us", zone)) if zone else at.cast(pa.timestamp("us"))
    events = pa.table({"at": times, "v": [1, 2]})
    pattern = Pattern.begin("a").next("b").where("1 / (v - a.v - 1) > 0")
    with pytest.raises(ConditionError) as caught:
        detect(events, pattern, time="at", columns=columns, time_zone="Europe/Berlin")
    assert str(caught.value).endswith(f", at the event with {shown}")


@pytest.mark.parametrize(
    ("type_", "message"),
    [("INT", "number"), ("DOUBLE", "number"), ("DECIMAL(5, 2)", "number"), ("DATE", "DATE"), ("BOOLEAN", "BOOLEAN")],
)
def test_a_text_that_cannot_be_cast(type_: str, message: str) -> None:
    """The error says what the text is not; the event has the text."""
    events = pa.table({"at": pa.array([0], pa.timestamp("us")), "s": ["x"]})
    with pytest.raises(ConditionError, match=rf"^the text is not a {message} in .*, s = 'x'$"):
        detect(events, Pattern.begin("a").where(f"CAST(s AS {type_}) IS NOT NULL"), time="at")
