"""Plans as they are sent to worker processes."""

from __future__ import annotations

import pickle
from typing import Any

from cepheid.errors import PatternError, Problem
from cepheid.lang.function import Function
from cepheid.plan.plan_set import PatternPlan, PlanSet

_HINT = "Define it at the top level of a module that workers can import, or leave out workers."


def packed(plans: PlanSet[Any]) -> bytes:
    """The plans, pickled.

    Raises:
        PatternError: a function cannot be pickled, or the workers could not import it; all such functions are named.
    """
    problems: list[Problem] = []
    for plan in plans.each:
        problems += [problem.of_pattern(plan.pattern.name) if plans.named else problem for problem in _problems(plan)]
    if problems:
        raise PatternError(problems)
    return pickle.dumps(plans, protocol=pickle.HIGHEST_PROTOCOL)


def _problems(plan: PatternPlan) -> list[Problem]:
    return [
        Problem(f"function {function.name} cannot be sent to worker processes: {reason}", where, hint=_HINT)
        for where, function in plan.placed_functions
        if (reason := _why_not(function))
    ]


def _why_not(function: Function) -> str | None:
    """Why the workers could not have the function."""
    if getattr(function.call, "__module__", None) == "__main__":
        return "it belongs to the script that runs (__main__), which workers do not import"
    try:
        pickle.dumps(function.call)
    except Exception as error:  # noqa: BLE001 - a user's object may fail in any way
        return f"{type(error).__name__}: {error}"
    return None
