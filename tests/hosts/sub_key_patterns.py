"""Random patterns whose conditions, but the first, all demand the same value, with every clause that allows it."""

from __future__ import annotations

import random

from tests.hosts.tiered_patterns import ACROSS, ALONE, SAME

from cepheid import Pattern


def sub_key_pattern(seed: int, *, branching: bool) -> Pattern:
    """A pattern with groups, NOT stages and windows and, if it may branch, loops, `until` and optional stages."""
    random_ = random.Random(seed)
    shared = random_.choice(SAME)
    names = [f"s{number}" for number in range(random_.choice([2, 2, 3, 3, 4]))]
    windowed = random_.random() < 0.7
    negates = not branching or random_.random() < 0.4
    branching = branching and not negates
    pattern = Pattern.begin(names[0])
    if random_.random() < 0.6:
        pattern = pattern.where(random_.choice(ALONE))
    if branching and random_.random() < 0.2:
        pattern = pattern.optional()
    for number, name in enumerate(names[1:], 1):
        last = number == len(names) - 1
        if negates and random_.random() < 0.3:
            pattern = _negated(random_, pattern, f"no{number}", names[:number], shared)
        if random_.random() < 0.2:
            pattern = _group(random_, pattern, name, names[:number], shared)
        else:
            pattern = random_.choice([pattern.followed_by, pattern.followed_by_any])(name)
            pattern = pattern.where(_condition(random_, names[: number + 1], shared))
        if branching:
            pattern = _quantified(random_, pattern, names[:number], shared, longest=last and windowed)
    if windowed:
        pattern = pattern.within(f"{random_.choice([3, 6, 15])} seconds")
        if negates and random_.random() < 0.3:
            pattern = _negated(random_, pattern, "end", names, shared)
    return pattern.max_gap("3 seconds") if random_.random() < 0.15 else pattern


def _group(random_: random.Random, pattern: Pattern, name: str, earlier: list[str], shared: str) -> Pattern:
    group = Pattern.begin(name).where(_condition(random_, earlier, shared))
    group = group.followed_by(f"{name}b").where(_condition(random_, earlier, shared))
    return random_.choice([pattern.followed_by, pattern.followed_by_any])(group)


def _negated(random_: random.Random, pattern: Pattern, name: str, earlier: list[str], shared: str) -> Pattern:
    return pattern.not_followed_by(name).where(_tie(random_, earlier, shared) + random_.choice(["", " AND n > 1"]))


def _quantified(random_: random.Random, pattern: Pattern, earlier: list[str], shared: str, *, longest: bool) -> Pattern:
    how = random_.choice(["", "", "one_or_more", "times"])
    if how:
        pattern = pattern.one_or_more() if how == "one_or_more" else pattern.times(1, 3)
        extra = random_.choice(["", "", "allow_combinations", "longest" if longest else ""])
        pattern = getattr(pattern, extra)() if extra else pattern
        if how == "one_or_more" and random_.random() < 0.3:
            pattern = pattern.until(f"{_tie(random_, earlier, shared)} AND {random_.choice(ALONE)}")
    return pattern.optional() if random_.random() < 0.15 else pattern


def _condition(random_: random.Random, known: list[str], shared: str) -> str:
    """An equality with an earlier stage, and perhaps more."""
    parts = [_tie(random_, known[:-1] or known, shared)]
    if random_.random() < 0.5:
        parts.append(random_.choice(ALONE))
    if random_.random() < 0.3:
        parts.append(random_.choice(ACROSS).format(s=random_.choice(known)))
    random_.shuffle(parts)
    return " AND ".join(parts)


def _tie(random_: random.Random, earlier: list[str], shared: str) -> str:
    stage = random_.choice(earlier)
    place = "{}" if random_.random() < 0.7 else random_.choice(["first({})", "last({}, 1)"])
    if shared == "upper(s)":
        return f"upper(s) = upper({stage}.s)"
    other = place.format(f"{stage}.{shared}")
    return random_.choice([f"{shared} = {other}", f"{other} = {shared}"])
