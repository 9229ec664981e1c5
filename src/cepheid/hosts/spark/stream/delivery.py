"""The matches of a stream for subscribers: a function for foreachBatch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it

from cepheid.errors import PatternError, Problem, SchemaError, StoreError
from cepheid.hosts.durable.routing.arguments import subscription_of
from cepheid.hosts.durable.routing.line import Line
from cepheid.hosts.durable.routing.outlet import Read
from cepheid.hosts.durable.routing.reach import OpenedHost, Reach
from cepheid.hosts.durable.routing.running import InputOf
from cepheid.hosts.durable.routing.sender import Sender
from cepheid.hosts.durable.routing.senders.function import FunctionSender
from cepheid.hosts.durable.routing.subscription import ALL, DeadLetter, Letter, Subscription
from cepheid.hosts.durable.routing.targets import target_of
from cepheid.hosts.spark.engine import SparkEngine, arrow_schema, expression
from cepheid.hosts.spark.lift import named
from cepheid.lang.sql.parser import parse_expression
from cepheid.output.common import MATCH
from cepheid.plan.conditions.types import sql_name

_MOST = 1 << 24
"""The most rows of a micro-batch: its number, then the number within it, make the number of a letter."""
_JSON = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "timeZone": "UTC",
    "ignoreNullFields": "false",
}

Subscribers = Sequence[tuple[Subscription, Callable[[], Sender]]]


def checked_subscribers(
    rows: DataFrame,
    given: Sequence[Mapping[str, Any]],
    allow: Iterable[str],
    kafka_options: Mapping[str, str],
    faults: list[str],
) -> Subscribers:
    """The subscribers with these arguments, each with what makes its sender. `faults` has what is wrong already.

    Raises:
        SchemaError, PatternError: something is wrong; with all problems.
    """
    reach = Reach(allow, kafka_options, _not_running)
    problems: list[Problem] = []
    found = [_subscriber(rows, one, reach, faults, problems) for one in given]
    if problems:
        raise PatternError([*map(Problem, faults), *problems])
    if faults:
        raise SchemaError("\n".join(faults))
    return found


def _subscriber(
    rows: DataFrame, given: Mapping[str, Any], reach: Reach, faults: list[str], problems: list[Problem]
) -> tuple[Subscription, Callable[[], Sender]]:
    subscription, own = subscription_of(given, reach.refusal, None, faults)
    kind = target_of(subscription.to).kind if subscription.to and not faults else None
    if kind == "table" or isinstance(own, InputOf):
        faults.append(
            "to: a table, and a host that the program has open, are targets of durable hosts only. Name the store of a "
            "host that runs, as in sqlite:///alerts.db#pairs"
        )
    if subscription.patterns != (ALL,) and "pattern" not in rows.columns:
        faults.append("pattern: the rows have no column of this name, as they are those of one pattern: leave it out")
    if subscription.where is not None:
        try:
            _check_condition(rows, subscription.where)
        except PatternError as error:
            problems += error.problems
    if own is not None and not isinstance(own, InputOf):
        return subscription, lambda: FunctionSender(own)
    return subscription, lambda: reach.sender(subscription, target_of(subscription.to))


def _not_running(url: str) -> OpenedHost:
    raise StoreError(f"no host runs on the store {url}: start it with `cepheid host run`")


def _check_condition(rows: DataFrame, where: str) -> None:
    """
    Raises:
        PatternError: it is no condition over these columns.
    """
    tree = parse_expression(where)
    (type_,) = SparkEngine(rows).types_of([(tree, where)], arrow_schema(rows.schema))
    if isinstance(type_, Problem):
        raise PatternError(replace(type_, where="where", text=where))
    if not (pa.types.is_boolean(type_) or pa.types.is_null(type_)):
        raise PatternError(Problem(f"a condition must be BOOLEAN, this is {sql_name(type_)}", "where", where))


def delivering(subscribers: Subscribers, dead: Callable[[str, DeadLetter], object] | None) -> _Delivery:
    """The function for foreachBatch. `dead` is called with letters that were given up; without it they end the query,
    whose restart delivers the micro-batch again.
    """
    return _Delivery(subscribers, dead)


class Undeliverable(RuntimeError):
    """Letters were given up, and nobody takes dead letters."""


class _Delivery:
    def __init__(self, subscribers: Subscribers, dead: Callable[[str, DeadLetter], object] | None) -> None:
        self._subscribers = subscribers
        self._dead = dead
        self._senders: dict[str, Sender] = {}

    def __call__(self, rows: DataFrame, number: int) -> None:
        """Delivers the rows of micro-batch `number` to all subscribers, each in a thread of its own."""
        rows = rows.persist()
        try:
            letters = {given.name: _letters(rows, given, number) for given, _ in self._subscribers}
        finally:
            rows.unpersist()
        with ThreadPoolExecutor(max(1, len(self._subscribers)), "cepheid to subscriber") as threads:
            found = threads.map(lambda one: self._deliver(one[0], one[1], letters[one[0].name]), self._subscribers)
            problems = [problem for each in found for problem in each]
        if problems:
            raise Undeliverable("\n".join(problems))

    def _deliver(self, given: Subscription, make: Callable[[], Sender], letters: Sequence[Letter]) -> list[str]:
        """Delivers letters in their order; returns the problems of those that were given up and not taken."""
        if not letters:
            return []
        if given.name not in self._senders:
            self._senders[given.name] = make()
        line = Line(given, _Batch(letters), self._senders[given.name])
        line.reach(letters[-1].number)
        while not line.is_done:
            time.sleep(line.step() or 0.0)
        problems = []
        for one in line.progress.dead:
            if self._dead is not None:
                self._dead(given.name, one)
            else:
                what = f"match {one.letter.match_id} was given up after {one.attempts} attempts: {one.problem}"
                problems.append(f"subscriber {given.name!r}: {what}")
        return problems


class _Batch:
    """The letters of a micro-batch, read as an outbox is."""

    def __init__(self, letters: Sequence[Letter]) -> None:
        self._letters = iter(letters)

    def read(self, after: int, through: int, most: int) -> Read:  # noqa: ARG002 - each is read once, in order
        some = [*islice(self._letters, most)]
        return Read(some, [], some[-1].number if some else through)


def _letters(rows: DataFrame, given: Subscription, number: int) -> list[Letter]:
    """The rows for a subscriber, in the order of their detection. It is the same if the micro-batch is repeated."""
    if given.patterns != (ALL,):
        rows = rows.where(named("pattern").isin(*given.patterns))
    if given.where is not None:
        rows = rows.where(expression(given.where))
    is_one = "kind" not in rows.columns
    kind, pattern = (F.lit(MATCH), F.lit("")) if is_one else (named("kind"), named("pattern"))
    content = F.to_json(F.struct(*map(named, rows.columns)), _JSON)
    order = [name for name in ("detected_at", "match_id", "kind") if name in rows.columns]
    texts = rows.orderBy(*map(named, order)).select(pattern, kind, named("match_id"), content).collect()
    return [
        Letter(number * _MOST + i + 1, of_pattern, "", of_kind, match_id, text)
        for i, (of_pattern, of_kind, match_id, text) in enumerate(texts)
    ]
