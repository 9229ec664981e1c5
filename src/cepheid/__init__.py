"""Complex event processing for Python and Spark."""

from cepheid.detect import detect
from cepheid.errors import (
    CepheidWarning,
    ConditionError,
    EventError,
    LimitExceeded,
    PatternError,
    Problem,
    SchemaError,
    SkipError,
)
from cepheid.hosts.request import EventCounts, Report
from cepheid.lang.document import pattern_from_text, pattern_to_document, pattern_to_yaml, read_pattern
from cepheid.lang.pattern import Pattern, Skip

__all__ = [
    "CepheidWarning",
    "ConditionError",
    "EventCounts",
    "EventError",
    "LimitExceeded",
    "Pattern",
    "PatternError",
    "Problem",
    "Report",
    "SchemaError",
    "Skip",
    "SkipError",
    "detect",
    "pattern_from_text",
    "pattern_to_document",
    "pattern_to_yaml",
    "read_pattern",
]
