"""`--parameter`: values for the `$name`s of a pattern file, in each command."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cepheid.cli.parameter_value import parameter_value
from cepheid.errors import PatternError

Cepheid = Callable[..., Any]
PATTERN = """\
name: rising
version: 1.10
parameters:
  limit: 10
  symbol:
taxonomy:
  column: symbol
  kinds: {a: any, b: any}
within: 1 hour
stages:
  - begin: low
    subtype: any
    where: price < $limit AND symbol = $symbol
  - next: high
    where: price > low.price
"""
EVENTS = ("events.parquet", "--key", "symbol", "--time", "at")


@pytest.fixture
def asked(folder: Path) -> Path:
    """A pattern file with parameters."""
    (folder / "asked.yaml").write_text(PATTERN)
    return folder / "asked.yaml"


@pytest.mark.usefixtures("asked")
def test_detect_with_parameters(cepheid: Cepheid) -> None:
    """A value from the command line replaces that of the file; measures may use parameters, too."""
    given = ["--parameter", "symbol=b", "--parameter", "limit=7.5", "--measure", "over=high.price - $limit"]
    done = cepheid("detect", "asked.yaml", *EVENTS, *given)
    assert (done.returncode, done.stderr) == (0, "")
    (match,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert match["over"] == 3.5


@pytest.mark.usefixtures("asked")
def test_explain_prints_types_version_and_parameters(cepheid: Cepheid) -> None:
    """Values are printed as SQL, and parameters without a value as such."""
    done = cepheid("explain", "asked.yaml", "--parameter", "limit=7.5")
    assert done.returncode == 0
    assert done.stdout.startswith("Pattern rising, version 1.10\n")
    assert "     where subtype any\n     and price < $limit AND symbol = $symbol\n" in done.stdout
    assert "Types: column symbol; a is a any; b is a any\n" in done.stdout
    assert "Parameter: $limit = 7.5D\nParameter: $symbol = must be given\n" in done.stdout


@pytest.mark.usefixtures("asked")
def test_check_reports_all_at_once(cepheid: Cepheid) -> None:
    """A missing value is reported with its position in the file; an unknown name is reported with the known ones."""
    done = cepheid("check", "asked.yaml", "--parameter", "limits=5")
    assert done.returncode == 1
    assert done.stderr == (
        "the parameter 'symbol' has no value (asked.yaml, stage 'low', where, line 13, column 40)\n"
        "      where: price < $limit AND symbol = $symbol\n"
        "                                         ^^^^^^^\n"
        "Give it: with_parameters(symbol=…), --parameter symbol=… on the command line, "
        "or a value in the pattern file.\n"
        "the parameter 'limits' is not used: no condition, measure, length or count has $limits (parameter 'limits')\n"
        "Did you mean 'limit'?\n"
    )
    assert cepheid("check", "asked.yaml", "--parameter", "symbol=it's").returncode == 0


OCCURRENCES = """\
parameters: {least: 8, who: , spare: 1}
taxonomy: {column: symbol}
types:
  Dear: "?p: a [p.price > $least]"
