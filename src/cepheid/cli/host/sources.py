"""The sources of a command line: `[INPUT=]URL`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cepheid.cli.failure import FileProblem, require_installed
from cepheid.cli.stream_ends import End, check_broker, source_of

if TYPE_CHECKING:
    from cepheid.hosts.durable.state import Input
    from cepheid.hosts.sources.records import BadRows
    from cepheid.hosts.sources.source import Source

_SECRET = re.compile(r"password|secret", re.IGNORECASE)
_NAMED = re.compile(r"(?:(?P<name>[^:/=]+)=)?(?P<url>.*)")


@dataclass(frozen=True)
class Reading:
    """How sources are read."""

    bad_rows: BadRows
    null_texts: Sequence[str]
    kafka_options: Mapping[str, str]


def sources_named(texts: Sequence[str]) -> list[tuple[str | None, End]]:
    """The sources, each with the name of its input, if it is given.

    Raises:
        typer.BadParameter: a text is not a source, or two have the same input.
    """
    found: list[tuple[str | None, End]] = []
    for text in texts:
        named = _NAMED.fullmatch(text)
        assert named is not None
        found.append((named["name"], source_of(named["url"])))
    names = [name for name, _ in found]
    if len({*names}) < len(names) or (None in names and len(names) > 1):
        raise typer.BadParameter("several sources need an input each, as in clicks=files://clicks", param_hint="--from")
    return found


def inputs_of(named: Sequence[tuple[str | None, End]], inputs: Mapping[str, Input]) -> dict[str, End]:
    """The source of each input. A source without a name belongs to the only input.

    Raises:
        SchemaError: an input is not known, or there are several.
    """
    from cepheid.errors import SchemaError

    known = ", ".join(inputs) or "none yet: declare it with `cepheid host input`"
    faults, found = [], {}
    for name, end in named:
        if name is None and len(inputs) != 1:
            faults.append(f"say which input gets the events, as in --from NAME={end.kind}://…; there are: {known}")
        elif name is not None and name not in inputs:
            faults.append(f"there is no input {name!r}. The host has: {known}")
        else:
            found[name or next(iter(inputs))] = end
    if faults:
        raise SchemaError("\n".join(faults))
    return found


def kafka_options_from(file: Path | None) -> dict[str, str]:
    """Options of Kafka's client from a file with `name=value` on each line; lines that begin with # are comments.

    Raises:
        OSError: the file cannot be read.
        FileProblem: a line is something else.
    """
    lines = [] if file is None else file.read_text("utf-8").splitlines()
    given = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    for number, line in enumerate(lines, 1):
        if line.strip() in given and "=" not in line:
            raise FileProblem(f"{file}, line {number}: this is not NAME=VALUE, as in security.protocol=SSL")
    return {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in given)}


def opened_source(end: End, given: Input, reading: Reading) -> Source:
    """
    Raises:
        SourceError, SchemaError: the source cannot be read, or does not fit the input.
        Unavailable: Kafka does not answer, or its client is not installed.
    """
    if end.kind == "kafka":
        require_installed("kafka://", "confluent_kafka", extra="kafka")
        check_broker(end)
        from cepheid.hosts.sources.kafka import KafkaSource

        return KafkaSource(
            end.place, end.topic, given.columns, bad_rows=reading.bad_rows, options=_kafka_options(end, reading)
        )
    if end.kind == "files":
        from cepheid.hosts.sources.files import FileSource

        return FileSource(Path(end.place), given.columns, bad_rows=reading.bad_rows, null_texts=reading.null_texts)
    from cepheid.hosts.sources.rate import RateSource

    return RateSource(int(end.place), given.columns)


def _kafka_options(end: End, reading: Reading) -> dict[str, str]:
    """The options in the file and in the URL.

    Raises:
        typer.BadParameter: the URL has a password, which every process on the machine could read.
    """
    if secrets := [name for name in end.options if _SECRET.search(name)]:
        message = f"{', '.join(secrets)} would be visible to others: put it in a file, and name that by --kafka-options"
        raise typer.BadParameter(message, param_hint="--from")
    return {**reading.kafka_options, **end.options}
