"""The names of Spark's types, as written in CAST → Arrow types."""

from __future__ import annotations

import re

import pyarrow as pa

_SIMPLE = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "BYTE": pa.int8(),
    "SMALLINT": pa.int16(),
    "SHORT": pa.int16(),
    "INT": pa.int32(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "LONG": pa.int64(),
    "FLOAT": pa.float32(),
    "REAL": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMP_LTZ": pa.timestamp("us", "UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
}
_DECIMAL = re.compile(r"(?:DECIMAL|DEC|NUMERIC)(?:\((\d+)(?:,(\d+))?\))?")
_CHARACTERS = re.compile(r"(?:VARCHAR|CHAR|CHARACTER)\(\d+\)")

_ELSEWHERE = {
    **dict.fromkeys(("VARCHAR", "CHAR", "CHARACTER", "NVARCHAR", "VARCHAR2", "TEXT", "STR"), "STRING"),
    **dict.fromkeys(("DATETIME", "TIMESTAMPTZ"), "TIMESTAMP"),
    "BOOL": "BOOLEAN",
    "NUMBER": "DECIMAL(p, s)",
}
"""Names in other languages, and Spark's."""
KNOWN = (
    "BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p, s), DATE, TIMESTAMP, TIMESTAMP_NTZ, STRING, "
    "BINARY"
)


def read_type(text: str) -> pa.DataType:
    """The type that the text names; ValueError if a cast to it is not supported."""
    name = re.sub(r"\s", "", text).upper()
    if name in _SIMPLE:
        return _SIMPLE[name]
    if _CHARACTERS.fullmatch(name):
        return pa.string()
    if match := _DECIMAL.fullmatch(name):
        precision, scale = int(match[1] or 10), int(match[2] or 0)
        if not (1 <= precision <= 38 and scale <= precision):
            raise ValueError(f"no such type: {text}. A DECIMAL has 1 to 38 digits, and at most as many after the point")
        return pa.decimal128(precision, scale)
    if name in _ELSEWHERE:
        raise ValueError(f"cannot cast to {text}. Write {_ELSEWHERE[name]}")
    raise ValueError(f"cannot cast to {text}; known types: {KNOWN}")
