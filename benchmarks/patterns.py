"""The patterns of the benchmarks, with three stages each."""

from __future__ import annotations

from cepheid import Pattern, Skip

STRICT = (
    Pattern.begin("a")
    .where("phase = 0 AND price > 100")
    .next("b")
    .where("phase = 1 AND price > 100")
    .next("c")
    .where("phase = 2 AND price > 100")
)

SELECTIVE = (
    Pattern.begin("a")
    .where("kind = 1")
    .followed_by("b")
    .where("kind = 2")
    .followed_by("c")
    .where("kind = 3")
    .within("5 minutes")
    .skip(Skip.past_last_event())
)

RELEVANT = (
    Pattern.begin("a")
    .where("phase = 0")
    .followed_by("b")
    .where("phase = 1")
    .followed_by("c")
    .where("phase = 2")
    .within("1 minute")
    .skip(Skip.past_last_event())
)

ACROSS = (
    Pattern.begin("a")
    .where("phase = 0")
    .followed_by("b")
    .where("phase = 1 AND price > a.price * 1.1")
    .followed_by("c")
    .where("phase = 2 AND price < avg(b.price)")
    .within("1 minute")
    .skip(Skip.past_last_event())
)

PATTERNS = {
    "strict": STRICT,
    "relaxed, 3 % of events relevant": SELECTIVE,
    "relaxed, all events relevant": RELEVANT,
    "across events": ACROSS,
}
