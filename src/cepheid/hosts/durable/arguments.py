"""Checks of the arguments of a durable host's calls; each problem is appended to `faults`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import get_args

import pyarrow as pa

from cepheid.errors import PatternError, SchemaError
from cepheid.events.batch import Schema
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.durable.host import Old
from cepheid.hosts.durable.state import MatchesOf
from cepheid.lang.arguments import brief
from cepheid.plan.pattern_request import PlanOptions
from cepheid.plan.problems import schema_faults
from cepheid.plan.sequence import order_items
from cepheid.requests.arguments import checked_key, checked_measures
from cepheid.requests.patterns import asked_patterns


def columns_faults(columns: pa.Schema, time: str, sequence: Sequence[str], time_zone: str) -> list[str]:
    """What is wrong with the columns of an input."""
    repeated = [name for name, count in Counter(columns.names).items() if count > 1]
    if repeated:
        return [f"the events have several columns {name!r}" for name in repeated]
    try:
        items = order_items(sequence, columns, DuckDbEngine(time_zone=time_zone))
    except SchemaError as error:
        return [str(error)]
    named = tuple(item.column for item in items if item.computed is None)
    return schema_faults(Schema(columns, (), time, named), PlanOptions(columns=()))


def check_one_pattern(pattern: object) -> None:
    """
    Raises:
        PatternError: it is no pattern, has no name, or a version that a database may not take.
    """
    if isinstance(pattern, Mapping):
        raise PatternError("deploy takes one pattern: deploy several one after another")
    (asked,) = asked_patterns(pattern, None, [])
    if not asked.pattern.name:
        raise PatternError("a deployed pattern needs a name: its tables are named after it")
    if not (asked.pattern.version or "1").isprintable():
        raise PatternError(f"the version {asked.pattern.version!r} has a character that databases may not take")


def checked_source(given: object, faults: list[str]) -> str | MatchesOf:
    """The input of a deployment."""
    if isinstance(given, str):
        return given
    if isinstance(given, MatchesOf) and given.patterns and not isinstance(given.patterns, str):
        return given
    faults.append(
        f"input: the name of an input, or matches as in MatchesOf(('carts', 'visits')), is expected, got {brief(given)}"
    )
    return ""


def checked_columns(
    key: object, measures: object, promoted: object, faults: list[str]
) -> tuple[tuple[str, ...], dict[str, str] | None, dict[str, str] | None]:
    """The key, the measures and the promoted columns of a deployment."""
    names = checked_key(key, faults, with_outputs=True)
    asked = None if measures is None else checked_measures(measures, faults)
    return names, asked, None if promoted is None else checked_measures(promoted, faults, "promote")


def checked_old(argument: str, given: Old | None, faults: list[str]) -> Old | None:
    """What becomes of what is open of a version that ends."""
    if given is not None and given not in get_args(Old):
        faults.append(f"{argument}: {brief(given)} is not one of {', '.join(map(repr, get_args(Old)))}")
    return given


def check_position(position: object) -> None:
    """
    Raises:
        SchemaError: it is no position.
    """
    if position is None or isinstance(position, str) or _is_number(position):
        return
    partitions = position if isinstance(position, Mapping) else {}
    if partitions and all(isinstance(name, str) and _is_number(number) for name, number in partitions.items()):
        return
    raise SchemaError(
        "position: a number that is not negative, a map with one for each partition as in {'0': 17}, or a name is "
        f"expected, got {brief(position)}"
    )


def _is_number(given: object) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and given >= 0
