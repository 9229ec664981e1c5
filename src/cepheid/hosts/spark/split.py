"""Selects the rows of one output from those of several, on Spark."""

from __future__ import annotations

from pyspark.sql import DataFrame

from cepheid.hosts.spark.engine import quoted
from cepheid.lang.parameters import string_literal
from cepheid.output.common import INCONSISTENT, INSERTION, LATE, MATCH, NO_MATCH, RETRACTION, TIMEOUT
from cepheid.plan.lifted import OutputName
from cepheid.plan.reserved import CAUSE, OF_EVENTS

_KINDS: dict[OutputName, tuple[str, ...]] = {
    "matches": (MATCH, INSERTION, RETRACTION),
    "timeouts": (TIMEOUT,),
    "no_match": (NO_MATCH,),
    "inconsistent": (INCONSISTENT,),
    "late": (LATE,),
}


def rows_of_output(rows: DataFrame, output: OutputName) -> DataFrame:
    """The output's rows, without the columns that are NULL in all of them."""
    kinds = ", ".join(map(string_literal, _KINDS[output]))
    return rows.where(f"kind IN ({kinds})").selectExpr(*map(quoted, _columns(output, rows.columns)))


def _columns(output: OutputName, given: list[str]) -> list[str]:
    if output != "late":
        return [name for name in given if name != "event" and (name != CAUSE or output in ("no_match", "inconsistent"))]
    if "event" in given:
        return [*given[: given.index("match_start")], "detected_at", "event"]
    return [name for name in given if name not in ("match_start", "match_end", CAUSE, *OF_EVENTS)]  # rows of events
