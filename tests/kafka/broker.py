"""A real Kafka broker in a process of its own: KRaft, with all its data in one folder."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cepheid.hosts.spark.java import find_java_home
from cepheid.hosts.spark.kafka import JARS

MOST_SECONDS = 60
SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/logs
num.partitions=2
offsets.topic.replication.factor=1
"""


@contextmanager
def running_broker(folder: Path) -> Iterator[str]:
    """The address of a broker, once it answers. Topics are created at the first write, with two partitions."""
    port, controller = free_ports()
    settings = folder / "server.properties"
    settings.write_text(SETTINGS.format(port=port, controller=controller, folder=folder))
    output = folder / "told"
    with output.open("wb") as log:
        cluster = ["-t", "cepheid-tests-of-kafka", "-c", str(settings)]
        formatted = subprocess.run(
            java("kafka.tools.StorageTool", "format", *cluster), stdout=log, stderr=log, check=False
        )
        assert formatted.returncode == 0, output.read_text()
        process = subprocess.Popen(java("kafka.Kafka", str(settings)), stdout=log, stderr=log)
    try:
        wait_for(process, port, output)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def java(*arguments: str) -> list[str]:
    """Options of Java: a small heap and quick compilation, since the broker of a test has little to do."""
    home = find_java_home()
    options = [
        "-Xmx256m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    ]
    return [str(home / "bin" / "java") if home else "java", *options, "-cp", f"{JARS / 'broker'}/*", *arguments]


def free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


def wait_for(process: subprocess.Popen[bytes], port: int, output: Path) -> None:
    """Waits until the broker accepts connections, which it does when it has a controller."""
    end = time.monotonic() + MOST_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert process.poll() is None, output.read_text()
            assert time.monotonic() < end, output.read_text()
            time.sleep(0.1)
        else:
            return
