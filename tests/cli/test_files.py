"""Events from files and matches into files: kinds, types, and what is refused before any work is done."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from cepheid.cli.failure import FileProblem
from cepheid.cli.files import check_output, event_files, read_events, read_events_on_spark, read_schema, write_matches
from cepheid.cli.text_files.text_format import TextFormat
from cepheid.errors import EventError, SchemaError

CSV = "id,time,amount,note\n1,2024-05-01T10:00:00,1.5,a\n2,2024-05-01T10:00:01,,\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_one_schema_from_several_files_and_globs(tmp_path: Path) -> None:
    """Files given by name and by glob are read in order, as one table."""
    for number in range(3):
        pq.write_table(pa.table({"id": [number]}), tmp_path / f"part-{number}.parquet")
    paths = event_files([str(tmp_path / "part-2.parquet"), str(tmp_path / "part-[01].parquet")])
    assert read_events(paths, times=["id"]).column("id").to_pylist() == [2, 0, 1]
    assert read_schema(paths, times=[]) == pa.schema({"id": pa.int64()})


def test_a_folder_of_parquet_is_read(tmp_path: Path) -> None:
    """Spark writes a folder; its marker files are ignored."""
    folder = tmp_path / "events.parquet"
    folder.mkdir()
    pq.write_table(pa.table({"id": [1]}), folder / "part-0.parquet")
    (folder / "_SUCCESS").touch()
    assert read_events(event_files([str(folder)]), times=["id"]).num_rows == 1
    assert read_events(event_files([str(folder.rename(tmp_path / "events"))]), times=["id"]).num_rows == 1


def test_csv_types(tmp_path: Path) -> None:
    """Numbers and times are recognised; only an empty field is NULL, unless other texts are given."""
    table = read_events([write(tmp_path / "e.csv", CSV)], times=["time"])
    assert pa.types.is_timestamp(table.schema.field("time").type)
    assert table.column("amount").to_pylist() == [1.5, None]
    assert table.column("note").to_pylist() == ["a", None]
    path = write(tmp_path / "na.csv", 'a,b\n1,x\nno,""\n')
    assert read_events([path], times=[]).column("a").to_pylist() == ["1", "no"]
    found = read_events([path], times=[], given=TextFormat(null_texts=["no"]))
    assert found.to_pydict() == {"a": [1, None], "b": ["x", ""]}


def test_a_csv_with_a_header_only(tmp_path: Path) -> None:
    """In a file without events, time columns still have a time type, so the file is accepted."""
    table = read_events([write(tmp_path / "e.csv", "t,n\n")], times=["t"])
    assert (table.num_rows, table.schema.field("t").type) == (0, pa.timestamp("us"))


LONG = 12345678901234567890


def test_whole_numbers_beyond_64_bits(tmp_path: Path) -> None:
    """Long ids stay distinct: they become decimals, or text beyond 38 digits, in all files alike; other numbers are
    doubles.
    """
    table = read_events([write(tmp_path / "e.csv", f"id,x\n{LONG},1e30\n {LONG + 1},2\n,\n")], times=[])
    assert table.schema.types == [pa.decimal128(38, 0), pa.float64()]
    assert table.column("id").to_pylist() == [Decimal(LONG), Decimal(LONG + 1), None]
    assert read_events([write(tmp_path / "l.csv", f"id\n{10**38}\n")], times=[]).to_pylist() == [{"id": str(10**38)}]
    assert read_events([write(tmp_path / "m.csv", f"x\n{LONG}\n1.5\n")], times=[]).schema.types == [pa.float64()]
    paths = [write(tmp_path / "1.csv", "id\n1\n"), write(tmp_path / "2.csv", f"id\n{LONG}\n")]
    assert read_events(paths, times=[]).column("id").to_pylist() == [1, LONG]


def test_whole_numbers_beyond_64_bits_in_json(tmp_path: Path) -> None:
    """The same holds in JSON lines, also in structs and lists; too many digits are refused, as JSON has text
    for them.
    """
    lines = [{"id": LONG, "deep": {"ids": [LONG + 1]}, "x": 1e30}, {"id": None, "deep": {"ids": []}, "x": 1.5}]
    path = write(tmp_path / "e.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
    table = read_events([path], times=[])
    assert table.to_pylist() == lines
    assert table.schema.field("x").type == pa.float64()
    path = write(tmp_path / "e.jsonl", f'{{"id": {LONG}}}\n{{"id": 1.5}}\n')
    assert read_events([path], times=[]).schema.types == [pa.float64()]
    assert read_events([write(path, '{"id": 1e300}')], times=[]).schema.types == [pa.float64()]
    with pytest.raises(FileProblem, match="a whole number has 39 digits, more than 38: write it as text"):
        read_events([write(path, f'{{"id": {10**38}}}')], times=[])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-05-01T10:00:00.25", datetime(2024, 5, 1, 10, 0, 0, 250_000)),  # noqa: DTZ001 has no zone
        ("2024-05-01T12:00:00+02:00", datetime(2024, 5, 1, 10, tzinfo=UTC)),
        ("2024-05-01T10:00:00Z", datetime(2024, 5, 1, 10, tzinfo=UTC)),
    ],
)
def test_json_times(tmp_path: Path, text: str, expected: datetime) -> None:
    """ISO 8601 text in the time column becomes a timestamp, with or without a zone."""
    event = {"t": text, "note": "2024-05-01T10:00:00Z", "deep": [{"at": "2024-05-01T10:00:00+02:00"}]}
    path = write(tmp_path / "e.jsonl", json.dumps(event) + "\n")
    assert read_events([path], times=["t"]).to_pylist() == [{**event, "t": expected}]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (
            ["2024-05-01T10:00:00", None, "2024-05-01", "2024-13-01T10:00:00", "yesterday"],
            "has '2024-13-01T10:00:00' in row 4, which is no time in ISO 8601 (up to nanoseconds). Correct it, or",
        ),
        (["2024-05-01T10:00:00Z", "2024-05-01T25:00:00Z"], "has '2024-05-01T25:00:00Z' in row 2, which is no time"),
        (["2024-05-01T10:00:00Z", "noon", "2024-05-01 10:00"], "has 'noon' in row 2, which is no time"),
        (
            [None, "2024-05-01T10:00:00+0200", "2024-05-01T10:00:00Z", "2024-05-01 10:00:00"],
            (
                "holds times with a zone and times without one, as '2024-05-01T10:00:00+0200' (row 2) and "
                "'2024-05-01 10:00:00' (row 4): which instants these are is not known. Give all of them a zone, or none"
            ),
        ),
    ],
)
def test_texts_that_are_no_times(tmp_path: Path, texts: list[str | None], message: str) -> None:
    """The first text that is no time is named with its row; or the first time with a zone and the first without."""
    in_json = write(tmp_path / "e.jsonl", "".join(json.dumps({"t": text, "n": 1}) + "\n" for text in texts))
    in_csv = write(tmp_path / "e.csv", "t,n\n" + "".join(f"{text or ''},1\n" for text in texts))
    for path in (in_json, in_csv):
        with pytest.raises(EventError) as raised:
            read_events([path], times=["t"])
        assert str(raised.value).startswith(f"column 't' of {path} {message}")


def test_times_finer_than_microseconds(tmp_path: Path) -> None:
    """Nanoseconds are microseconds if they are all zero. Others are refused where Spark would cut them."""
    path = write(tmp_path / "e.csv", "t\n2024-05-01T10:00:00.000000000\n")
    assert read_events([path], times=["t"]).schema.field("t").type == pa.timestamp("us")
    write(path, "t\n2024-05-01T10:00:00.000000001\n")
    assert read_events([path], times=["t"]).schema.field("t").type == pa.timestamp("ns")
    session: Any = None  # the file is refused before it is used
    with pytest.raises(FileProblem, match=r"column .t. of .*e.csv has times finer than microseconds, which"):
        read_events_on_spark(session, [path], times=["t"])


@pytest.mark.parametrize(
    ("files", "names", "message"),
    [
        ({}, ["none.csv"], "there is no file {}/none.csv"),
        ({}, ["*.csv"], "no file matches {}/*.csv"),
        ({"e.csv": ""}, ["e.csv"], "{}/e.csv is empty, so the columns of the events are not known"),
        (
            {"e.xlsx": "x"},
            ["e.xlsx"],
            "cannot tell what kind of file {}/e.xlsx is from its extension '.xlsx'; known: .parquet, .csv, .jsonl",
        ),
        ({"a.csv": CSV, "b.jsonl": "{}"}, ["*"], "events must be files of one kind, these are CSV and JSON lines"),
        ({"e.csv/x": ""}, ["e.csv"], "{}/e.csv is a folder; only Parquet is read from folders"),
        ({"e.parquet/_SUCCESS": ""}, ["e.parquet"], "there are no Parquet files in the folder {}/e.parquet"),
    ],
)
def test_refused_names(tmp_path: Path, files: dict[str, str], names: list[str], message: str) -> None:
    """Names that cannot be files of events are refused before anything is read."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / name, text)
    with pytest.raises(FileProblem) as caught:
        event_files([str(tmp_path / name) for name in names])
    assert str(caught.value).startswith(message.format(tmp_path))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "e.csv",
            "a,b\n1,2\n3\n",
            "e.csv: row 2 has 1 value, and the header 2 names: '3'. Correct it",
        ),
        ("e.jsonl", '{"a": 1}\n{"a": \n', "e.jsonl cannot be read as JSON lines: JSON parse error"),
        ("e.parquet", "PAR", "e.parquet cannot be read as Parquet: "),
    ],
)
def test_files_with_wrong_content(tmp_path: Path, name: str, text: str, message: str) -> None:
    """If a reader refuses a file, the message has the file's name and the reader's reason."""
    with pytest.raises(FileProblem) as caught:
        read_events([write(tmp_path / name, text)], times=["a"])
    assert message in str(caught.value)


