"""The pattern file of a command: its pattern, its plan, and problems in its conditions placed in the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cepheid.errors import PatternError, SchemaError
from cepheid.lang.document import located_in_document, pattern_from_text, read_text
from cepheid.lang.pattern import Pattern

if TYPE_CHECKING:
    import pyarrow as pa

    from cepheid.plan.plan import Plan


@dataclass(frozen=True)
class PatternFile:
    """A pattern and the text that it was read from."""

    path: Path
    text: str
    pattern: Pattern

    @contextmanager
    def problems_located(self) -> Iterator[None]:
        """Problems that are found later, in conditions, get their line and column in the file."""
        try:
            yield
        except PatternError as error:
            problems = [located_in_document(problem, self.text, source=str(self.path)) for problem in error.problems]
            raise PatternError(problems) from None


def open_pattern(path: Path) -> PatternFile:
    """Raises OSError where the file cannot be read and PatternError where it does not hold a pattern."""
    text = read_text(path)
    return PatternFile(path, text, pattern_from_text(text, source=str(path)))


def plan_for_files(
    opened: PatternFile,
    events: Sequence[str],
    *,
    key: Sequence[str] | None,
    time: str | None,
    measures: Mapping[str, str] | None,
) -> Plan:
    """The in-process plan of a pattern for events in files; without `time`, their first timestamp column is it.

    Raises:
        FileProblem, SchemaError, PatternError: as reading the files and planning do.
    """
    from cepheid.cli.files import event_files, read_schema
    from cepheid.events import Schema
    from cepheid.hosts.duckdb_engine import DuckDbEngine
    from cepheid.plan.build import build_plan

    columns = read_schema(event_files(events), time=time)
    schema = Schema(columns, tuple(key or ()), time or _first_timestamp(columns))
    with opened.problems_located():
        return build_plan(opened.pattern, schema, DuckDbEngine(), measures=measures)


def _first_timestamp(columns: pa.Schema) -> str:
    import pyarrow as pa

    for field in columns:
        if pa.types.is_timestamp(field.type):
            return str(field.name)
    raise SchemaError(
        f"no column of the events is a timestamp: name the event time by --time; {columns.names} are there"
    )
