"""What set-up says on a machine that lacks something."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[1] / "scripts" / "setup.sh"


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
def test_what_is_missing_is_said(lacking: str, said: str, tmp_path: Path) -> None:
    """An old Python and a missing python3-venv are said with what to do, before anything is made."""
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
