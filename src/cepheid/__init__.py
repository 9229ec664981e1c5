"""Complex event processing for Python and Spark."""

from cepheid.detect import add_column, detect, explain, leaf_types, why
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
from cepheid.families.family import Explanation
from cepheid.hosts.spark.stream.copies.change import CopiesChange
from cepheid.hosts.spark.stream.load.advice import Advice
from cepheid.hosts.spark.stream.load.hot_keys import HotKey
from cepheid.hosts.spark.stream.load.shards import ShardProgress
from cepheid.hosts.spark.stream.progress import PatternProgress, Progress, prometheus_text
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
    "partial_matches",
    "pattern_from_text",
    "pattern_to_document",
    "pattern_to_yaml",
    "progress",
    "progress_listener",
    "prometheus_text",
    "read_pattern",
    "semantic",
    "split",
    "supervise",
    "why",
]
