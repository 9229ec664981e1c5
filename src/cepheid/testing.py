"""Tests of patterns: events as rows, the expected matches, and a failure message that shows what each stage took.

No test runner is needed: a failed test is an AssertionError. Wrong arguments raise a SchemaError, whose message has all
faults, so that a mistake in the test is not mistaken for a fault of the pattern.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa

from cepheid.detect import detect, is_spark
from cepheid.errors import PatternError, SchemaError, did_you_mean
from cepheid.events.batch import python_values
from cepheid.hosts.in_process.tables import mixed_times, to_arrow
from cepheid.lang.known_arguments import known_arguments
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.lifted import OutputName
from cepheid.plan.stages.build import check_pattern
from cepheid.plan.stages.explain import describe_pattern
from cepheid.requests.report import Report

MOST_MATCHES = 8
"""The number of missing, of unexpected and of other matches, or timeouts, that a failure lists."""
MOST_ROWS = 40
"""The number of events that a failure lists."""
WIDEST_CELL = 32

_PLURAL = {"match": "matches", "timeout": "timeouts"}

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WORD = re.compile(r"\w+")

Taken: TypeAlias = tuple[tuple[str, tuple[Hashable, ...]], ...]
"""A match as the stages that took events, in the pattern's order, each with the ids of its events."""


@known_arguments()
def assert_matches(
    pattern: Pattern,
    events: object,
    expected: Sequence[Mapping[str, object]],
    *,
    timeouts: Sequence[Mapping[str, object]] | None = None,
    key: str | Sequence[str] | None = None,
    time: str | None = "time",
    sequence: str | Sequence[str] | None = None,
    ids: str = "id",
    as_of: datetime | str | float | None = None,
    time_zone: str | None = None,
    in_order: bool = False,
) -> None:
    """Asserts that `detect` finds exactly the `expected` matches of `pattern` in `events` and, if `timeouts` are given,
    exactly these.

    Args:
        pattern: The pattern under test.
        events: Rows as mappings of column to value. They are matched in process: a column that a row lacks is NULL, and
            times may be numbers, which are seconds since 1970 UTC. Or any table that `detect` takes; a Spark DataFrame
            is matched on Spark. An empty list has no columns, so column names in conditions are not checked then.
        expected: Each match as a mapping of stage to the id of the event that it took, or to a list of ids in the order
            of the events. Stages that took none are left out. A match that is listed n times must be found n times.
        timeouts: Each timeout in the same form, with the events that the partial match had taken by its deadline. None:
            timeouts are ignored.
        key, sequence, time_zone: As in `detect`.
        time: The column of event times; None: processing order, as in `detect`.
        ids: A column whose values identify the events; all its values must differ.
        as_of: As in `detect`; a number is seconds since 1970 UTC, as in rows.
        in_order: Whether the matches of each key must also come in the order in which they are expected.

    Raises:
        AssertionError: the matches are not the expected ones; the message has the missing and unexpected matches, their
            differences, the events with the stages that took them, and the pattern.
        SchemaError: `expected` or `timeouts` name unknown stages or ids, or an argument is wrong; the message has all
            such faults.
        PatternError, EventError, ConditionError, SkipError, LimitExceeded: as in `detect`.
    """
    __tracebackhide__ = True  # pytest then shows the line of the test, not of this function
    shown, table = _read(events, time)
    if shown.names:
        _check_ids(shown, ids)
    given = {"match": expected} if timeouts is None else {"match": expected, "timeout": timeouts}
    wanted = _expected(given, pattern, set(shown.columns.get(ids, ())))
    if not shown.names:
        _check(pattern)
        return
    as_of = EPOCH + timedelta(seconds=as_of) if isinstance(as_of, int | float) else as_of
    outputs: tuple[OutputName, ...] | None = None if timeouts is None else ("matches", "timeouts")
    found = detect(
        table,
        pattern,
        key=key,
        time=time,
        sequence=sequence,
        outputs=outputs,
        as_of=as_of,
        time_zone=time_zone,
        report=None if is_spark(table) else Report(),  # examples need no warning of what they lack
    )
    got = _found(_arrow(found), pattern, ids)
    keys = _names(key)
    order = shown.order_of_keys(keys, ids) if in_order else None
    differences = [_Difference(kind, its, got[kind], order) for kind, its in wanted.items()]
    if any(differences):
        named = [ids, *keys, *_names(time), *_names(sequence)]
        raise AssertionError("\n".join(_failure([*filter(None, differences)], shown, pattern, named)))


