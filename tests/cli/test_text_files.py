"""Text files as other programs write them: daily files, formats of times, separators, encodings, compression."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from typer import BadParameter

from cepheid import CepheidWarning
from cepheid.cli.failure import FileProblem
from cepheid.cli.files import check_output, event_files, read_events
from cepheid.cli.text_files.text_format import TextFormat

Cepheid = Callable[..., Any]
RISING = ["detect", "rising.yaml"]
PRICES = ["--measure", "low=low.price", "--measure", "high=high.price"]
DAILY = "day,symbol,price\n2024-05-02,a,12\n2024-05-01,a,5\n"
LONG = 12345678901234567890


@pytest.fixture(autouse=True)
def pattern_over_days(folder: Path) -> None:
    """The prices of a day rise until the next one."""
    rising = folder / "rising.yaml"
    rising.write_text(rising.read_text().replace("1 hour", "2 days"))


def in_one_line(done: Any) -> str:
    """Standard error without the box around it."""
    return " ".join(done.stderr.replace("│", " ").split())


def matches(done: Any) -> list[tuple[Any, ...]]:
    assert (done.returncode, done.stderr) == (0, "")
    return [(row["match_start"], row["low"], row["high"]) for row in map(json.loads, done.stdout.splitlines())]


def test_a_daily_file(folder: Path, cepheid: Cepheid) -> None:
    """A column of dates is the time, also in a compressed file; a match has dates."""
    (folder / "daily.csv").write_text(DAILY)
    (folder / "daily.csv.gz").write_bytes(gzip.compress(DAILY.encode()))
    for name in ("daily.csv", "daily.csv.gz"):
        assert matches(cepheid(*RISING, name, "--time", "day", *PRICES)) == [("2024-05-01", 5, 12)]


@pytest.mark.parametrize(
    ("written", "texts", "start"),
    [
        ("%d.%m.%Y", ("01.05.2024", "02.05.2024"), "2024-05-01"),
        ("%Y%m%d", ("20240501", "20240502"), "2024-05-01"),
        ("%d/%m/%y %I:%M %p", ("01/05/24 01:30 PM", "01/05/24 11:00 PM"), "2024-05-01T13:30:00"),
        ("%H:%M:%S.%f %Y-%m-%d", ("10:00:00.5 2024-05-01", "11:00:00.0 2024-05-01"), "2024-05-01T10:00:00.500000"),
        ("%Y-%m-%d %H:%M %z", ("2024-05-01 10:00 +0200", "2024-05-01 09:00 +0000"), "2024-05-01T08:00:00+00:00"),
    ],
)
def test_formats_of_times(folder: Path, cepheid: Cepheid, written: str, texts: tuple[str, str], start: str) -> None:
    """Times in a given format, in CSV and JSON lines; without a time of day they are dates."""
    first, second = texts
    (folder / "e.csv").write_text(f"at,price\n{second},12\n{first},5\n")
    values = [int(text) if text.isdecimal() else text for text in (second, first)]
    rows = [{"at": value, "price": price} for value, price in zip(values, (12, 5), strict=True)]
    (folder / "e.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for name in ("e.csv", "e.jsonl"):
        assert matches(cepheid(*RISING, name, "--time", "at", "--time-format", written, *PRICES)) == [(start, 5, 12)]


def test_separators_and_encodings(folder: Path, cepheid: Cepheid) -> None:
    """Semicolons, tabs, Latin-1 and UTF-16 are read as the options say."""
    text = "at;Größe;price\n2024-05-01;groß;5\n2024-05-02;groß;12\n"
    (folder / "e.csv").write_bytes(text.encode("latin-1"))
    (folder / "t.csv").write_bytes(text.replace(";", "\t").encode("utf-16"))
    options = ["--time", "at", "--key", "Größe", *PRICES]
    (folder / "t.tsv").write_text(text.replace(";", "\t"))
    for name, given in (
        ("e.csv", ["--separator", ";", "--encoding", "latin-1"]),
        ("t.csv", ["--separator", "tab", "--encoding", "utf-16"]),
        ("t.tsv", []),
    ):
        done = cepheid(*RISING, name, *options, *given)
        assert matches(done) == [("2024-05-01", 5, 12)]
        assert json.loads(done.stdout)["Größe"] == "groß"


def test_numbers_with_a_decimal_comma(tmp_path: Path) -> None:
    """A column in which all texts are numbers with a decimal comma is warned of; other texts are left alone."""
    path = tmp_path / "e.csv"
    path.write_text("n;list\n1.234,5;1,5\n7,0;x\n;\n")
    with pytest.warns(CepheidWarning) as warned:
        read_events([path], times=[], given=TextFormat(separator=";"))
    message = f"column 'n' of {path} is text, as '1.234,5' has a decimal comma: write it with a point"
    assert [str(one.message) for one in warned] == [message]


def test_texts_for_null_are_named(tmp_path: Path) -> None:
    """Numbers with texts that often stand for NULL among them are text, with a warning that says how to read them."""
    path = tmp_path / "e.csv"
    path.write_text("n,m,k\n1.5,x,NA\nNA,NA,NA\n-2,3,NA\n")
    with pytest.warns(CepheidWarning) as warned:
        read_events([path], times=[])
    message = f"column 'n' of {path} is text, as it has 'NA' among its numbers: if that stands for NULL, give --null NA"
    assert [str(one.message) for one in warned] == [message]


def test_files_with_tabs_are_written(folder: Path, cepheid: Cepheid) -> None:
    """An output that ends in .tsv has tabs, and is read as it was written."""
    (folder / "e.csv").write_text(DAILY)
    done = cepheid(*RISING, "e.csv", "--time", "day", *PRICES, "--output", "m.tsv")
    assert done.returncode == 0, done.stderr
    assert "\t" in (folder / "m.tsv").read_text().splitlines()[0]
    assert read_events([folder / "m.tsv"], times=[]).num_rows > 0


def test_long_numbers_in_compressed_files(tmp_path: Path) -> None:
    """Whole numbers beyond 64 bits are exact in compressed files, too."""
    for name, text in (("e.csv.gz", f"id\n{LONG}\n"), ("e.jsonl.gz", f'{{"id": {LONG}}}\n')):
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
        assert read_events([tmp_path / name], times=[]).to_pylist() == [{"id": LONG}]


def test_nanoseconds_in_text(folder: Path, cepheid: Cepheid) -> None:
    """Times finer than microseconds are refused, or cut and ordered by the rest."""
    (folder / "e.csv").write_text("at,price\n2024-05-01T10:00:00.000000002,12\n2024-05-01T10:00:00.000000001,5\n")
    done = cepheid(*RISING, "e.csv", "--time", "at")
    assert done.returncode == 1
    assert "or give --time-resolution us, which cuts times and orders by the rest" in done.stderr
    done = cepheid(*RISING, "e.csv", "--time", "at", "--time-resolution", "us", *PRICES)
    assert matches(done) == [("2024-05-01T10:00:00", 5, 12)]


def test_the_order_of_rows(folder: Path, cepheid: Cepheid) -> None:
    """With --row-order events of the same time are in the order of the file; the warning of ties names it."""
    (folder / "e.csv").write_text("at,price\n2024-05-01,5\n2024-05-01,12\n")
    done = cepheid(*RISING, "e.csv", "--time", "at", "--row-order", *PRICES)
    assert matches(done) == [("2024-05-01", 5, 12)]
    done = cepheid(*RISING, "e.csv", "--time", "at", "--row-order", "--sequence", "price")
    assert done.returncode == 2
    assert "it is given together with --sequence: choose one" in in_one_line(done)


WRONG: list[tuple[str, str, list[str], int, str]] = [
    (
        "e.csv",
        "at;n\n2024-05-01;5\n",
        [],
        3,
        "e.csv has one column, 'at;n', as commas separate values. Give",
    ),
    ("e.csv", "at,n\xf6\n2024-05-01,5\n", [], 3, "e.csv is not in UTF-8 ("),
    ("e.csv", "at,n\n2024-05-01,\xf6\n", [], 3, "e.csv is not in UTF-8 (column 'n' has other bytes). Give its"),
    ("e.csv", "at,n\n1,5\n", ["--time-format", "%d.%m"], 1, "1 of 1 texts in column 'at' of e.csv are not written as "),
    (
        "e.csv",
        "at,price\n31.12.2025 10:00,5\n",
        [],
        1,
        "column 'at' of e.csv has '31.12.2025 10:00' in row 1, which is no time in ISO 8601",
    ),
    ("e.csv", "at;n\n1;5\n", ["--separator", "tab"], 3, "e.csv has one column, 'at;n', as tabs separate values. Give"),
    ("e.csv", "at;n\n1;5,0\n", [], 3, "e.csv has one column, 'at;n', as commas separate values. Give --separator ';'"),
    ("e.csv", "at,n\n1,5\n2\n", [], 3, "e.csv: row 2 has 1 value, and the header 2 names: '2'. Correct it; a value"),
    ("e.csv", "at,n\nNA,5\n", [], 1, "or if it stands for no value, leave the field empty, or in CSV give --null NA"),
    ("e.tsv", "at,n\n1,5\n", [], 3, "e.tsv has one column, 'at,n', as tabs separate values. Give --separator ','"),
    ("e.csv", "at,n\n1,5\n", ["--unmatched"], 2, "rows of matches have no events without one: give --rows-per event"),
    ("e.csv", "at,n\n1,5\n", ["--time-format", "%q"], 2, "--time-format: '%q' is no format of times, as "),
    ("e.csv", "at,n\n1,5\n", ["--separator", "ab"], 2, "one character, or tab, is expected, got 'ab'"),
    ("e.csv", "at,n\n1,5\n", ["--encoding", "latinx"], 2, "'latinx' is not known; use a name such as latin-1"),
    ("e.jsonl", '{"at": 1}', ["--separator", ";"], 3, "--separator: only CSV has that, and these files are JSON lines"),
    ("events.parquet", "", ["--time-format", "%Y"], 3, "--time-format: only CSV and JSON lines have that"),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: str(case[-1]))
def test_what_does_not_fit(folder: Path, cepheid: Cepheid, case: tuple[str, str, list[str], int, str]) -> None:
    """The message says what is wrong with the file, and which option helps."""
    name, text, options, code, message = case
    if text:
        (folder / name).write_bytes(text.encode("latin-1"))
    done = cepheid(*RISING, name, "--time", "at", *options)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in in_one_line(done)


def test_formats_of_times_need_a_column(folder: Path, cepheid: Cepheid) -> None:
    """Without --time no column has the format."""
    (folder / "e.csv").write_text(DAILY)
    done = cepheid("check", "rising.yaml", "--events", "e.csv", "--time-format", "%Y")
    assert (done.returncode, "name the columns with these times by --time" in in_one_line(done)) == (2, True)


def test_compressed_files_are_not_written(tmp_path: Path) -> None:
    """An output that would not be compressed is refused, and so is compressed Parquet as input."""
    with pytest.raises(BadParameter, match=r"m.csv.gz: compressed files are read, but not written. Leave out .gz"):
        check_output(tmp_path / "m.csv.gz", [])
    (tmp_path / "e.parquet.gz").touch()
    with pytest.raises(FileProblem, match=r"extension '.parquet.gz'; known: .parquet, .csv, .* .csv.gz, .jsonl.gz"):
        event_files([str(tmp_path / "e.parquet.gz")])


def test_dates_and_times_of_formats(tmp_path: Path) -> None:
    """The columns named as times have times or dates; others stay as they are."""
    path = tmp_path / "e.csv"
    path.write_text("a,b,c\n01.02.2024,01.02.2024,x\n,03.02.2024,y\n")
    table = read_events([path], times=["a"], given=TextFormat(time_format="%d.%m.%Y"))
    assert table.column("a").to_pylist() == [date(2024, 2, 1), None]
    assert table.column("b").to_pylist() == ["01.02.2024", "03.02.2024"]
    table = read_events([path], times=["b"], given=TextFormat(time_format="%d.%m.%Y"))
    assert table.column("b").to_pylist() == [date(2024, 2, 1), date(2024, 2, 3)]
    path.write_text("a\n1 Feb 2024 10h\n")
    table = read_events([path], times=["a"], given=TextFormat(time_format="%-d %b %Y %Hh"))
    assert table.column("a").to_pylist() == [datetime(2024, 2, 1, 10)]  # noqa: DTZ001


def test_why_reads_the_same_files(folder: Path, cepheid: Cepheid) -> None:
    """`cepheid why` has the options of text files, too."""
    (folder / "e.csv").write_bytes("Tag;price\n01.05.2024;5\n02.05.2024;8\n".encode("latin-1"))
    options = ["--separator", ";", "--encoding", "latin-1", "--time", "Tag", "--time-format", "%d.%m.%Y"]
    done = cepheid("why", "rising.yaml", "e.csv", *options, "--json")
    assert (done.returncode, json.loads(done.stdout)["events"]) == (0, 2)
