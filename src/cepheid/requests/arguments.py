"""Checks of the arguments of the public calls; each problem is appended to `faults`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from os import PathLike, fspath
from typing import cast, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cepheid.errors import PatternError, SchemaError, SnapshotError, did_you_mean
from cepheid.families.family import Family
from cepheid.lang.arguments import brief, whole_number
from cepheid.lang.duration import parse_duration
from cepheid.lang.plain_value import plain_value
from cepheid.plan.lifted import OutputName, RowsPer
from cepheid.plan.limits import Limits
from cepheid.plan.reserved import CAUSE, IN_ONE_TABLE, INTERNAL, RESERVED
from cepheid.requests.arrival import ARRIVAL, ARRIVED
from cepheid.requests.request import (
    LEAST_MEMORY,
    MEMORY_CAN_BE_BOUND,
    MOST_SHARDS,
    MOST_WORKERS,
    SHARDS,
    Nulls,
    Resolution,
    Workers,
)
from cepheid.requests.row_order import ROW_ORDER


def checked_snapshot(given: object) -> bytes:
    """The bytes of a snapshot; SnapshotError if something else is given."""
    if not isinstance(given, bytes | bytearray | memoryview):
        raise SnapshotError(f"a snapshot is bytes, as snapshot() gives them, got {type(given).__name__}")
    return bytes(given)


def checked_name(argument: str, given: object, faults: list[str]) -> str:
    if isinstance(given, str):
        return given
    faults.append(f"{argument}: the name of a column is expected, got {brief(given)}")
    return ""


def checked_names(argument: str, given: object, faults: list[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        return (given,)
    is_column = type(given).__name__ == "Series"  # of pandas or polars: its values are no names
    names = tuple(given) if isinstance(given, Iterable) and not is_column else (given,)
    if not all(isinstance(name, str) for name in names):
        faults.append(f"{argument}: names of columns are expected, got {brief(given)}")
        return ()
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    faults += [f"{argument}: {name!r} is named twice" for name in repeated]
    return names


def checked_key(given: object, faults: list[str], *, with_outputs: bool, with_cause: bool = False) -> tuple[str, ...]:
    """Key columns must not have the name of a reserved output column; case is ignored, as in Spark."""
    names = () if given is None else checked_names("key", given, faults)
    reserved = {*RESERVED, *[CAUSE] * with_cause} if with_outputs else set(RESERVED) - set(IN_ONE_TABLE)
    faults += [
        f"key: {name!r} is the name of a column that the output has itself; rename the key's"
        for name in names
        if name.lower() in reserved or INTERNAL.fullmatch(name.lower())
    ]
    return names


def measures_of_each(given: object, names: Sequence[str], faults: list[str]) -> dict[str, dict[str, str]]:
    if not isinstance(given, Mapping):
        faults.append(f"measures: each of several patterns has its own, as in {_AS_MEASURES}, got {brief(given)}")
        return {}
    faults += [
        f"measures: no pattern is named {name!r}. {did_you_mean(str(name), names)}"
        for name in given
        if name not in names
    ]
    return {
        name: checked_measures(measures, faults, f"measures of pattern {name!r}") for name, measures in given.items()
    }


_AS_MEASURES = '{"late": {"legs": "count(legs)"}}'


def checked_measures(given: object, faults: list[str], what: str = "measures") -> dict[str, str]:
    if isinstance(given, Mapping) and all(isinstance(text, str) for item in given.items() for text in item):
        return dict(given)
    faults.append(f'{what}: names and their SQL are expected, as in {{"legs": "count(legs)"}}, got {brief(given)}')
    return {}


def checked_outputs(given: object, faults: list[str]) -> tuple[OutputName, ...]:
    allowed = get_args(OutputName)
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else (given,)
    choices = ", ".join(map(repr, allowed))
    if wrong := [name for name in names if name not in allowed]:
        faults.append(f"outputs: {', '.join(map(repr, wrong))} cannot be requested; allowed are {choices}")
        return ()
    if not names:
        faults.append(f"outputs: none is named; name at least one of {choices}, or leave it out for matches only")
        return ()
    return cast("tuple[OutputName, ...]", tuple(dict.fromkeys(names)))


def checked_rows_per(given: RowsPer, faults: list[str]) -> RowsPer:
    if given not in get_args(RowsPer):
        faults.append(f"rows_per: {brief(given)} is not one of {', '.join(map(repr, get_args(RowsPer)))}")
        return "match"
    return given


def checked_limits(given: object, faults: list[str]) -> Limits:
    if isinstance(given, Limits):
        return given
    faults.append(f"limits: a value such as Limits(max_partial_matches=100_000) is expected, got {brief(given)}")
    return Limits()


def checked_lateness(
    given: timedelta | str, faults: list[str], argument: str = "lateness", *, or_zero: bool = True
) -> timedelta | None:
    try:
        return parse_duration(given, or_zero=or_zero)
    except PatternError as error:
        faults.append(f"{argument}: {error}")
    return None


def checked_shards(given: object, faults: list[str]) -> int:
    number = whole_number(given)
    if number is not None and 1 <= number <= MOST_SHARDS:
        return number
    faults.append(f"shards: a whole number from 1 to {MOST_SHARDS:,} is expected, got {brief(given)}")
    return SHARDS


def checked_standbys(given: object, shards: int, checkpoint: object, *, show_keys: bool, faults: list[str]) -> int:
    number = whole_number(given)
    if number is None or not 0 <= number <= shards:
        faults.append(f"standbys: a whole number from 0 to the {shards} shards is expected, got {brief(given)}")
        return 0
    if number and checkpoint is None:
        faults.append(
            "standbys: they need the checkpoint, beside whose logs it is stored which keys have copies: checkpoint=…"
        )
    if number and show_keys:
        faults.append("standbys: copies are decided by the hashes of keys. Leave out show_keys")
    return number


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def checked_workers(given: object, faults: list[str]) -> Workers:
    if isinstance(given, str) and given == "auto":
        return "auto"
    number = whole_number(given)
    if number is not None and 1 <= number <= MOST_WORKERS:
        return number
    faults.append(f"workers: a whole number from 1 to {MOST_WORKERS:,}, or 'auto', is expected, got {brief(given)}")
    return 1


def checked_memory(given: object, faults: list[str]) -> int | None:
    """The bytes of `worker_memory`: a number, or a text such as "2 GB"."""
    size = whole_number(given)
    if isinstance(given, str) and (found := _SIZE.fullmatch(given.strip())):
        size = int(found["number"]) * _UNITS[found["unit"].upper()]
    if size is None or size < LEAST_MEMORY:
        faults.append(
            f"worker_memory: at least {LEAST_MEMORY:,} bytes are expected, as a whole number or a text such as '2 GB', "
            f"got {brief(given)}"
        )
        return None
    if not MEMORY_CAN_BE_BOUND:
        faults.append("worker_memory: the memory of a process can only be bounded on Linux; leave it out")
    return size


_UNITS = {"MB": 1_000_000, "GB": 1_000_000_000}
_SIZE = re.compile(r"(?P<number>\d{1,6})\s*(?P<unit>MB|GB)", re.IGNORECASE)


def checked_flag(argument: str, given: object, faults: list[str]) -> bool:
    if isinstance(given, bool):
        return given
    faults.append(f"{argument}: True or False is expected, got {brief(given)}")
    return False


def checked_path(argument: str, given: object, faults: list[str]) -> str | None:
    if isinstance(given, str | PathLike) and isinstance(path := fspath(given), str) and path:
        return path
    faults.append(f"{argument}: the path of a folder is expected, got {brief(given)}")
    return None


def checked_zone(time_zone: object, faults: list[str]) -> str | None:
    if time_zone is None:
        return None
    try:
        return ZoneInfo(str(time_zone)).key
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: the name of a folder of zones
        faults.append(f"time_zone: {time_zone!r} is not known; use a name such as 'Europe/Berlin' or 'UTC'")
    return None


def checked_sequence(given: object, faults: list[str]) -> tuple[str, ...]:
    """The columns of the sequence; none for the order of rows."""
    return () if given is None or given is ROW_ORDER else checked_names("sequence", given, faults)


def checked_resolution(given: Resolution | None, faults: list[str]) -> Resolution | None:
    if given is not None and given not in get_args(Resolution):
        faults.append(f"time_resolution: 'us' cuts times to microseconds; otherwise leave it out, got {brief(given)}")
        return None
    return given


def checked_nulls(nulls: Nulls, faults: list[str]) -> Nulls:
    if nulls not in get_args(Nulls):
        faults.append(f"nulls: {nulls!r} is not one of {', '.join(map(repr, get_args(Nulls)))}")
    return nulls


def time_of(argument: str, given: object) -> datetime:
    """A datetime, from a datetime, ISO text, or a time of NumPy or pandas; SchemaError for anything else."""
    try:
        time = _iso_time(given) if isinstance(given, str) else plain_value(given)
    except ValueError as error:
        raise SchemaError(f"{argument}: {error}") from None
    if isinstance(time, datetime):
        return time
    raise SchemaError(f"{argument}: {brief(given)} is not a time; {_AS_TIME}")


_AS_TIME = "write it as '2026-01-31 12:00:00'"


def _iso_time(text: str) -> datetime:
    """The time in ISO text; ValueError for digits after the microseconds, which Python would drop."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time; {_AS_TIME}") from None
    if re.search(r"[.,]\d{6}0*[1-9]", text):
        raise ValueError(f"{text} has nanoseconds: round it to microseconds")
    return time