def _check(pattern: Pattern) -> None:
    """Raises PatternError for the pattern's problems that do not depend on columns."""
    if problems := check_pattern(pattern):
        raise PatternError(problems)


@dataclass(frozen=True)
class _Shown:
    """The events as the test supplied them, for the message of a failure."""

    names: list[str]
    columns: dict[str, list[Any]]

    def __len__(self) -> int:
        return max(map(len, self.columns.values()), default=0)

    def column(self, name: str) -> list[Any]:
        return self.columns[name]

    def order_of_keys(self, key: Sequence[str], ids: str) -> dict[Hashable, int]:
        """Event id → the position of the event's key among the keys, in the order in which they first occur."""
        places: dict[str, int] = {}
        keys = [repr([self.columns[name][row] for name in key]) for row in range(len(self))]
        return {id_: places.setdefault(its, len(places)) for id_, its in zip(self.columns[ids], keys, strict=True)}


def _names(given: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


def _read(events: object, time: str | None) -> tuple[_Shown, object]:
    """The events for a message, and the same events for `detect`."""
    if isinstance(events, Sequence) and all(isinstance(row, Mapping) for row in events):
        names = list(dict.fromkeys(name for row in events for name in row))
        columns = {name: [row.get(name) for row in events] for name in names}
        return _Shown(names, columns), _table(columns, time)
    if isinstance(events, Sequence):
        odd = next(row for row in events if not isinstance(row, Mapping))
        raise SchemaError(f'events: rows are mappings, as in {{"id": 1, "time": 0}}, got {odd!r}')
    table = _arrow(events)
    columns = {name: python_values(table.column(name)) for name in table.schema.names}
    return _Shown(table.schema.names, columns), events if is_spark(events) else table


def _arrow(table: object) -> pa.Table:
    return table.toArrow() if is_spark(table) else to_arrow(table)[0]


def _table(columns: Mapping[str, list[Any]], time: str | None) -> pa.Table:
    arrays, faults = {}, []
    for name, values in columns.items():
        try:
            arrays[name] = pa.array(_instants(values) if name == time else values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            faults.append(f"events: column {name!r} is no column of one type: {error}")
            continue
        if mixed := mixed_times(values, arrays[name].type):
            faults.append(f"events: column {name!r} {mixed}")
    if faults:
        raise SchemaError("\n".join(faults))
    return pa.table(arrays)


def _instants(values: list[Any]) -> list[Any]:
    """Instants, if all values are times in seconds; otherwise the values unchanged."""
    if not all(value is None or isinstance(value, int | float) for value in values):
        return values
    return [None if value is None else EPOCH + timedelta(seconds=value) for value in values]


def _check_ids(shown: _Shown, ids: str) -> None:
    """Raises SchemaError if the column does not identify the events."""
    if ids not in shown.names:
        hint = did_you_mean(ids, shown.names)
        raise SchemaError(f"ids: there is no column named {ids!r}; name the one that identifies the events. {hint}")
    values = shown.column(ids)
    if odd := [value for value in values if value is None or not isinstance(value, Hashable)]:
        raise SchemaError(f"ids: {odd[0]!r} in column {ids!r} cannot identify an event; use numbers or texts")
    if repeated := [value for value, count in Counter(values).items() if count > 1]:
        raise SchemaError(f"ids: several events have the {ids} {repeated[0]!r}; each event needs its own")


def _expected(given: Mapping[str, object], pattern: Pattern, ids: set[Hashable]) -> dict[str, list[Taken]]:
    """The expected matches and timeouts, by kind; SchemaError for all unknown stages and ids."""
    faults: list[str] = []
    wanted = {}
    for kind, argument in (("match", "expected"), ("timeout", "timeouts")):
        its = given.get(kind, ())
        if isinstance(its, Mapping | str) or not isinstance(its, Sequence):
            raise SchemaError(f"{argument}: a list of {_PLURAL[kind]} is expected, each as {{stage: id}}, got {its!r}")
        wanted[kind] = [_one_expected(one, pattern, ids, f"{argument}[{n}]", faults) for n, one in enumerate(its)]
    if faults:
        raise SchemaError("\n".join(faults))
    return {kind: wanted[kind] for kind in given}


def _one_expected(match: object, pattern: Pattern, ids: set[Hashable], where: str, faults: list[str]) -> Taken:
    if not isinstance(match, Mapping):
        faults.append(f"{where}: a mapping of stage to id or ids is expected, got {match!r}")
        return ()
    taken = {stage: tuple(_listed(given)) for stage, given in match.items()}
    stages = [leaf.name for leaf in pattern.leaves if not leaf.contiguity.negated]
    for stage, its in taken.items():
        if stage not in stages:
            faults.append(f"{where}: no stage named {stage!r} takes events. {did_you_mean(str(stage), stages)}")
        unknown = [id_ for id_ in its if not isinstance(id_, Hashable) or id_ not in ids]
        faults += [f"{where}: no event has the id {id_!r} (stage {stage!r})" for id_ in unknown]
    if not any(taken.values()):
        faults.append(f"{where}: at least one event is expected, got {match!r}")
    return tuple((stage, taken[stage]) for stage in stages if taken.get(stage))


def _listed(given: object) -> list[Any]:
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]


def _found(rows: pa.Table, pattern: Pattern, ids: str) -> dict[str, list[Taken]]:
    """The matches and timeouts that were found, by kind."""
    names = [leaf.name for leaf in pattern.leaves if not leaf.contiguity.negated]
    if "kind" in rows.schema.names:
        kinds, stages = rows.column("kind").to_pylist(), map(dict, python_values(rows.column("stages")))
        taken = [[its[name] for name in names] for its in stages]
    else:
        kinds = ["match"] * rows.num_rows
        taken = [[*row] for row in zip(*(python_values(rows.column(name)) for name in names), strict=True)]
    found: dict[str, list[Taken]] = {"match": [], "timeout": []}
    for kind, row in zip(kinds, taken, strict=True):
        each = zip(names, row, strict=True)
        found[kind].append(tuple((name, tuple(event[ids] for event in _listed(its))) for name, its in each if its))
    return found


@dataclass(frozen=True)
class _Difference:
    """The expected and the found matches, or timeouts; true if they differ."""

    kind: str
    wanted: list[Taken]
    got: list[Taken]
    order: Mapping[Hashable, int] | None
    """Event id → the position of its key, if the order within each key is tested; else None."""

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected or self.is_another_order)

    @cached_property
    def missing(self) -> list[Taken]:
        return _without(self.wanted, self.got)

    @cached_property
    def unexpected(self) -> list[Taken]:
        return _without(self.got, self.wanted)

    @property
    def as_expected(self) -> list[Taken]:
        return _without(self.got, self.unexpected)

    @property
    def is_another_order(self) -> bool:
        return self.order is not None and self.by_key(self.wanted) != self.by_key(self.got)

    def by_key(self, matches: list[Taken]) -> list[Taken]:
        """The matches grouped by key, as hosts process the keys in different orders."""
        order = self.order
        return matches if order is None else sorted(matches, key=lambda match: order[match[0][1][0]])


