"""The bits of the events in occurrences."""

from __future__ import annotations

from collections.abc import Iterator

from cepheid.plan.needed import NeededBit
from cepheid.plan.occurrences.constants import Kind
from cepheid.plan.occurrences.plan import OccurrencePlan


def needed_bits(plan: OccurrencePlan) -> Iterator[NeededBit]:
    """One for each type that a leaf asks for, without leaves that are forbidden: these may well find no event."""
    for number in sorted({*_taken(plan, plan.root)}):
        yield NeededBit(None, number)


def _taken(plan: OccurrencePlan, row: int) -> Iterator[int]:
    operator = plan.operators[row]
    if operator.kind is Kind.LEAF and operator.number >= 0:
        yield operator.number
    for operand in operator.operands[: 1 if operator.kind is Kind.WITHOUT else 2]:
        yield from _taken(plan, operand)