occurrence: (?low:b; Dear)[low.price < $who]
"""
INTERVALS = """\
parameters: {who: , spare: 1}
taxonomy: {column: symbol}
interval: EVENT SEQ(b low, a high) WHERE low.price < $who
"""


@pytest.mark.parametrize(("text", "line", "spare"), [(OCCURRENCES, 5, 31), (INTERVALS, 3, 21)])
def test_parameters_of_other_patterns(folder: Path, cepheid: Cepheid, text: str, line: int, spare: int) -> None:
    """Files of occurrences and of intervals have parameters, too: explain prints them, check and detect need their
    values.
    """
    (folder / "p.yaml").write_text(text)
    done = cepheid("check", "p.yaml", "--json")
    problems = json.loads(done.stdout)["problems"]
    assert [(p["message"], p["line"]) for p in problems] == [
        ("the parameter 'who' has no value", line),
        ("the parameter 'spare' is not used: no condition, measure, length or count has $spare", 1),
    ]
    assert problems[1]["column"] == spare
    (folder / "p.yaml").write_text(text.replace(", spare: 1", ""))
    explained = cepheid("explain", "p.yaml")
    assert (explained.returncode, explained.stdout.count("Parameter: $who = must be given\n")) == (0, 1)
    times = ["--start", "at", "--end", "at"] if text == INTERVALS else ["--time", "at"]
    found = cepheid("detect", "p.yaml", "events.parquet", *times, "--parameter", "who=8")
    assert (found.returncode, found.stderr, len(found.stdout.splitlines())) == (0, "", 1)


def test_problems_of_parameters_and_types_are_placed(folder: Path, cepheid: Cepheid) -> None:
    """Problems are reported at the parameter's name, the subtype or the taxonomy."""
    text = PATTERN.replace("subtype: any", "subtype: ani").replace("limit: 10", "limit: 10\n  spare: 1")
    (folder / "p.yaml").write_text(
        text.replace("column: symbol", "column: symbl").replace("  symbol:\n", "  symbol: a\n")
    )
    done = cepheid("check", "p.yaml", "--events", *EVENTS, "--json")
    problems = json.loads(done.stdout)["problems"]
    assert [(p["message"], p["line"], p["column"]) for p in problems] == [
        ("no type 'ani' in the taxonomy", 13, 14),
        ("no column named 'symbl', which holds the types", 8, 11),
        ("the parameter 'spare' is not used: no condition, measure, length or count has $spare", 5, 3),
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("0.5", 0.5),
        ("1e3", 1000.0),
        ("TRUE", True),
        ("true story", "true story"),
        ("", ""),
        ("it's", "it's"),
        ("'5'", "5"),
        ("date", "date"),
        ("DATE '2026-01-31'", date(2026, 1, 31)),
        ("INTERVAL 90 SECONDS", timedelta(seconds=90)),
        ("timestamp '2026-01-31 12:00:00Z'", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("[a b, 5,'c, \\'d', DATE '2026-01-31']", ("a b", 5, "c, 'd", date(2026, 1, 31))),
        ("[a]", ("a",)),
        ("'[a]'", "[a]"),
        ("[a", "[a"),
    ],
)
def test_values(text: str, value: object) -> None:
    """Numbers, true and false are read as in pattern files; dates, times and quoted text as in SQL; all else
    is text.
    """
    found = parameter_value(text)
    assert (found, type(found)) == (value, type(value))


def test_refused_values() -> None:
    """A value that begins like a date or a quoted text must be one."""
    with pytest.raises(PatternError, match="month must be in"):
        parameter_value("DATE '2026-13-01'")
    with pytest.raises(PatternError, match="interval of days to seconds or quoted text as in SQL is expected"):
        parameter_value("'a' || 'b'")
    for text in ("[]", "[a,]"):
        with pytest.raises(PatternError, match=r"an item of a list is missing: .* Write '' for empty text"):
            parameter_value(text)
    with pytest.raises(PatternError, match=r"a quote is not closed: \['a\]"):
        parameter_value("['a]")


WATCHED = "parameters: {watch: [c]}\nstages: [{begin: one, where: symbol IN ($watch)}]\n"


def test_a_watchlist_in_a_file(folder: Path, cepheid: Cepheid) -> None:
    """A list may be given item by item, or as a column of a file."""
    (folder / "watched.yaml").write_text(WATCHED)
    (folder / "watchlist.csv").write_text("symbol,since\nb,2026-01-31\nz,2026-02-28\nb,2026-01-31\n")
    found = []
    for given in ("watch=[b, z]", f"watch=@{folder / 'watchlist.csv'}:symbol"):
        done = cepheid("detect", "watched.yaml", *EVENTS, "--parameter", given)
        assert (done.returncode, done.stderr) == (0, "")
        found.append(done.stdout)
    assert found[0] == found[1]
    assert {json.loads(line)["symbol"] for line in found[0].splitlines()} == {"b"}


def test_columns_of_files(tmp_path: Path) -> None:
    """A column has the types of its file; a file that cannot be read, or has no such column, is named."""
    path = tmp_path / "list.csv"
    path.write_text("n,day,half\n5,2026-01-31,1\n6,2026-02-28,\n5,2026-01-31,2\n")
    assert parameter_value(f"@{path}:n") == (5, 6)
    assert parameter_value(f"@{path}:day") == (date(2026, 1, 31), date(2026, 2, 28))
    assert parameter_value("@bob") == "@bob"
    assert parameter_value("'@list.csv:n'") == "@list.csv:n"
    with pytest.raises(PatternError, match=r"list\.csv has no column 'm'\. Known here: n, day, half"):
        parameter_value(f"@{path}:m")
    with pytest.raises(PatternError, match=r"list\.csv, column 'half': item 2 is None: leave it out"):
        parameter_value(f"@{path}:half")


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["limit"], "'limit' is not NAME=VALUE, as in 'limit=100'"),
        (["limit=1", "limit=2"], "the parameter 'limit' is given twice"),
        (["limit=DATE '2026-02-30'"], "day is out of range for month"),
        (["limit=@nothing.csv:n"], "there is no file nothing.csv"),
    ],
)
def test_refused_options(cepheid: Cepheid, given: list[str], message: str) -> None:
    """An option that is not NAME=VALUE is a usage error."""
    options = [option for text in given for option in ("--parameter", text)]
    done = cepheid("check", "asked.yaml", *options)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.replace("│", " ").split())
