"""Durable hosts as hosts of cases: each case has an input and patterns of its own in one store."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.conformance import algebra_case, semantic_case
from tests.conformance.algebra_case import AT, ID, Answer, shown
from tests.conformance.translate import EPOCH, TIME, Question
from tests.durable.postgres import running_server

from cepheid.host import Host, open_host

LATENESS = timedelta(days=100 * 365)
"""More than the distance of any two events: time advances only where a case says so."""
END = "9999-01-01"
MOST_CASES = 50
STORES = ("file", "sqlite", "duckdb", "postgresql")
_NUMBERS = count()


@contextmanager
def store_urls(kind: str) -> Iterator[Iterator[str]]:
    """URLs of new stores of this kind."""
    with ExitStack() as stack:
        # A Unix socket's path has at most 107 bytes, and the server's own user must reach the folder.
        folder = Path(tempfile.mkdtemp(prefix="cases-", dir="/tmp"))
        stack.callback(shutil.rmtree, folder)
        if kind == "postgresql":
            server = stack.enter_context(running_server(folder))
            yield (server.url(f"cases{number}") for number in _NUMBERS)
        else:
            yield (f"{kind}:///{folder}/cases{number}.{kind}" for number in _NUMBERS)


@cache
def urls_until_exit(kind: str) -> Iterator[str]:
    """URLs of new stores, which are removed when the program ends."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(store_urls(kind))


class DurableHost:
    """Answers questions with a durable host."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._host: Host | None = None
        self._cases = 0

    def _next_host(self) -> Host:
        """The host for the next case. A store with thousands of tables gets slow, so some cases share a store."""
        if self._host is None or self._cases == MOST_CASES:
            self.close()
            self._host, self._cases = open_host(next(urls_until_exit(self._kind))), 0
        self._cases += 1
        return self._host

    def close(self) -> None:
        if self._host is not None:
            self._host.close()

    def rows(self, question: Question) -> list[dict[str, Any]]:
        """What the host finds for a question about stages, in the case's own steps."""
        name = f"case {next(_NUMBERS)}"
        lateness = LATENESS if question.operator else timedelta(0)
        with self._case(name, question.events, time=TIME, sequence=question.sequence, lateness=lateness) as found:
            found.host.deploy(
                question.pattern.named(name),
                input=name,
                key=question.key,
                columns=["id"],
                outputs=("matches", "timeouts", "late"),
            )
            for item in question.items:
                if item.event is None:
                    found.advance(EPOCH + timedelta(milliseconds=item.ts))
                else:
                    found.feed(question.events.slice(item.event, 1))
            return found.rows(name)

    def occurrences(self, case: Mapping[str, Any], policy: str) -> Answer:
        """The occurrences of a case of the event algebra, whose events come out of order."""
        name = f"case {next(_NUMBERS)}"
        events = algebra_case.table(case)
        with self._case(name, events, time=AT, sequence=ID, lateness=LATENESS) as found:
            found.host.deploy(algebra_case.pattern(case).policy(policy).named(name), input=name, columns=[ID])
            found.feed(events.take(pa.array(range(0, len(events), 2), pa.int64())))
            found.feed(events.take(pa.array(range(1, len(events), 2), pa.int64())))
            found.advance(END)
            return [shown(row) for row in found.rows(name)]

    def meanings(self, case: Mapping[str, Any]) -> semantic_case.Found:
        """What is found for a case about semantic filters, whose events come out of order."""
        events, rows = semantic_case.table(case), []
        for policy in semantic_case.POLICIES:
            name = f"case {next(_NUMBERS)}"
            with self._case(name, events, time=AT, sequence=ID, lateness=LATENESS) as found:
                pattern = semantic_case.pattern(case).policy(policy).named(name)
                options = {"key": semantic_case.KEY, "columns": [ID], "outputs": semantic_case.OUTPUTS}
                found.host.deploy(pattern, input=name, **options)
                found.feed(events.take(pa.array(range(0, len(events), 2), pa.int64())))
                found.feed(events.take(pa.array(range(1, len(events), 2), pa.int64())))
                found.advance(END)
                rows += [{**row, "pattern": policy} for row in found.rows(name)]
        return semantic_case.found_in(rows)

    @contextmanager
    def _case(self, name: str, events: pa.Table, **how: Any) -> Iterator[_Found]:
        host = self._next_host()
        host.input(name, events.schema, **how)
        found = _Found(host, name)
        try:
            yield found
        finally:
            for running in found.patterns:
                host.retire(running, how="drop")


class _Found:
    """The rows that a host finds for one input."""

    def __init__(self, host: Host, name: str) -> None:
        self.host, self._name = host, name
        self._rows: list[dict[str, Any]] = []

    @property
    def patterns(self) -> list[str]:
        query = f"SELECT name FROM patterns WHERE name = '{self._name}' AND status = 'running'"
        return [row["name"] for row in self.host.sql(query).to_pylist()]

    def feed(self, events: pa.Table) -> None:
        fed = self.host.feed(events, input=self._name)
        self._rows += [row for rows in fed.rows.values() for row in rows.to_pylist()]

    def advance(self, time: Any) -> None:
        fed = self.host.advance_time(time, input=self._name)
        self._rows += [row for rows in fed.rows.values() for row in rows.to_pylist()]

    def rows(self, name: str) -> list[dict[str, Any]]:
        """All rows; the tables must have the same."""
        query = f"SELECT matches_table FROM patterns WHERE name = '{name}'"
        ((table,),) = (row.values() for row in self.host.sql(query).to_pylist())
        stored = sorted(row["match_id"] for row in self.host.sql(f'SELECT match_id FROM "{table}"').to_pylist())
        found = sorted(row["match_id"] for row in self._rows if row["kind"] == "match")
        assert stored == found, f"the table has matches {stored}, but {found} were found"
        return self._rows
