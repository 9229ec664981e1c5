"""Calls of every function, operator and cast in process, with arguments of every type: generated, not by hand."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product

from tests.hosts.sample_calls import FORMS, SAMPLES, SOME

from cepheid.hosts.duckdb.functions.table import BY_NAME
from cepheid.hosts.duckdb.lists import IN_LIST
from cepheid.hosts.duckdb.translate import RULES

COLUMNS = (
    *(
        "i8",
        "i16",
        "i32",
        "i64",
        "f32",
        "f64",
        "d9",
        "d18",
        "d38",
        "whole",
        "tiny",
        "b",
        "s",
        "num",
        "clock",
        "dt",
        "ts",
        "ntz",
    ),
    *("arr", "texts", "floats", "ages", "bin", "dur", "st"),
)
CONSTANTS = (
    *("NULL", "2", "-1", "3000000000L", "1.5", "1e0", "''", "'a'", "'2020-02-29'", "TRUE", "DATE'2020-02-29'"),
    *("TIMESTAMP'2021-03-28 03:30:00'", "INTERVAL '90' MINUTE", "INTERVAL '1' MONTH", "X'61'"),
)
TYPES = (
    *("tinyint", "smallint", "int", "bigint", "float", "double", "decimal(5, 1)", "decimal(38, 0)", "decimal(38, 37)"),
    *("boolean", "string", "binary", "date", "timestamp", "timestamp_ntz"),
)
SMALL = ("n", "NULL", "2", "-1", "1.5", "s", "b")
SIZES = {("lpad", 1), ("rpad", 1), ("repeat", 1), ("space", 0), ("date_add", 1), ("dateadd", 1), ("date_sub", 1)}
"""Arguments that are the length of the result, which would fill the memory, or days, which would leave the calendar."""
_WORDED = ("extract", "timestampdiff", "timestampadd", "trim_from", "interval")
WORDS: dict[tuple[str, int], tuple[str, ...]] = {
    **{(name, 0): ("MONTH", "HOUR", "1") for name in _WORDED},
    ("field", 1): ("x", "y"),
    ("timestampadd", 1): SMALL,
    ("datediff", 0): ("DAY", "dt"),
    ("dateadd", 0): ("DAY", "dt"),
}
"""Arguments that are words."""
_SECOND = {"i32": "j32", "i64": "j64", "f64": "g64", "s": "s2", "dt": "dt2", "ts": "ts2"}
"""Another column of the type, so that two arguments differ."""
_BY_KIND = {
    "INTEGER": "i32",
    "INT": "n",
    "BIGINT": "i64",
    "FLOATING": "f64",
    "FLOAT": "f32",
    "TIME": "ts",
    "INSTANT": "ts",
    "DAY": "dt",
    "COUNT": "i64",
    "START": "n",
    "DOUBLE": "f64",
    "DECIMAL": "d18",
    "BOOLEAN": "b",
    "STRING": "s",
    "BINARY": "bin",
    "DATE": "dt",
    "LOCAL": "ts",
    "TIMESTAMP": "ts",
    "TIMESTAMP_NTZ": "ntz",
    "ARRAY": "arr",
    "MAP": "ages",
}


NAMES = sorted((set(RULES) | set(BY_NAME)) - {IN_LIST, "cast", "try_cast"})


def all_calls() -> list[str]:
    """Each call once, in a fixed order."""
    calls = [call for name in NAMES for call in _calls(name)]
    casts = [f"{word}({arg} AS {t})" for word in ("cast", "try_cast") for arg in _arguments() for t in TYPES]
    return list(dict.fromkeys([*calls, *casts]))


def some_calls() -> list[str]:
    """For each function two of its sample calls and another, and one with an argument more, the same in each run."""
    source = random.Random(5)
    calls = [
        call for name in NAMES for call in (*source.choices(samples(name), k=2), *source.choices([*_calls(name)], k=1))
    ]
    calls += [_written(name, (*_sample_arguments(name)[0], "1")) for name in NAMES if name not in FORMS]
    return list(dict.fromkeys(calls))


def _arguments() -> tuple[str, ...]:
    return COLUMNS + CONSTANTS


def samples(name: str) -> list[str]:
    """The calls of a function that are available in process."""
    return [_written(name, sample) for sample in _sample_arguments(name)]


def _sample_arguments(name: str) -> list[tuple[str, ...]]:
    return [*(tuple(text.split("; ")) for text in SAMPLES.get(name, ())), *_ways_of_table(name)]


def _calls(name: str) -> Iterator[str]:
    for sample in _sample_arguments(name):
        yield _written(name, sample)
        if name not in FORMS:
            yield from (_written(name, (*sample, arg)) for arg in ("1", "'a'"))
            if len(sample) > 1:
                yield _written(name, sample[:-1])
        for i in range(len(sample)):
            for arg in SMALL if (name, i) in SIZES else WORDS.get((name, i)) or _arguments():
                yield _written(name, (*sample[:i], arg, *sample[i + 1 :]))
        if len(sample) == 2 and (name, 1) not in SIZES and not any(_is_constant(arg) for arg in sample):
            for left, right in product(COLUMNS, COLUMNS):
                yield _written(name, (left, _SECOND.get(right, right)))


def _ways_of_table(name: str) -> list[tuple[str, ...]]:
    """One call for each way to call the function. Arguments that must be constants come from `SOME`."""
    return [
        tuple(SOME[kind] if i in way.constants else _BY_KIND[kind] for i, kind in enumerate(way.takes))
        for way in BY_NAME.get(name, ())
        if name not in FORMS or FORMS[name].count("{") == len(way.takes)
    ]


def _is_constant(argument: str) -> bool:
    return argument[0] in "'\"-0123456789" or argument.startswith(("r'", 'r"'))


def _written(name: str, args: Sequence[str]) -> str:
    form = FORMS.get(name)
    if form is None:
        return f"{name}({', '.join(args)})"
    return form.format(*(arg if (name, i) in WORDS else f"({arg})" for i, arg in enumerate(args)))
