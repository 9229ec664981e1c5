"""`cepheid explain`: what a pattern file looks for, and how the pattern will run."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated

import typer

from cepheid.cli import options as o
from cepheid.cli.failure import failures_reported, in_options, print_json


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
    """Explain what a pattern looks for and how: its stages, conditions, window, skip strategy and automaton.

    With --events it also shows the plan: the columns that the host's SQL engine computes, what is left to scripts, all
    types, and the events that are dropped before anything else.
    """
    options = o.EventOptions.of(against.events, against.time, wanted, reading, bounds)
    options = replace(options, event_id=against.event_id, changes=against.changes)
    parameters = o.parameters_from(wanted.parameter)
    with failures_reported(as_json=as_json, as_typed=options.as_typed):
        from cepheid.cli.pattern_file import open_pattern, plan_for, remarks_of
        from cepheid.detect import explain as explained
        from cepheid.families import known_family_of

        opened = open_pattern(pattern, parameters, wanted.type_)
        plan = plan_for(opened, options) if options.files else None
        if plan is None:
            with opened.problems_located():
                shown = explained(opened.pattern, measures=options.measures)
        else:
            shown = known_family_of(opened.pattern).explain(opened.pattern, plan)
        text = "".join(map(_in_file, shown.text.splitlines(keepends=True)))
        if as_json:
            warnings = [*map(in_options, remarks_of(opened.pattern, plan))]
            print_json({"ok": True, "exit_code": 0, "plan": text, "mermaid": shown.diagram, "warnings": warnings})
        elif mermaid and shown.diagram is None:
            message = "the diagram of joins depends on the events' columns: name a file of them with --events"
            raise typer.BadParameter(message, param_hint="--mermaid")
        else:
            sys.stdout.write(f"{shown.diagram}\n" if mermaid else text)


def _in_file(line: str) -> str:
    """The line; a warning names keys of the pattern file, where it named calls."""
    return in_options(line) if line.startswith("Warning: ") else line
