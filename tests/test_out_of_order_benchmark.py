"""The benchmark of intervals out of order, on a small stream."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(name="benchmark")
def loaded_benchmark(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The benchmark module; benchmarks import each other as scripts in one folder do."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(BENCHMARKS)
    import out_of_order

    yield out_of_order
    for name in set(sys.modules) - before:
        if (BENCHMARKS / f"{name}.py").exists():
            del sys.modules[name]


def test_experiments(
    benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Our engine is exact for every share of late events, simpler engines are not if events have a duration;
    measurements, tables with their spread and a chart are written.
    """
    monkeypatch.setattr(benchmark, "SHARES", (0.0, 0.45))
    monkeypatch.setattr(benchmark, "SLACKS", (benchmark.SECOND,))
    monkeypatch.setattr(benchmark, "LENGTHS", (4,))
    monkeypatch.setattr(benchmark, "BUFFERS", (0, 20))
    benchmark.main(["--events", "3000", "--seeds", "1", "--out", str(tmp_path)])
    assert "### Fig. 11: matches found, %" in capsys.readouterr().out
    assert (tmp_path / "out_of_order.png").stat().st_size > 0
    with (tmp_path / "out_of_order.csv").open() as file:
        read = list(csv.DictReader(file))
    rows = {(row["experiment"], row["out_of_order"][:3], row["engine"]): row for row in read}
    assert len(read) == 4 * 8
    found = {int(row["buffer"]): row["recall"] for row in read if row["engine"] == "conservative"}
    assert float(found[0]) < 0.5
    assert found[20] == "1.0"

    def exact(experiment: str, share: str, engine: str) -> bool:
        row = rows[experiment, share, engine]
        return row["precision"] == row["recall"] == "1.0"

    for share in {share for _, share, _ in rows if share != "0.2"}:
        for experiment in ("durations", "instants"):
            assert exact(experiment, share, "real time")
            assert exact(experiment, share, "conservative")
            assert exact(experiment, share, "K-slack on points") is (experiment == "instants")
        assert exact("instants", share, "in order only") is (share == "0.0")


def test_wrong_matches_are_noticed(benchmark: ModuleType) -> None:
    """An answer with a missing match fails the benchmark."""
    stream = benchmark.make_stream(2000, 0.2, durations=True)
    query = benchmark.Query(3, durations=True)
    expected = benchmark.truth(stream, query)
    found: Any = benchmark.answer("conservative", stream, query, benchmark.LATEST)
    benchmark.check(found, stream, query, benchmark.LATEST, expected)
    lacking = found._replace(rows=found.rows.only(np.arange(len(expected)) > 0))
    with pytest.raises(AssertionError, match="not the matches of the events in order"):
        benchmark.check(lacking, stream, query, benchmark.LATEST, expected)