def checked_as_of(given: object, faults: list[str]) -> datetime | None:
    try:
        return time_of("as_of", given)
    except SchemaError as error:
        faults.append(str(error))
    return None


def checked_time(given: object, family: Family, faults: list[str]) -> tuple[str | None, str | None]:
    """The columns of start and end, or the time column and None. Both None: processing order."""
    if family.has_ends:
        names = list(given) if isinstance(given, list | tuple) else []
        if len(names) == 2 and all(isinstance(name, str) for name in names):
            return names[0], names[1]
        shown = "" if given is ... else f", got {brief(given)}"
        faults.append(f"time: name the columns in which events start and end, as in time=('start', 'end'){shown}")
        return "", ""
    if given is ...:
        faults.append("time: name the column of event times; time=None is processing order")
        return None, None
    if given is ARRIVAL:
        return ARRIVED, None
    if isinstance(given, list | tuple):
        faults.append(f"time: events of {family.noun} have one time: name its column, got {brief(given)}")
        return None, None
    return (None if given is None else checked_name("time", given, faults)), None


def faults_of_kind(family: Family, given: Mapping[str, object], limits: object) -> Iterator[str]:
    """Arguments that are given but that the kind of pattern does not support."""
    for name, reason in family.lacks.items():
        there = getattr(limits, name, None) if name == "max_partial_matches" else given.get(name)
        if there is not None:
            what = "limits" if name == "max_partial_matches" else name
            yield f"{what}: {family.kind} have no {name}, as {reason}; leave it out"


def faults_of_outputs(family: Family, outputs: object) -> Iterator[str]:
    """Requested outputs that the kind of pattern does not have."""
    requested = () if outputs is None else checked_outputs(outputs, [])
    if missing := [name for name in requested if name not in family.outputs]:
        listed = ", ".join(map(repr, family.outputs))
        several = "both" if len(family.outputs) == 2 else "several"
        yield f"outputs: {family.kind} have no {missing[0]}; ask for {listed} or {several}"
