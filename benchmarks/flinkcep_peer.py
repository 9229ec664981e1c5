"""FlinkCEP for the benchmarks: compiles the Java program in flinkcep/ and calls it."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa

ROOT = Path(__file__).parent.parent
JARS = ROOT / ".venv" / "flinkcep" / "pyflink" / "lib"
SOURCES = Path(__file__).parent / "flinkcep"
# Flink reads fields of Java's own classes, which Java 17 allows only with these options.
JAVA_OPTIONS = [
    "-Xmx4g",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "-Dlog4j2.level=ERROR",
]
ONE_THREAD = "-XX:+UseSerialGC"  # of all collectors, the one with which the loop was fastest


class PeerMissing(Exception):
    """FlinkCEP cannot run here; the message says what to do."""


@dataclass(frozen=True)
class Measured:
    events: int
    matches: int
    seconds: float


def write_events(events: pa.Table, path: Path) -> None:
    """Writes events in the format that flinkcep/EventFile.java reads."""
    with path.open("wb") as file:
        file.write(np.int64(len(events)).tobytes())
        file.write(events.column("at").cast(pa.int64()).to_numpy().tobytes())
        for name in ("price", "key", "kind", "v"):
            file.write(events.column(name).to_numpy().tobytes())


def class_path() -> str:
    jars = [next(JARS.glob(f"{name}-2.3.*.jar"), None) for name in ("flink-dist", "flink-cep")]
    if None in jars:
        raise PeerMissing(f"there is no FlinkCEP 2.3 in {JARS}: run `make bench-flinkcep`, which installs it")
    return ":".join(map(str, [*jars, *sorted(JARS.glob("log4j-*.jar"))]))


def compile_peer(classes: Path) -> str:
    """Compiles the program into `classes`, and returns the class path with which to run it."""
    path = class_path()
    if not (shutil.which("javac") and shutil.which("java")):
        raise PeerMissing("there is no javac here. On Debian: apt-get install openjdk-17-jdk-headless")
    sources = sorted(map(str, SOURCES.glob("*.java")))
    subprocess.run(["javac", "--release", "17", "-nowarn", "-cp", path, "-d", str(classes), *sources], check=True)
    return f"{classes}:{path}"


class Peer:
    """Runs a workload in a separate Java process. `kind` is "loop" (the NFA alone on one thread) or "job" (all of
    Flink).
    """

    def __init__(self, path: str, kind: str, events: Path, workload: str) -> None:
        options = [*JAVA_OPTIONS, ONE_THREAD] if kind == "loop" else JAVA_OPTIONS
        command = ["java", *options, "-cp", path, "Peer", kind, str(events), workload]
        self._java = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, events: int, *, seconds: float = 1e6) -> Measured:
        """The results for the first `events` events, or for as many as the loop processes in `seconds`. A job always
        processes all of them.
        """
        assert self._java.stdin is not None
        assert self._java.stdout is not None
        self._java.stdin.write(f"{events} {seconds}\n")
        self._java.stdin.flush()
        answer = self._java.stdout.readline().split()
        if len(answer) != 3:
            raise RuntimeError(f"FlinkCEP ended: {' '.join(answer)} (its reason is above)")
        return Measured(int(answer[0]), int(answer[1]), float(answer[2]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._java.kill()
        self._java.wait()
