"""The example's patterns."""

from __future__ import annotations

from cepheid.lang.stages.pattern import Pattern, Skip

LATE_CHAIN = (
    Pattern.begin("late", name="late_chain")
    .where("arr_delay > 45")
    .next("legs")
    .where("dep_delay > 30")
    .one_or_more()
    .consecutive()
    .longest()
    .within("12 hours")
    .skip(Skip.past_last_event())
)
"""A flight that arrives late, followed directly by flights of the same aircraft that leave late."""

SAME_AIRPORT_CHAIN = LATE_CHAIN.where("origin = late.origin").named("same_airport_chain")
"""The same pattern with a condition across events: every leg leaves from the same airport as the late flight."""
