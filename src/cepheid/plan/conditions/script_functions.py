"""The operators and functions that a condition may apply to values of several events."""

from __future__ import annotations

from cepheid.plan.conditions.texts import TEXT_FUNCTIONS

_OPERATORS = """and or not = <=> != < <= > >= + - * / div % negate positive abs is_null is_not_null between in
    case case_of cast coalesce nvl ifnull nvl2 nullif if least greatest"""
_FUNCTIONS = """sqrt exp ln log log10 log2 power pow floor ceil ceiling round sign signum
    datediff date_diff timestampdiff"""
OPERATORS = frozenset(_OPERATORS.split())
"""What a script computes in place of the SQL engine also for one event, where the engine's computation could fail."""
COMPILED_FUNCTIONS = (*_OPERATORS.split(), *_FUNCTIONS.split())
"""Those that the compiled kernels know. Patterns of occurrences and of intervals have no others."""
SCRIPT_FUNCTIONS = (*COMPILED_FUNCTIONS, *TEXT_FUNCTIONS)
