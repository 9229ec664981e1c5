"""The processes that work for this one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cepheid.hosts.durable.workers.process import WorkerProcess
from cepheid.hosts.in_process.workers.messages import Forget
from cepheid.hosts.in_process.workers.pool import PooledWorker


def test_modules_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the current folder with the name of a module is not imported in its place, if it is not here either."""
    for name in ("queue.py", "pyarrow.py"):
        (tmp_path / name).write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    host, worker = WorkerProcess(), PooledWorker()
    assert host.ask("forget_all") is None
    assert worker.ask(Forget()) is None
    host.close()
    worker.end()