def test_files_of_different_schemas(tmp_path: Path) -> None:
    """Files that differ in columns or types are refused with the column; no value is converted or filled in
    silently.
    """
    first = write(tmp_path / "1.csv", "a,b\n1,2\n")
    with pytest.raises(SchemaError, match=r"2.csv and .*1.csv differ in the columns b, c"):
        read_events([first, write(tmp_path / "2.csv", "a,c\n1,2\n")], times=["a"])
    with pytest.raises(SchemaError, match=r"column 'a' is string in .*2.csv and int64 in .*1.csv"):
        read_events([first, write(tmp_path / "2.csv", "a,b\nx,2\n")], times=["a"])
    assert read_events([first, write(tmp_path / "2.csv", "b,a\n,2\n")], times=["a"]).to_pydict() == {
        "a": [1, 2],
        "b": [2, None],
    }


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("none/m.parquet", "the folder {}/none does not exist: make it first, or choose another --output"),
        ("folder.csv", "{}/folder.csv is a folder: choose the name of a file for --output"),
    ],
)
def test_refused_outputs(tmp_path: Path, output: str, message: str) -> None:
    """An output that cannot be written is refused before any work."""
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(FileProblem) as caught:
        check_output(tmp_path / output, [])
    assert str(caught.value).startswith(message.format(tmp_path))


