"""The checked arguments of `subscribe`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa

from cepheid.errors import PatternError, Problem, SchemaError, did_you_mean
from cepheid.hosts.durable.host import DurableHost
from cepheid.hosts.durable.routing.condition import checked_condition, joined_columns
from cepheid.hosts.durable.routing.running import Given, InputOf
from cepheid.hosts.durable.routing.subscription import ALL, Subscription
from cepheid.hosts.durable.routing.targets import FORMS, GIVEN, Target, target_of
from cepheid.lang.arguments import brief
from cepheid.lang.duration import parse_duration
from cepheid.requests.arguments import checked_names

_MICROSECOND = timedelta(microseconds=1)
_LONGEST_NAME = 100
_SECRET = re.compile(r"env:[A-Za-z_]\w*")


def checked_subscription(
    host: DurableHost, arguments: Mapping[str, Any], refusal: Callable[[Target], str | None]
) -> tuple[Subscription, Given | None]:
    """The subscription with these arguments of `Host.subscribe`, and the target that the program itself gives.

    Raises:
        PatternError, SchemaError: arguments are wrong; the message has all problems.
    """
    faults: list[str] = []
    known = [*dict.fromkeys(one.name for one in host.deployments)]
    subscription, own = subscription_of(arguments, refusal, known, faults)
    # With a wrong name, `where` is checked by the columns of all patterns.
    is_known = subscription.patterns == (ALL,) or {*subscription.patterns} <= {*known}
    covered = [one.message_schema for one in host.running if subscription.covers(one.deployment.name) or not is_known]
    columns, clashes = joined_columns(covered)
    faults += clashes
    subscription = replace(subscription, columns=columns, delivered=_after(host, arguments["after"], faults))
    if subscription.where is not None and not covered:
        faults.append("where: none of the patterns runs, so there are no columns to compare. Deploy one first")
    else:
        _check_where(subscription, faults)
    if faults:
        raise SchemaError("\n".join(faults))
    return subscription, own


def subscription_of(
    arguments: Mapping[str, Any],
    refusal: Callable[[Target], str | None],
    known: Sequence[str] | None,
    faults: list[str],
) -> tuple[Subscription, Given | None]:
    """The subscription without columns, and the target that the program itself gives; `where` is not checked.

    Args:
        refusal: Why a target may not be reached.
        known: The names of the patterns, if they are known.
        faults: Gets all that is wrong.
    """
    given = arguments["to"]
    own = given if isinstance(given, InputOf) or callable(given) else None
    to = GIVEN if own is not None else _text("to", given, faults, FORMS)
    target = _target(to, faults) if to else None
    if target is not None and own is None and (reason := refusal(target)) is not None:
        faults.append(f"to: {reason}")
    subscription = Subscription(
        name=_name(arguments["name"], faults),
        patterns=_patterns(known, arguments["pattern"], faults),
        where=arguments["where"],
        to=to,
        secret=_secret(arguments["secret"], target, faults),
        timeout=_length("timeout", arguments["timeout"], faults),
        attempts=_count("attempts", arguments["attempts"], 1, faults),
        pause=_length("pause", arguments["pause"], faults),
        columns=pa.schema([]),
    )
    return subscription, own


def _check_where(given: Subscription, faults: Sequence[str]) -> None:
    """Raises PatternError for problems of `where`, after those of other arguments."""
    if given.where is None:
        return
    problems = [Problem(fault) for fault in faults]
    if not isinstance(given.where, str):
        raise PatternError([*problems, Problem(f"where: SQL is expected, got {brief(given.where)}")])
    try:
        checked_condition(given.where, given.columns)
    except PatternError as error:
        raise PatternError([*problems, *error.problems]) from None


def _target(to: str, faults: list[str]) -> Target | None:
    try:
        return target_of(to)
    except SchemaError as error:
        faults.append(str(error))
        return None


def _text(argument: str, given: object, faults: list[str], forms: str) -> str:
    if isinstance(given, str) and given != GIVEN:
        return given
    faults.append(f"{argument}: a function, or one of {forms} is expected, got {brief(given)}")
    return ""


def _name(given: object, faults: list[str]) -> str:
    if isinstance(given, str) and 0 < len(given) <= _LONGEST_NAME and given.isprintable() and given.isascii():
        return given
    faults.append(f"name: 1 to {_LONGEST_NAME} printable characters of ASCII are expected, got {brief(given)}")
    return ""


def _patterns(known: Sequence[str] | None, given: object, faults: list[str]) -> tuple[str, ...]:
    names = checked_names("pattern", given, faults)
    if names == (ALL,):
        return names
    if known is None:
        known = names
    faults += [
        f"pattern: no pattern {name!r} was deployed. {did_you_mean(name, known, if_none='Deploy it first')}"
        for name in names
        if name not in known
    ]
    if not names and not faults:
        faults.append(f"pattern: name at least one pattern, or {ALL!r} for all")
    return names


def _secret(given: object, target: Target | None, faults: list[str]) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str) or not _SECRET.fullmatch(given):
        # Not what was given: it may be the secret itself.
        faults.append("secret: the name of an environment variable is expected, as in 'env:HOOK_KEY'")
        return None
    if target is not None and target.kind != "http":
        faults.append("secret: only what is sent to an HTTP endpoint is signed")
    return given


def _length(argument: str, given: object, faults: list[str]) -> int:
    try:
        return parse_duration(given) // _MICROSECOND
    except PatternError as error:
        faults.append(f"{argument}: {error}")
        return 0


def _count(argument: str, given: object, least: int, faults: list[str]) -> int:
    if isinstance(given, int) and not isinstance(given, bool) and given >= least:
        return given
    faults.append(f"{argument}: a whole number from {least} on is expected, got {brief(given)}")
    return least


def _after(host: DurableHost, given: object, faults: list[str]) -> int:
    """The number in the outbox after which the subscription begins."""
    if given is None:
        return host.sent
    number = _count("after", given, 0, faults)
    if number > host.sent:
        faults.append(f"after: the last number in the outbox is {host.sent}, got {number}")
    elif number < host.sent and (first := _first(host)) > number + 1:
        faults.append(f"after: the outbox has no rows before number {first} any more, got {number}")
    return number


def _first(host: DurableHost) -> int:
    """The number of the first row in the outbox."""
    ((first,),) = host.read("SELECT min(number) AS first FROM outbox").to_pydict().values()
    return host.sent + 1 if first is None else int(first)
