"""Long lists of names as tables, with which Spark joins events.

Spark would look through a list for each event, and plan each constant of an IN, in a stream for each micro-batch.
Measured for `item IN (…)` over 2 million events: 100,000 constants take 4.4 s as a list and 1.3 s as a table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it

from cepheid.lang.literals import read_string
from cepheid.plan.semantics.name_lists import MARK

_NAMES = rf"split\((?P<names>'(?:[^'\\]|\\.)*'), '{MARK}'\)"
_SPLIT = re.compile(_NAMES, re.DOTALL)
_LIST = re.compile(rf"array_contains\({_NAMES}, ", re.DOTALL)
"""As `plan.semantics.name_lists` writes a long list; the value comes after it."""
_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|`(?:[^`]|``)*`|[()]|[^'`()]+", re.DOTALL)


class Listed(NamedTuple):
    """A value of events as SQL, and the names with which it is compared."""

    value: str
    names: str


@dataclass
class Lists:
    """The long lists of several texts. In their place are columns of the joined events."""

    columns: dict[Listed, str] = field(default_factory=dict)

    def moved(self, sql: str) -> str:
        """The SQL with columns in place of its long lists. It is NULL where it was false: what events mean is asked in
        conditions, which are true or not, and is never negated.
        """
        # The value is written in the join alone: Spark infers what follows from conditions, and takes for ever if these
        # have the whole CASE in which a name gets its normal form.
        parts, at = list[str](), 0
        while found := _LIST.search(sql, at):
            end = _closing(sql, found.end())
            listed = Listed(sql[found.end() : end], found["names"])
            name = self.columns.setdefault(listed, f"`cepheid list {len(self.columns)}`")
            parts += [sql[at : found.start()], f"(CASE WHEN {name} IS NOT NULL THEN TRUE END)"]
            at = end + 1
        return "".join([*parts, sql[at:]])

    def joined(self, events: DataFrame) -> DataFrame:
        """The events with these columns. This starts no job."""
        for listed, column in self.columns.items():
            names = {column.strip("`"): read_string(listed.names).split(MARK)}
            table = F.broadcast(events.sparkSession.createDataFrame(pa.table(names)))
            events = events.join(table, F.expr(f"{listed.value} = {column}"), "left")
        return events


def _closing(sql: str, start: int) -> int:
    """The place of the bracket that closes one which is open at the start."""
    open_ = 1
    for token in _TOKEN.finditer(sql, start):
        open_ += {"(": 1, ")": -1}.get(token[0], 0)
        if not open_:
            return token.start()
    raise AssertionError(sql[start:])


def with_short_lists(sql: str) -> str:
    """SQL of the same type, with one name in place of each long list, also in a part of a text."""
    return _SPLIT.sub(f"split('', '{MARK}')", sql) if MARK in sql else sql
