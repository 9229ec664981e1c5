"""Runs the tests of the Spark hosts with the oldest and with the newest supported versions: `make versions`.

Each of the two has its own environment. If the machine lacks its Python, a message says so, and its tests are not run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]

ENDS = (
    # The oldest: the first Spark whose Python API has all that the stream host calls.
    ("python3.11", ("pyspark==4.1.0", "pyarrow==19.0.1", "pandas==2.2.3")),
    ("python3.13", ("pyspark==4.3.0",)),
)
TESTS = ("tests/hosts/test_spark_batch.py", "tests/hosts/test_spark_batch_errors.py", "tests/stream")
TOOLS = ("pytest>=9,<10", "pytest-timeout>=2.4,<2.5", "hypothesis>=6.100,<7", "polars>=1,<3")

# Older packages leave sockets open, which causes warnings.
OF_OTHERS = ("-W", "ignore::ResourceWarning", "-W", "ignore::pytest.PytestUnraisableExceptionWarning")


def main() -> int:
    """The number of the two that failed or could not be tested."""
    return sum(not passes(python, packages) for python, packages in ENDS)


def passes(python: str, packages: tuple[str, ...]) -> bool:
    what = f"{python} with {', '.join(packages)}"
    if not runs(python):
        print(f"NOT TESTED: {what}: there is no {python} on the path")
        return False
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "venv"
        subprocess.run([python, "-m", "venv", environment], check=True)
        interpreter = str(environment / "bin" / "python")
        pip = [interpreter, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        subprocess.run([*pip, "--editable", f"{ROOT}[spark]", *packages, *TOOLS], check=True)
        done = subprocess.run(
            [interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", *OF_OTHERS, *TESTS],
            cwd=ROOT,
            env={**os.environ, "CI": "1"},
            check=False,
        )
    print(f"{'passed' if done.returncode == 0 else 'FAILED'}: {what}")
    return done.returncode == 0


def runs(python: str) -> bool:
    """Whether this Python exists and runs. The shim of a version that is not selected exists, but fails."""
    if shutil.which(python) is None:
        return False
    return subprocess.run([python, "--version"], capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
