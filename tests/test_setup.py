"""The messages of set-up and `make kafka` on a machine that lacks a requirement."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[1] / "scripts" / "setup.sh"
KAFKA_JARS = SETUP.with_name("kafka_jars.sh")
UNTIL_THEN = (
    "       Until then the tests against a real Kafka are skipped, and cepheid stream needs --jars for kafka://\n"
)


@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        (
            "raise SystemExit('version_info' in code)",
            "setup: Cepheid needs Python 3.11 or newer, {python} is",
        ),
        (
            "raise SystemExit('ensurepip' in code)",
            "setup: this Python cannot make virtual environments. On Debian: apt-get install python3-venv\n",
        ),
    ],
    ids=["old python", "no venv"],
)
def test_missing_requirements_are_reported(lacking: str, said: str, tmp_path: Path) -> None:
    """For an old Python and for a missing python3-venv, the message says what to do, before any file is created."""
    python = tmp_path / "python"
    python.write_text(f"#!{sys.executable}\nimport sys\ncode = sys.argv[-1]\n{lacking}\n")
    python.chmod(0o755)
    script = tmp_path / "scripts" / "setup.sh"
    script.parent.mkdir()
    shutil.copy(SETUP, script)
    answer = subprocess.run([script, python], capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert answer.stderr.startswith(said.format(python=python))
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize(
    ("mvn", "said"),
    [
        (
            None,
            f"kafka: there is no mvn, which copies the jars of Kafka. On Debian: apt-get install maven\n{UNTIL_THEN}",
        ),
        (
            "echo told by mvn >&2; exit 1",
            f"told by mvn\nkafka: Maven could not get the connector's jars, for the reason above\n{UNTIL_THEN}",
        ),
    ],
    ids=["no mvn", "mvn fails"],
)
def test_no_jars_of_kafka(mvn: str | None, said: str, tmp_path: Path) -> None:
    """A missing mvn and a failing one are reported, and no incomplete folder remains."""
    script = tmp_path / "scripts" / "kafka_jars.sh"
    script.parent.mkdir()
    shutil.copy(KAFKA_JARS, script)
    path = tmp_path / "bin"
    path.mkdir()
    for name in ("bash", "dirname", "rm"):
        (path / name).symlink_to(str(shutil.which(name)))
    if mvn is not None:
        (path / "mvn").write_text(f"#!/bin/sh\n{mvn}\n")
        (path / "mvn").chmod(0o755)
    answer = subprocess.run([script, "jars"], env={"PATH": str(path)}, capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (1, said)
    assert not (tmp_path / "jars").exists()
