"""Run the tests of the Spark hosts at both ends of the supported versions: `make versions`.

Each end is an environment of its own; a Python that the machine has not is said and left out.
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
    # The oldest: the first Spark whose Python API has what the stream host calls.
    ("python3.11", ("pyspark==4.1.0", "pyarrow==19.0.1", "pandas==2.2.3")),
    ("python3.13", ("pyspark==4.3.0",)),
)
TESTS = ("tests/hosts/test_spark_batch.py", "tests/hosts/test_spark_batch_errors.py", "tests/stream")
TOOLS = ("pytest>=9,<10", "pytest-timeout>=2.4,<2.5", "hypothesis>=6.100,<7", "polars>=1,<3")

# Older packages leave sockets open and warn of themselves.
OF_OTHERS = ("-W", "ignore::ResourceWarning", "-W", "ignore::pytest.PytestUnraisableExceptionWarning")


def main() -> int:
    """The number of ends that failed or are not there."""
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
    """Whether it is there, and no shim that names versions which are not chosen."""
    if shutil.which(python) is None:
        return False
    return subprocess.run([python, "--version"], capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