def test_repeated_columns(tmp_path: Path) -> None:
    """Two columns with the same name are refused, in one file and in several."""
    path = write(tmp_path / "e.csv", "a,a\n1,2\n")
    for paths in ([path], [path, path]):
        with pytest.raises(SchemaError, match="two columns of the events are named 'a': rename one"):
            read_events(paths, times=["a"])


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_an_output_that_the_system_refuses(tmp_path: Path, kind: str) -> None:
    """If the operating system refuses to write the file, the message has its reason and the file's name."""
    with pytest.raises(FileProblem, match=rf"gone/m\.{kind} cannot be written: .*[Nn]o such file or directory"):
        write_matches(matches, tmp_path / "gone" / f"m.{kind}")


matches = pa.table(
    {
        "match_id": pa.array([b"\x01\xff", None], pa.binary()),
        "start": pa.array([datetime(2024, 5, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        "stage": pa.array([{"x": float("nan"), "d": Decimal("1.10")}, None]),
        "legs": pa.array([[{"n": 2**60}], []]),
    }
)


def test_parquet_keeps_everything(tmp_path: Path) -> None:
    """A Parquet file of matches reads back unchanged, and no other file is left in the folder."""
    write_matches(matches, tmp_path / "m.parquet")
    read = pq.read_table(tmp_path / "m.parquet")
    assert read.schema == matches.schema
    assert str(read.to_pylist()) == str(matches.to_pylist())
    assert [path.name for path in tmp_path.iterdir()] == ["m.parquet"]


def test_json_lines_round_nothing(tmp_path: Path) -> None:
    """Values without a JSON type are written as text; whole numbers keep all digits."""
    write_matches(matches, tmp_path / "m.jsonl")
    assert (tmp_path / "m.jsonl").read_text() == (
        '{"match_id": "01ff", "start": "2024-05-01T00:00:00+00:00", "stage": {"x": "NaN", "d": "1.10"}, '
        '"legs": [{"n": 1152921504606846976}]}\n'
        '{"match_id": null, "start": null, "stage": null, "legs": []}\n'
    )


def test_csv_has_nested_columns_as_json(tmp_path: Path) -> None:
    """In a CSV file, stages are JSON text."""
    write_matches(matches, tmp_path / "m.csv")
    read = pyarrow.csv.read_csv(tmp_path / "m.csv")
    assert read.column("match_id").to_pylist() == ["01ff", ""]
    assert json.loads(read.column("stage")[0].as_py()) == {"x": "NaN", "d": "1.10"}
    assert read.column("legs").to_pylist() == ['[{"n": 1152921504606846976}]', "[]"]


@pytest.mark.parametrize("output", ["m.csv", "m.jsonl"])
def test_every_type_is_written(tmp_path: Path, output: str) -> None:
    """Times of day, durations and maps are written, too; a map is written as its entries."""
    values = {
        "time": pa.array([time(1, 2, 3)], pa.time64("us")),
        "duration": pa.array([timedelta(seconds=1)]),
        "map": pa.array([[("a", time(1))]], pa.map_(pa.string(), pa.time64("us"))),
        "date": pa.array([date(2024, 5, 1)]),
        "none": pa.nulls(1),
    }
    write_matches(pa.table(values), tmp_path / output)
    text = (tmp_path / output).read_text()
    assert "01:02:03" in text
    assert "0:00:01" in text
    if output == "m.jsonl":
        assert json.loads(text)["map"] == [["a", "01:00:00"]]


@pytest.mark.spark
@pytest.mark.parametrize("name", ["events.parquet", "events.csv", "events.jsonl"])
def test_spark_reads_the_same(folder: Path, spark: Any, name: str) -> None:
    """Spark reads the same columns, types and rows from the same file, including times without a zone."""
    paths = event_files([str(folder / name)])
    here, there = read_events(paths, times=["at"]), read_events_on_spark(spark, paths, times=["at"]).toArrow()
    assert there.schema == here.schema
    assert there.to_pylist() == here.to_pylist()
    assert spark.conf.get("spark.sql.timestampType") == "TIMESTAMP_LTZ"
