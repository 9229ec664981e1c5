"""Runs the cases of durable hosts on a store, each on a new one: at once, and opened anew before each step."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.conformance.check import Failed, NotSupported, Passed, Result
from tests.conformance.durable import STORES, urls_until_exit
from tests.durable.cases import Case, read_cases, run_case


def is_hosts(path: Path) -> bool:
    """Whether the file has cases of durable hosts."""
    with path.open(encoding="utf-8") as lines:
        return "columns" in json.loads(next(lines, "{}"))


def check_all_hosts(path: Path, host: str) -> Iterator[tuple[Case, Result]]:
    """Each case and its result."""
    for case in read_cases(path):
        yield case, _check(case, host) if host in STORES else NotSupported("a durable host")


def _check(case: Case, host: str) -> Result:
    urls = urls_until_exit(host)
    try:
        faults = [*run_case(case, next(urls)), *_marked(run_case(case, next(urls), restarts=True))]
    except Exception as error:  # noqa: BLE001 - a crash is a failure of the case, and the run continues
        faults = [f"{type(error).__name__}: {error}"]
    return Failed("\n".join(faults)) if faults else Passed()


def _marked(faults: Iterable[str]) -> list[str]:
    return [f"opened anew: {fault}" for fault in faults]
