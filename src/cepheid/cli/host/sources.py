"""The sources of a command line: `[INPUT=]URL`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cepheid.cli.failure import require_installed
from cepheid.cli.stream_ends import End, check_broker, source_of

if TYPE_CHECKING:
    from cepheid.hosts.durable.state import Input
    from cepheid.hosts.sources.records import BadRows
    from cepheid.hosts.sources.source import Source

_NAMED = re.compile(r"(?:(?P<name>[^:/=]+)=)?(?P<url>.*)")


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


def opened_source(end: End, given: Input, *, bad_rows: BadRows, null_texts: Sequence[str]) -> Source:
    """
    Raises:
        SourceError, SchemaError: the source cannot be read, or does not fit the input.
        Unavailable: Kafka does not answer, or its client is not installed.
    """
    if end.kind == "kafka":
        require_installed("kafka://", "confluent_kafka", extra="kafka")
        check_broker(end)
        from cepheid.hosts.sources.kafka import KafkaSource

        return KafkaSource(end.place, end.topic, given.columns, bad_rows=bad_rows, options=end.options)
    if end.kind == "files":
        from cepheid.hosts.sources.files import FileSource

        return FileSource(Path(end.place), given.columns, bad_rows=bad_rows, null_texts=null_texts)
    from cepheid.hosts.sources.rate import RateSource

    return RateSource(int(end.place), given.columns)
