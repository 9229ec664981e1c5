"""What a picture is asked to show: the checked arguments of `plot`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cepheid.errors import SchemaError
from cepheid.requests.arguments import checked_zone


@dataclass(frozen=True)
class PlotRequest:
    """The arguments of `plot`, with a sequence where one name may stand for several."""

    time: tuple[str, ...]
    """One column, or those of start and end."""
    key: tuple[str, ...]
    y: tuple[str, ...]
    lanes: str | None
    planned: tuple[str, ...]
    """None, or the columns of the planned start and end."""
    label: str | None
    columns: tuple[str, ...] | None
    only: Mapping[str, Sequence[Any]]
    time_zone: str | None
    title: str | None
    subtitle: str | None

    @property
    def are_intervals(self) -> bool:
        return len(self.time) == 2

    @property
    def used(self) -> list[str]:
        """The columns of events that the picture needs."""
        lanes = [self.lanes] if self.lanes is not None else []
        label = [self.label] if self.label is not None else []
        return list(dict.fromkeys([*self.time, *self.key, *self.y, *lanes, *self.planned, *label]))


def names(given: object, argument: str) -> tuple[str, ...]:
    """The names that an argument gives: one, several, or none.

    Raises:
        SchemaError: it is something else.
    """
    if given is None:
        return ()
    if isinstance(given, str):
        return (given,)
    if isinstance(given, Sequence) and all(isinstance(name, str) for name in given):
        return tuple(given)
    raise SchemaError(f"{argument}: the name of a column, or several, is expected, got {given!r}")


def chosen(given: object) -> Mapping[str, Sequence[Any]]:
    """The argument `only` with a list of values for each column.

    Raises:
        SchemaError: it is no mapping.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise SchemaError(f"only: a mapping is expected, as in {{'symbol': 'AMZN'}}, got {given!r}")
    return {str(name): value if isinstance(value, list | tuple) else [value] for name, value in given.items()}


def word(given: object, argument: str) -> str | None:
    """The text that an argument gives, or none.

    Raises:
        SchemaError: it is something else.
    """
    if given is None or isinstance(given, str):
        return given
    raise SchemaError(f"{argument}: text is expected, got {given!r}")


def zone(given: object) -> str | None:
    """The name of the zone, if there is one.

    Raises:
        SchemaError: there is no such zone.
    """
    faults: list[str] = []
    found = checked_zone(given, faults)
    if faults:
        raise SchemaError(faults[0])
    return found


def check(asked: PlotRequest, events: pa.Schema | None) -> None:
    """Checks the arguments, and that the events have the columns.

    Raises:
        SchemaError: with all that is wrong.
    """
    faults = []
    if len(asked.time) not in (1, 2) and events is not None:
        faults.append("time: name the column of the event times, or those of start and end")
    if asked.planned and len(asked.planned) != 2:
        faults.append("planned: it is the columns of the planned start and end, as in ('scheduled_at', 'due_at')")
    if asked.y and asked.are_intervals:
        faults.append("y: it draws a line through events of one time; leave it out for intervals")
    if asked.y and asked.lanes is not None:
        faults.append("lanes: a picture with y has a panel for each key; leave out y or lanes")
    if events is not None:
        faults += [_missing(name, events) for name in asked.used if name not in events.names]
        faults += [_missing(name, events) for name in asked.columns or () if name not in events.names]
        faults += [_no_number(name, events) for name in asked.y if name in events.names and _is_no_number(name, events)]
        faults += [_no_place(name, events) for name in (*asked.time, *asked.planned) if _is_no_place(name, events)]
    if faults:
        raise SchemaError("\n".join(faults))


def is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def is_time(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) or pa.types.is_date(type_))


def _missing(name: str, events: pa.Schema) -> str:
    return f"no column named {name!r}; the events have {', '.join(events.names)}"


def _is_no_number(name: str, events: pa.Schema) -> bool:
    return not (is_number(events.field(name).type) or pa.types.is_boolean(events.field(name).type))


def _no_number(name: str, events: pa.Schema) -> str:
    return f"y: {name!r} is {events.field(name).type}; a column of numbers is expected"


def _is_no_place(name: str, events: pa.Schema) -> bool:
    if name not in events.names:
        return False
    type_ = events.field(name).type
    return not (is_time(type_) or is_number(type_) or pa.types.is_null(type_))


def _no_place(name: str, events: pa.Schema) -> str:
    return f"time: {name!r} is {events.field(name).type}; a column of times or of numbers is expected"