def _without(matches: Iterable[Taken], others: Iterable[Taken]) -> list[Taken]:
    left = Counter(others)
    rest = []
    for match in matches:
        if left[match]:
            left[match] -= 1
        else:
            rest.append(match)
    return rest


def _failure(
    differences: Sequence[_Difference], shown: _Shown, pattern: Pattern, named: Sequence[str]
) -> Iterator[str]:
    """The lines of the message."""
    listed: dict[str, Taken] = {}
    for difference in differences:
        yield from _listing(difference, listed)
        yield ""
    yield from _event_table(shown, listed, _columns(shown, pattern, named))
    yield ""
    yield describe_pattern(pattern).rstrip()


def _listing(difference: _Difference, listed: dict[str, Taken]) -> Iterator[str]:
    """The lines for one kind; the matches in them are added to `listed`, by label."""
    missing, unexpected = difference.missing, difference.unexpected
    what = _PLURAL[difference.kind]
    if missing or unexpected:
        groups = {"missing": missing, "unexpected": unexpected, "as expected": difference.as_expected}
        counts = ", ".join(f"{len(matches)} {group}" for group, matches in groups.items())
        yield f"the {what} are not those expected: {counts}"
    else:
        groups = {"expected": difference.by_key(difference.wanted), "found": difference.by_key(difference.got)}
        yield f"the {what} are those expected, in another order"
    yield ""
    if difference.kind != "match":
        groups = {f"{difference.kind} {group}": its for group, its in groups.items()}
    loops = {stage for matches in groups.values() for match in matches for stage, its in match if len(its) > 1}
    widest = max(len(f"{group} {MOST_MATCHES}") for group, matches in groups.items() if matches)
    for group, matches in groups.items():
        for number, match in enumerate(matches[:MOST_MATCHES]):
            label = f"{group} {number + 1}"
            listed[label] = match
            yield f"  {label:<{widest}}  {_text(match, loops)}"
        if (more := len(matches) - MOST_MATCHES) > 0:
            yield f"  {group}: {more} more"
    yield from _nearest(missing[:MOST_MATCHES], unexpected[:MOST_MATCHES])


