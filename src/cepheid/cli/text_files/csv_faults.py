"""What is often wrong with CSV: another separator or encoding, rows that are too short, texts in place of NULL."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from cepheid.cli.failure import FileProblem
from cepheid.cli.text_files.text_format import TextFormat
from cepheid.errors import warn, with_noun

NULL_TEXTS = ("NA", "N/A", "n/a", "na", "null", "NULL", "Null", "None", "none", "-", "?", "\\N")
"""Texts that other programs write for NULL."""
_SEPARATORS = ";\t|,"
"""What may separate values."""
_DECIMAL_COMMA = r"^\s*[+-]?\d+(\.\d{3})*,\d+\s*$"
_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"


def check_csv(path: Path, events: pa.Table, given: TextFormat, separator: str) -> None:
    """Raises FileProblem if the file seems to have another separator or encoding."""
    names = events.schema.names  # in another encoding, these may be none
    if len(names) == 1:
        _check_separator(path, names[0], separator)
    if binary := [field.name for field in events.schema if pa.types.is_binary(field.type)]:
        raise FileProblem(not_in(path, given.encoding, f"column {binary[0]!r} has other bytes"))


def check_rows(
    path: Path,
    reading: pyarrow.csv.ReadOptions,
    parsing: pyarrow.csv.ParseOptions,
    convert: pyarrow.csv.ConvertOptions,
) -> None:
    """Raises FileProblem for the first row that has not as many values as the header has names."""
    wrong: list[pyarrow.csv.InvalidRow] = []
    ordered = pyarrow.csv.ReadOptions(block_size=reading.block_size, encoding=reading.encoding, use_threads=False)

    def handled(row: pyarrow.csv.InvalidRow) -> str:
        wrong.append(row)
        return "error"

    noticing = pyarrow.csv.ParseOptions(delimiter=parsing.delimiter, invalid_row_handler=handled)
    try:
        pyarrow.csv.read_csv(path, ordered, noticing, convert)
    except pa.ArrowInvalid:
        if not wrong:
            return
    row = wrong[0]
    if row.expected_columns == 1:
        nothing = pyarrow.csv.ParseOptions(delimiter=parsing.delimiter, invalid_row_handler=lambda _: "skip")
        _check_separator(path, pyarrow.csv.read_csv(path, ordered, nothing).schema.names[0], parsing.delimiter)
    which = "the last row" if row.number is None else f"row {row.number - 1:,}"
    values, names = with_noun(row.actual_columns, "value"), with_noun(row.expected_columns, "name")
    raise FileProblem(
        f"{path}: {which} has {values}, and the header {names}: {row.text!r}. "
        "Correct it; a value that has the separator in it is written in double quotes"
    )


def _check_separator(path: Path, name: str, separator: str) -> None:
    """Raises FileProblem if the name of the only column has another separator in it."""
    if found := [one for one in _SEPARATORS if one in name and one != separator]:
        shown = "tab" if found[0] == "\t" else found[0]
        what = {"\t": "tabs", ",": "commas"}.get(separator, repr(separator))
        raise FileProblem(
            f"{path} has one column, {name!r}, as {what} separate values. Give --separator '{shown}' if that does"
        )


def not_in(path: Path, encoding: str | None, reason: str) -> str:
    return f"{path} is not in {encoding or 'UTF-8'} ({reason}). Give its --encoding, for example latin-1"


def warn_of_texts(path: Path, events: pa.Table) -> None:
    """Warns of columns that are text, although their values are numbers with a decimal comma, or numbers and texts that
    often stand for NULL.
    """
    for field in events.schema:
        if pa.types.is_string(field.type) and (reason := _reason_for_text(events.column(field.name).drop_null())):
            warn(f"column {field.name!r} of {path} is text, as {reason}")


def _reason_for_text(texts: pa.ChunkedArray) -> str | None:
    if not len(texts):
        return None
    if _all_match(texts.slice(0, 1), _DECIMAL_COMMA) and _all_match(texts, _DECIMAL_COMMA):
        return f"{texts[0].as_py()!r} has a decimal comma: write it with a point"
    if not _are_numbers(texts.slice(0, 1000)):  # a column of names is not searched
        return None
    stand_in = pc.is_in(texts, pa.array(NULL_TEXTS))
    if not pc.any(stand_in).as_py() or pc.all(stand_in).as_py() or not _are_numbers(texts):
        return None
    row = pc.index(stand_in, value=True).as_py()
    return f"it has {texts[row].as_py()!r} among its numbers: if that stands for NULL, give --null {texts[row].as_py()}"


def _are_numbers(texts: pa.ChunkedArray) -> bool:
    """Whether all are numbers, but for those that often stand for NULL."""
    numbers = texts.filter(pc.invert(pc.is_in(texts, pa.array(NULL_TEXTS))))
    return not len(numbers) or _all_match(numbers, _NUMBER)


def _all_match(texts: pa.ChunkedArray, form: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, form)).as_py())
