"""`cepheid explain`: what a pattern file looks for, and how it will run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from cepheid.cli.detect import measures_from
from cepheid.cli.failure import failures_reported, print_json


def explain(
    pattern: Annotated[Path, typer.Argument(help="A pattern file: YAML or JSON.", show_default=False)],
    *,
    events: Annotated[
        list[str] | None, typer.Option(help="Plan against this file's columns; repeat for several.")
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
    """Tell what a pattern looks for: its stages, their conditions, the window and the skip strategy.

    With --events also the plan: which columns the host's SQL engine computes, what is left to scripts, and all types.
    """
    measures = measures_from(measure or [])
    with failures_reported(as_json=as_json):
        from cepheid.cli.pattern_file import open_pattern, plan_for_files
        from cepheid.plan.explain import explain_pattern, explain_plan

        opened = open_pattern(pattern)
        if events:
            text = explain_plan(plan_for_files(opened, events, key=key, time=time, measures=measures))
        else:
            text = explain_pattern(opened.pattern)
        if as_json:
            print_json({"ok": True, "exit_code": 0, "plan": text})
        else:
            sys.stdout.write(text)
