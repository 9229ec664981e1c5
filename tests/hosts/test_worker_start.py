"""What Spark's workers do before their tasks: where they find PySpark, and what they no longer collect."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from cepheid.hosts.spark.archives import without_archives
from cepheid.hosts.spark.collection import freeze_what_stays


def installed_in(folder: Path, *names: str) -> str:
    for name in names:
        (folder / name).mkdir(parents=True)
    return str(folder)


def archives_in(folder: Path) -> list[str]:
    """The archives that Spark names in the path of its workers."""
    return [str(folder / "pyspark" / "python" / "lib" / name) for name in ("pyspark.zip", "py4j-0.10.9.9-src.zip")]


def test_archives_of_an_installed_pyspark_are_left_out(tmp_path: Path) -> None:
    """The same modules are in the folder of the installed packages."""
    installed = installed_in(tmp_path, "pyspark", "py4j")
    assert without_archives([*archives_in(tmp_path), "", installed]) == ["", installed]


def test_archives_stay_without_their_folders(tmp_path: Path) -> None:
    """An archive stays if its folder is not on the path, or not installed; so do other archives."""
    installed = installed_in(tmp_path / "here", "pyspark")
    elsewhere, other = archives_in(tmp_path / "elsewhere"), str(tmp_path / "here" / "pyspark.zip")
    path = [*elsewhere, *archives_in(tmp_path / "here"), other, installed]
    assert without_archives(path) == [*elsewhere, archives_in(tmp_path / "here")[1], other, installed]


@pytest.fixture
def stayed() -> Iterator[list[list[int]]]:
    """What a task has left, after a collection, as in a worker between tasks."""
    gc.freeze()
    left: list[list[int]] = [[] for _ in range(20_000)]
    gc.collect()
    yield left
    gc.unfreeze()


def test_what_stays_after_a_task_is_excluded_from_collections(stayed: list[list[int]]) -> None:
    """When the next task begins, many objects have stayed."""
    before = gc.get_freeze_count()
    freeze_what_stays()
    assert gc.get_freeze_count() - before >= len(stayed)


@pytest.mark.usefixtures("stayed")
def test_a_few_objects_are_collected_as_ever() -> None:
    """Where little has stayed since the last time, nothing is excluded."""
    freeze_what_stays()
    before = gc.get_freeze_count()
    freeze_what_stays()
    assert gc.get_freeze_count() <= before
