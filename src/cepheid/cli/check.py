"""`cepheid check`: whether this is a pattern, and whether it fits these events."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from cepheid.cli.detect import measures_from
from cepheid.cli.failure import failures_reported, print_json


def check(
    pattern: Annotated[Path, typer.Argument(help="A pattern file: YAML or JSON.", show_default=False)],
    *,
    events: Annotated[
        list[str] | None, typer.Option(help="Check names and types against this file's columns; repeat for several.")
    ] = None,
    key: Annotated[list[str] | None, typer.Option(help="A key column; repeat for several.")] = None,
    time: Annotated[
        str | None, typer.Option(help="The column of the event time. Default: the first timestamp.")
    ] = None,
    measure: Annotated[
        list[str] | None, typer.Option(metavar="NAME=SQL", help="A flat output column; repeat for several.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Report all problems of a pattern file, with their lines and columns.

    Without --events, what needs no columns is checked: the document, the SQL of the conditions, the stages they name.
    """
    measures = measures_from(measure or [])
    with failures_reported(as_json=as_json):
        from cepheid.cli.pattern_file import open_pattern, plan_for_files
        from cepheid.errors import PatternError
        from cepheid.plan.build import check_pattern

        opened = open_pattern(pattern)
        if events:
            plan_for_files(opened, events, key=key, time=time, measures=measures)
        elif problems := check_pattern(opened.pattern, measures):
            with opened.problems_located():
                raise PatternError(problems)
        if as_json:
            print_json({"ok": True, "exit_code": 0, "problems": []})
        elif sys.stdout.isatty():
            sys.stdout.write(f"{pattern}: no problems\n")
