"""`cepheid explain`: what a pattern file looks for, and how the pattern will run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from cepheid.cli import options as o
from cepheid.cli.failure import failures_reported, print_json

if TYPE_CHECKING:
    from cepheid.cli.pattern_file import PatternFile


@o.spread
def explain(
    pattern: o.PatternPath,
    *,
    against: o.Against,
    wanted: o.Wanted,
    reading: o.Reading,
    bounds: o.Bounds,
    mermaid: Annotated[
        bool, typer.Option("--mermaid", help="Print the automaton, or the tree, as a Mermaid diagram only.")
    ] = False,
    as_json: o.AsJson = False,
) -> None:
    """Explain what a pattern looks for and how: its stages, conditions, window and skip strategy, and its automaton.

    With --events it also shows the plan: the columns that the host's SQL engine computes, what is left to scripts, all
    types, and the events that are dropped before anything else.
    """
    options = o.EventOptions.of(against.events, against.time, wanted, reading, bounds)
    parameters = o.parameters_from(wanted.parameter)
    with failures_reported(as_json=as_json, as_typed=options.as_typed):
        from cepheid.cli.pattern_file import open_pattern, plan_for, remarks_of
        from cepheid.families import known_family_of

        opened = open_pattern(pattern, parameters, wanted.type_)
        plan = plan_for(opened, options) if options.files else None
        if plan is None:
            _check(opened, options.measures)
        shown = known_family_of(opened.pattern).explain(opened.pattern, plan)
        if as_json:
            warnings = remarks_of(opened.pattern, plan)
            print_json({"ok": True, "exit_code": 0, "plan": shown.text, "mermaid": shown.diagram, "warnings": warnings})
        elif mermaid and shown.diagram is None:
            message = "the diagram of joins depends on the events' columns: name a file of them with --events"
            raise typer.BadParameter(message, param_hint="--mermaid")
        else:
            sys.stdout.write(f"{shown.diagram}\n" if mermaid else shown.text)


def _check(opened: PatternFile, measures: Mapping[str, str] | None) -> None:
    """Raises PatternError for the problems that do not depend on the events or on the values of parameters."""
    from cepheid.cli.pattern_file import problems_without_events
    from cepheid.errors import PatternError
    from cepheid.plan.conditions.parameters import with_nulls

    if problems := problems_without_events(replace(opened, pattern=with_nulls(opened.pattern)), measures):
        with opened.problems_located():
            raise PatternError(problems)
