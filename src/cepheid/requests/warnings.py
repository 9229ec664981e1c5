"""The texts of warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from cepheid.requests.request import SHARDS, Request

if TYPE_CHECKING:
    from cepheid.plan.plan_set import PlanSet


def with_names(plans: PlanSet[Any], warnings_of: Callable[[Any], Iterable[str]]) -> Iterator[str]:
    """The warnings about each plan. If patterns were given by name, a warning begins with the name."""
    for plan in plans.each:
        prefix = f"pattern {plan.pattern.name!r}: " if plans.named else ""
        yield from (prefix + warning for warning in warnings_of(plan))


def for_streams(request: Request) -> Iterator[str]:
    """Warnings of arguments that finite input ignores. Only `explain` shows them: code for both kinds of input passes
    them rightly.
    """
    given = {"lateness": request.lateness is not None, "shards": request.shards != SHARDS}
    if names := " and ".join(name for name, is_given in given.items() if is_given):
        yield f"{names}: for streams; these events are finite, and detect ignores what it is given here."


def of_growth(who: str, growth: Iterable[str]) -> Iterator[str]:
    """The warnings about what is retained forever; `who` retains it."""
    return (f"{who} keeps what is open: {why}" for why in growth)
