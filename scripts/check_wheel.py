"""Builds the wheel, installs it without extras in a new environment, and tries it there without Spark and Java."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]

TRIAL = """
import importlib.util, sys
import cepheid
heavy = {"pyspark", "numba", "llvmlite", "pandas"} & set(sys.modules)
assert not heavy, f"import cepheid loads {sorted(heavy)}"
assert importlib.util.find_spec("pyspark") is None, "the core depends on pyspark"
from importlib.resources import files
missing = [name for name in NAMES if not files("cepheid").joinpath(name).is_file()]
assert not missing, f"the wheel lacks {missing}"
"""
SHIPPED = [
    "py.typed",
    "hosts/spark/log4j2.properties",
    "knowledge/services.ttl",
    "lang/stages/schema.json",
    "lang/occurrences/schema.json",
    "lang/intervals/schema.json",
]
"""Files other than Python modules, which a build could leave out."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        wheel = build_wheel(work)
        print(f"{wheel.name}: {wheel.stat().st_size / 1024:.0f} KB")
        venv.create(work / "venv", with_pip=True)
        python = work / "venv" / "bin" / "python"
        # With the pinned versions; the core needs only some of these packages.
        run(python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "requirements.txt", wheel)
        # An empty path, so that no Java is found.
        run(python, "-c", f"NAMES = {SHIPPED!r}\n{TRIAL}", env={"PATH": "/nowhere"})
        run(work / "venv" / "bin" / "cepheid", "--help", env={"PATH": "/nowhere"})
        print(f"import cepheid: {import_seconds(python):.2f} s")


def build_wheel(folder: Path) -> Path:
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, ROOT)
    return next(folder.glob("cepheid-*.whl"))


def import_seconds(python: Path) -> float:
    """The fastest of five imports, less the time of an empty program."""
    return min(seconds(python, "import cepheid") for _ in range(5)) - min(seconds(python, "pass") for _ in range(5))


def seconds(python: Path, program: str) -> float:
    start = time.perf_counter()
    run(python, "-c", program)
    return time.perf_counter() - start


def run(*command: str | Path, env: dict[str, str] | None = None) -> None:
    """Runs a command. If it fails, this program prints the command's output and ends."""
    # In the root folder, so that Python imports cepheid from the wheel and not from the current folder.
    answer = subprocess.run(
        command, cwd="/", env={**os.environ, **(env or {})}, text=True, capture_output=True, check=False
    )
    if answer.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{answer.stdout}{answer.stderr}")


if __name__ == "__main__":
    main()
