"""`cepheid check`: whether this is a pattern, and whether it fits these events."""

from __future__ import annotations

import sys

from cepheid.cli import options as o
from cepheid.cli.failure import failures_reported, print_json


@o.spread
def check(
    pattern: o.PatternPath,
    *,
    events: o.OptionalEvents = None,
    time: o.OptionalTime = None,
    wanted: o.Wanted,
    reading: o.Reading,
    as_json: o.AsJson = False,
) -> None:
    """Report all problems of a pattern file, with their lines and columns; and what explain warns of.

    Without --events, what needs no columns is checked: the document, the SQL of the conditions, the stages they name.
    """
    options, parameters = o.EventOptions.of(events, time, wanted, reading), o.parameters_from(wanted.parameter)
    with failures_reported(as_json=as_json):
        from cepheid.cli.pattern_file import open_pattern, plan_for, problems_without_events, warnings_of
        from cepheid.errors import PatternError

        opened = open_pattern(pattern, parameters)
        plan = plan_for(opened, options) if events else None
        if plan is None and (problems := problems_without_events(opened, options.measures)):
            with opened.problems_located():
                raise PatternError(problems)
        warnings = warnings_of(opened.pattern, plan)
        if as_json:
            print_json({"ok": True, "exit_code": 0, "problems": [], "warnings": warnings})
            return
        sys.stdout.writelines(f"Warning: {warning}\n" for warning in warnings)
        if sys.stdout.isatty():
            sys.stdout.write(f"{pattern}: no problems\n")
