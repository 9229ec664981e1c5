"""The messages of the benchmark against FlinkCEP on a machine that lacks a requirement."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import flinkcep_peer


def test_flinkcep_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the jars of FlinkCEP are missing, the message names the make target that installs them."""
    monkeypatch.setattr(flinkcep_peer, "JARS", tmp_path)
    message = f"there is no FlinkCEP 2.3 in {tmp_path}: run `make bench-flinkcep`, which installs it"
    with pytest.raises(flinkcep_peer.PeerMissing, match=f"^{message}$"):
        flinkcep_peer.compile_peer(tmp_path)


def test_there_is_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If javac is missing, the message names the package to install."""
    for name in ("flink-dist-2.3.0.jar", "flink-cep-2.3.0.jar"):
        (tmp_path / name).touch()
    monkeypatch.setattr(flinkcep_peer, "JARS", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    message = "^there is no javac here. On Debian: apt-get install openjdk-17-jdk-headless$"
    with pytest.raises(flinkcep_peer.PeerMissing, match=message):
        flinkcep_peer.compile_peer(tmp_path)