def _nearest(missing: Sequence[Taken], unexpected: Sequence[Taken]) -> Iterator[str]:
    """For each missing match, how the unexpected match that shares the most events with it differs."""
    left = dict(enumerate(unexpected, 1))
    for number, wanted in enumerate(missing, 1):
        events = {(stage, id_) for stage, its in wanted for id_ in its}
        others = {n: {(stage, id_) for stage, its in match for id_ in its} for n, match in left.items()}
        nearest = max(others, key=lambda n: len(others[n] & events), default=None)
        if nearest is None or not others[nearest] & events:
            continue
        del left[nearest]
        changes = [f"{stage} -{id_!r}" for stage, its in wanted for id_ in its if (stage, id_) not in others[nearest]]
        changes += [
            f"{stage} +{id_!r}" for stage, its in unexpected[nearest - 1] for id_ in its if (stage, id_) not in events
        ]
        yield f"  missing {number} → unexpected {nearest}: {', '.join(changes)}"


def _text(match: Taken, loops: set[str]) -> str:
    """The match in a form that can be pasted into a test."""
    return repr({stage: list(its) if stage in loops else its[0] for stage, its in match})


def _columns(shown: _Shown, pattern: Pattern, named: Sequence[str]) -> list[str]:
    """The columns named in the test, then those named in the pattern's conditions."""
    parts = [part for stage in pattern.stages for part in stage.parts]
    texts = [condition.text for part in parts for condition in (*part.conditions, part.until) if condition is not None]
    words = {word.lower() for text in texts for word in _WORD.findall(text)}
    return [*dict.fromkeys(named), *(name for name in shown.names if name.lower() in words and name not in named)]


def _event_table(shown: _Shown, matches: Mapping[str, Taken], columns: Sequence[str]) -> Iterator[str]:
    """One line per event: its columns, then for each match the stage that took the event."""
    took = [{id_: stage for stage, its in match for id_ in its} for match in matches.values()]
    ids = shown.columns[columns[0]]
    rows = list(range(len(ids)))
    if len(rows) > MOST_ROWS:
        rows = [row for row in rows if any(ids[row] in stages for stages in took)][:MOST_ROWS]
    head = [*columns, *matches]
    cells = [
        [*(_cell(shown.columns[name][row]) for name in columns), *(stages.get(ids[row], "") for stages in took)]
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    for line in (head, ["-" * width for width in widths], *cells):
        yield "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
    if len(rows) < len(ids):
        yield f"  these are {len(rows)} of {len(ids):,} events"


def _cell(value: object) -> str:
    text = "NULL" if value is None else str(value)
    return text if len(text) <= WIDEST_CELL else text[: WIDEST_CELL - 1] + "…"
