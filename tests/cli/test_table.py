"""The table that a terminal shows: it fits, and it cuts off no time."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from rich.console import Console

from cepheid.cli.rows import print_table

START, END = datetime(2026, 3, 2, 8, 0, 0, 123456, UTC), datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
MATCHES = pa.table(
    {
        "match_id": ["0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"],
        "tailnum": ["N228JB", "N16954"],
        "match_start": [START, None],
        "detected_at": [END, END],
        "legs": [[{"at": END, "to": "a name of some length"}], []],
        "day": [date(2026, 3, 2), date(2026, 3, 3)],
    }
)


def printed(width: int, matches: pa.Table = MATCHES) -> list[str]:
    """The lines that a terminal of this width shows."""
    text = io.StringIO()
    print_table(matches, Console(file=text, width=width, force_terminal=True, color_system=None))
    return text.getvalue().splitlines()


@pytest.mark.parametrize("width", [50, 60, 80, 100, 110, 120, 140, 200, 300])
def test_times_are_whole(width: int) -> None:
    """Each date, and each time of day, is whole in some line, and no line is wider than the terminal."""
    lines = printed(width)
    assert all(len(line) <= width for line in lines)
    for whole in ("2026-03-02", "08:00:00.123456+00:00", "09:30:00+00:00", '"2026-03-02T09:30:00+00:00"', "2026-03-03"):
        assert any(whole in line for line in lines), whole


def test_a_wide_terminal_shows_whole_ids() -> None:
    """With enough room each row is one line; with less, an id is shortened first."""
    assert any("0123456789abcdef0123456789abcdef" in line for line in printed(300))
    assert any("0123456789a…" in line for line in printed(140))


def test_a_narrow_terminal_shows_a_list() -> None:
    """Where the columns do not fit side by side, they are below each other, with the whole id."""
    lines = [line.rstrip() for line in printed(60)]
    assert lines[0] == "1"
    assert "match_start  2026-03-02 08:00:00.123456+00:00" in lines
    assert "match_id     fedcba9876543210fedcba9876543210" in lines


@pytest.mark.parametrize("width", [40, 200])
def test_no_rows_and_no_columns(width: int) -> None:
    """A table without rows shows its columns where they fit."""
    assert all(len(line) <= width for line in printed(width, MATCHES[:0]))
    printed(width, MATCHES.select([]))
