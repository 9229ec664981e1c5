"""How a control thread divides the events of a hot original: weights, and the next destination.

Each of N control threads sends the original one part, a copy of its own N parts, and a copy that m control threads have
in their lists N/m parts. So all threads carry the same load when all control threads have the same load.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import lcm
from typing import TypeAlias

from cepheid.distribution.lists import Listed

Weights: TypeAlias = Mapping[str, Fraction] | Mapping[str, int]
"""For each destination the parts that it gets."""


def weights(original: str, copies: Iterable[Listed], controls: int) -> dict[str, Fraction]:
    """The parts for the original and for these copies, where there are `controls` control threads."""
    return {original: Fraction(1), **{copy.id: Fraction(controls, copy.held_by) for copy in copies}}


def fractions(parts: Weights) -> dict[str, Fraction]:
    """The share of the events that each destination gets."""
    whole = Fraction(sum(parts.values()))
    return {destination: part / whole for destination, part in parts.items()}


def carried(senders: Iterable[tuple[Fraction, Weights]]) -> dict[str, Fraction]:
    """What each thread carries, where each sender divides its load by its weights."""
    loads: dict[str, Fraction] = {}
    for load, parts in senders:
        for destination, share in fractions(parts).items():
            loads[destination] = loads.get(destination, Fraction(0)) + load * share
    return loads


def whole_parts(parts: Weights) -> dict[str, int]:
    """The same weights as the least whole numbers."""
    scale = lcm(*(part.denominator for part in parts.values()))
    return {destination: int(part * scale) for destination, part in parts.items()}


def dealt(credit: Mapping[str, int], parts: Mapping[str, int]) -> tuple[str, dict[str, int]]:
    """The destination of the next event, and the credit of each destination after it.

    This is smooth weighted round-robin: of as many events in a row as there are parts, each destination gets exactly
    its parts. Without credit it begins anew.
    """
    raised = {destination: credit.get(destination, 0) + part for destination, part in parts.items()}
    chosen = max(raised, key=lambda destination: raised[destination])
    raised[chosen] -= sum(parts.values())
    return chosen, raised
