"""Complex event processing for Python and Spark.

The functions that find patterns are imported here, and so are the errors. Every other public name is imported at its
first use (`__getattr__`), as a program needs only some of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cepheid.detect import add_column, detect, explain, leaf_types, match_events, why
from cepheid.errors import (
    CepheidWarning,
    ConditionError,
    EventError,
    KnowledgeError,
    LimitExceeded,
    MatcherFailed,
    PatternError,
    Problem,
    SchemaError,
    SkipError,
    SnapshotError,
    WorkerFailed,
)

if TYPE_CHECKING:
    from cepheid.families.family import Explanation
    from cepheid.hosts.spark.stream.copies.change import CopiesChange
    from cepheid.hosts.spark.stream.load.advice import Advice
    from cepheid.hosts.spark.stream.load.hot_keys import HotKey
    from cepheid.hosts.spark.stream.load.shards import ShardProgress
    from cepheid.hosts.spark.stream.progress import PatternProgress, Progress, prometheus_text
    from cepheid.hosts.spark.stream.standing import Standing
    from cepheid.hosts.spark.supervised.news import Refusal, Switch
    from cepheid.intervals import IntervalMatcher
    from cepheid.lang.documents import pattern_from_text, pattern_to_document, pattern_to_yaml, read_pattern
    from cepheid.lang.intervals.pattern import IntervalPattern
    from cepheid.lang.occurrences.expression import Occurrence, event
    from cepheid.lang.occurrences.pattern import OccurrencePattern, Policy
    from cepheid.lang.semantic import semantic
    from cepheid.lang.stages.pattern import Pattern, Skip
    from cepheid.matcher import Matcher
    from cepheid.matchers.counts import EventCounts, MatcherCounts
    from cepheid.plan.limits import Limits
    from cepheid.plotting.picture import Picture
    from cepheid.plotting.plot import plot
    from cepheid.requests.arrival import ARRIVAL
    from cepheid.requests.report import Report
    from cepheid.requests.row_order import ROW_ORDER
    from cepheid.streams import (
        Subscriber,
        copy_hot_keys,
        deliver,
        partial_matches,
        progress,
        progress_listener,
        split,
        supervise,
    )

__all__ = [
    "ARRIVAL",
    "ROW_ORDER",
    "Advice",
    "CepheidWarning",
    "ConditionError",
    "CopiesChange",
    "EventCounts",
    "EventError",
    "Explanation",
    "HotKey",
    "IntervalMatcher",
    "IntervalPattern",
    "KnowledgeError",
    "LimitExceeded",
    "Limits",
    "Matcher",
    "MatcherCounts",
    "MatcherFailed",
    "Occurrence",
    "OccurrencePattern",
    "Pattern",
    "PatternError",
    "PatternProgress",
    "Picture",
    "Policy",
    "Problem",
    "Progress",
    "Refusal",
    "Report",
    "SchemaError",
    "ShardProgress",
    "Skip",
    "SkipError",
    "SnapshotError",
    "Standing",
    "Subscriber",
    "Switch",
    "WorkerFailed",
    "add_column",
    "copy_hot_keys",
    "deliver",
    "detect",
    "event",
    "explain",
    "leaf_types",
    "match_events",
    "partial_matches",
    "pattern_from_text",
    "pattern_to_document",
    "pattern_to_yaml",
    "plot",
    "progress",
    "progress_listener",
    "prometheus_text",
    "read_pattern",
    "semantic",
    "split",
    "supervise",
    "why",
]

_MODULES = {
    "Advice": "cepheid.hosts.spark.stream.load.advice",
    "CopiesChange": "cepheid.hosts.spark.stream.copies.change",
    "EventCounts": "cepheid.matchers.counts",
    "Explanation": "cepheid.families.family",
    "HotKey": "cepheid.hosts.spark.stream.load.hot_keys",
    "IntervalMatcher": "cepheid.intervals",
    "IntervalPattern": "cepheid.lang.intervals.pattern",
    "Limits": "cepheid.plan.limits",
    "Matcher": "cepheid.matcher",
    "MatcherCounts": "cepheid.matchers.counts",
    "Occurrence": "cepheid.lang.occurrences.expression",
    "OccurrencePattern": "cepheid.lang.occurrences.pattern",
    "Pattern": "cepheid.lang.stages.pattern",
    "PatternProgress": "cepheid.hosts.spark.stream.progress",
    "Picture": "cepheid.plotting.picture",
    "Policy": "cepheid.lang.occurrences.pattern",
    "Progress": "cepheid.hosts.spark.stream.progress",
    "ARRIVAL": "cepheid.requests.arrival",
    "ROW_ORDER": "cepheid.requests.row_order",
    "Refusal": "cepheid.hosts.spark.supervised.news",
    "Report": "cepheid.requests.report",
    "ShardProgress": "cepheid.hosts.spark.stream.load.shards",
    "Skip": "cepheid.lang.stages.pattern",
    "Standing": "cepheid.hosts.spark.stream.standing",
    "Subscriber": "cepheid.streams",
    "Switch": "cepheid.hosts.spark.supervised.news",
    "copy_hot_keys": "cepheid.streams",
    "deliver": "cepheid.streams",
    "event": "cepheid.lang.occurrences.expression",
    "partial_matches": "cepheid.streams",
    "pattern_from_text": "cepheid.lang.documents",
    "pattern_to_document": "cepheid.lang.documents",
    "pattern_to_yaml": "cepheid.lang.documents",
    "plot": "cepheid.plotting.plot",
    "progress": "cepheid.streams",
    "progress_listener": "cepheid.streams",
    "prometheus_text": "cepheid.hosts.spark.stream.progress",
    "read_pattern": "cepheid.lang.documents",
    "semantic": "cepheid.lang.semantic",
    "split": "cepheid.streams",
    "supervise": "cepheid.streams",
}
"""Public name → the module that has it, for names that are imported at their first use. None may be the name of a
module, such as `detect`: whoever imports that module would find it in place of the function.
"""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
