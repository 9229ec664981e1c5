"""The digest of a layout never changes by itself, and changes where numbers in a state would have another meaning."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from cepheid.compile.stages.compiled import compile_plan
from cepheid.compile.stages.digest import layout_digest
from cepheid.events.batch import Schema
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.stages.build import build_plan

COLUMNS = pa.schema([("t", pa.timestamp("us")), ("x", pa.int64()), ("y", pa.int64())])
RISING = Pattern.begin("a").where("x > 1").followed_by("b").where("x > sum(b.x)").one_or_more().within("1 hour")


def digest_of(pattern: Pattern, **options: Any) -> str:
    plan = build_plan(pattern, Schema(COLUMNS, (), "t"), DuckDbEngine(time_zone="UTC"), **options)
    return layout_digest(compile_plan(plan))


def test_stored_digests() -> None:
    """Snapshots contain digests, so those of existing patterns change only with the compiled layout."""
    assert digest_of(Pattern.begin("a")) == "9031756ab9f22287c6d50af3a47576dd"
    assert digest_of(RISING) == "7471b5432018023d7ac9dc4d5db0d51a"


def test_what_counts() -> None:
    """States, stages, slots and columns change the digest."""
    others = [
        digest_of(RISING.optional()),
        digest_of(RISING.where("x > sum(a.y)")),
        digest_of(RISING, measures={"n": "sum(b.y)"}),
        digest_of(RISING.next("c")),
    ]
    assert len({digest_of(RISING), *others}) == 5


def test_what_does_not_count() -> None:
    """The name, and measures of existing slots, do not change the digest."""
    assert digest_of(RISING.named("other"), measures={"n": "b.x + a.x"}) == digest_of(RISING)
