"""Compares Cepheid with FlinkCEP: `python tests/conformance/run.py [--host HOST] FILE.jsonl …`, in process, on Spark
as batch or stream, or in a durable host. A file may also have cases of the event algebra, of interval patterns and
events out of order, for which only the final matches are compared on Spark, or of durable hosts.

Prints each failure, and ends with the line `N passed, M failed`; the exit code is 1 if any failed.
"""
# ruff: noqa: T201 - printing is what it does

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))  # a script imports only from its own folder

from tests.conformance.algebra_case import answer
from tests.conformance.algebra_check import algebra_failure, check_all_algebra, is_algebra, read_algebra
from tests.conformance.case import Case, read_cases
from tests.conformance.check import (
    HOSTS,
    Failed,
    Host,
    NotSupported,
    Passed,
    Result,
    check_all,
    spark_batch,
    spark_stream,
)
from tests.conformance.durable import STORES, DurableHost
from tests.conformance.hosts_check import check_all_hosts, is_hosts
from tests.conformance.interval_check import (
    check_all_intervals,
    interval_failure,
    is_intervals,
    read_intervals,
)
from tests.conformance.semantic_check import check_all_semantic, is_semantic, semantic_failure
from tests.conformance.shown import expected_text, items_text, pattern_text
from tests.conformance.tree_streams import Where


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns the exit code."""
    parser = argparse.ArgumentParser(description="Compare Cepheid's answers with FlinkCEP's.")
    parser.add_argument("--host", choices=list(HOSTS), default="in_process")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.jsonl")
    options = parser.parse_args(arguments)
    split: list[Exception] = []
    passed, failed, gaps = run(options.files, options.host, split)
    if split:
        print(split_text(split))
    if gaps:
        features = ", ".join(f"{feature} {count}" for feature, count in gaps.most_common())
        print(f"{gaps.total()} cases use what is not there yet: {features}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def run(files: Sequence[Path], host: str, split: list[Exception]) -> tuple[int, int, Counter[str]]:
    """The numbers of passed and failed cases, and of cases that need each missing feature; failures are printed at
    once. `split` as in `checked_in_groups`.
    """
    passed, failed, gaps = 0, 0, Counter[str]()
    for result, text in (checked for file in files for checked in _checked(file, host, split)):
        match result:
            case Passed():
                passed += 1
            case NotSupported(feature):
                gaps[feature] += 1
            case Failed():
                failed += 1
                print(text)
    return passed, failed, gaps


def _checked(file: Path, name: str, split: list[Exception]) -> Iterator[tuple[Result, str]]:
    """The result of each case, and the text to print if it failed."""
    host = HOSTS[name]
    if is_hosts(file):
        for one, result in check_all_hosts(file, name):
            yield result, f"FAILED {one['name']}\n{result.got}" if isinstance(result, Failed) else ""
        return
    if is_intervals(file):
        for fact, result in check_all_intervals(read_intervals(file), _where(host), split):
            yield result, interval_failure(fact, result.got) if isinstance(result, Failed) else ""
        return
    if is_semantic(file):
        about = DurableHost(name).meanings if name in STORES else None
        for fact, result in check_all_semantic(read_algebra(file), _where(host), about):
            yield result, semantic_failure(fact, result.got) if isinstance(result, Failed) else ""
        return
    if is_algebra(file):
        ask = DurableHost(name).occurrences if name in STORES else answer
        for algebra, result in check_all_algebra(read_algebra(file), _where(host), split, ask):
            yield result, algebra_failure(algebra, result.got) if isinstance(result, Failed) else ""
        return
    for case, result in check_all(read_cases(file), host, split):
        yield result, failure_text(case, result.got) if isinstance(result, Failed) else ""


def _where(host: Host) -> Where:
    if host is spark_batch:
        return "spark"
    return "stream" if host is spark_stream else "process"


def split_text(split: Sequence[Exception]) -> str:
    first = split[0]
    return f"{len(split)} groups were asked case by case, the first because of {type(first).__name__}: {first}"


def failure_text(case: Case, got: str) -> str:
    lines = {
        "pattern": pattern_text(case.pattern),
        "events": items_text(case),
        "expected": expected_text(case.expected),
        "got": got.replace("\n", "\n            "),
    }
    return "\n".join([f"FAILED {case.name}", *(f"  {what + ':':<9} {text}" for what, text in lines.items()), ""])


if __name__ == "__main__":
    sys.exit(main())
