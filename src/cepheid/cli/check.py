"""`cepheid check`: whether a file holds a valid pattern, and whether the pattern fits the events."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated

import typer

from cepheid.cli import options as o
from cepheid.cli.failure import failures_reported, in_options, print_json
from cepheid.requests.request import SHARDS


@o.spread
def check(
    pattern: o.PatternPath,
    *,
    against: o.Against,
    wanted: o.Wanted,
    reading: o.Reading,
    shards: Annotated[int, typer.Option(metavar="N", min=1, help="The number of a stream's shards.")] = SHARDS,
    partitions: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="For a stream: spark.sql.shuffle.partitions of its session; a warning says if the shards cannot be "
            "spread evenly.",
        ),
    ] = None,
    as_json: o.AsJson = False,
) -> None:
    """Report all problems of a pattern file with their lines and columns, and the warnings of explain.

    Without --events, only the parts that need no columns are checked: the document, the SQL of the conditions and the
    stages that they name.
    """
    options = o.EventOptions.of(against.events, against.time, wanted, reading)
    options = replace(options, event_id=against.event_id, changes=against.changes)
    parameters = o.parameters_from(wanted.parameter)
    with failures_reported(as_json=as_json, as_typed=options.as_typed):
        from cepheid.cli.pattern_file import open_pattern, plan_for, problems_without_events, remarks_of
        from cepheid.errors import PatternError
        from cepheid.hosts.spark.stream.placement import uneven

        opened = open_pattern(pattern, parameters, wanted.type_)
        plan = plan_for(opened, options) if options.files else None
        if plan is None and (problems := problems_without_events(opened, options.measures)):
            with opened.problems_located():
                raise PatternError(problems)
        advice = None if partitions is None else uneven(shards, partitions)
        warnings = [*map(in_options, remarks_of(opened.pattern, plan)), *([] if advice is None else [advice])]
        if as_json:
            print_json({"ok": True, "exit_code": 0, "problems": [], "warnings": warnings})
            return
        sys.stdout.writelines(f"Warning: {warning}\n" for warning in warnings)
        if sys.stdout.isatty():
            sys.stdout.write(f"{pattern}: no problems\n")
