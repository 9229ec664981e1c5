"""Fixtures and settings for all tests: one Spark session for the whole run, and the number of Hypothesis examples."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from tests.kafka.broker import running_broker

from cepheid.hosts.spark.kafka import connector_jars, with_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.scheduler import LoadFileScheduling

TESTS = Path(__file__).parent
ON_FILE_SYSTEM = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
"""Writes checkpoints without looking for links. Without Hadoop's native library, Spark's default starts on a local disk
fifty processes `readlink` in each micro-batch: a fifth of its processor time. The scripts that tests kill, and other
processes that tests start, use the default.
"""
ON_KAFKA = ("tests/docs/test_docs.py", "tests/cli/test_stream.py")
"""Files outside tests/kafka that use `broker`."""

# A deadline would fail a test because the machine is busy: the kernel compiles and Spark starts within examples.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Derandomized, so that a change never fails because of an earlier one. The examples are the same each time, so that
# few will do; new ones are found on your machine.
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, max_examples=25)
# For `make quick`: all tests, with new random examples in each run, and fewer of them.
settings.register_profile("quick", settings.get_profile("dev"), max_examples=40)
# For `make conformance`: thousands of examples, new random ones in each run.
settings.register_profile("long", settings.get_profile("dev"), max_examples=3000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run files with slow tests first, then the others on Spark: at the end of the run, a long file would run alone."""
    slow, on_spark = ({item.path for item in items if item.get_closest_marker(mark)} for mark in ("slow", "spark"))
    items.sort(key=lambda item: (item.path not in slow, item.path not in on_spark))


def pytest_collection_finish() -> None:
    """Exempt the tests themselves, two thirds of a million objects, from all later collections of garbage."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    """Each test process gets whole files. One gets all files that need Kafka's broker, as to start a second one would
    take twenty seconds of processor time, and one all files that read the demo's flights, which takes ten.
    """
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            if file in ON_KAFKA or file.startswith("tests/kafka/"):
                return "kafka"
            return "flights" if file.startswith("tests/demo/") else file

    return Scheduling(config, log)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One real local session for the run: starting one costs seconds, and tests do not change its settings."""
    from cepheid.hosts.spark.session import local_session

    # The workers import functions of test modules by name.
    paths = [str(TESTS.parent), str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    # Workers wait so many seconds for Spark to accept them. Its default, 15, is too few on a busy machine.
    os.environ.setdefault("SPARK_AUTH_SOCKET_TIMEOUT", "120")
    # Several test processes run at once, each with its own session, and inputs are small.
    settings = {
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.checkpointFileManagerClass": ON_FILE_SYSTEM,
        # Checksums of checkpoints take less than a tenth of the processor time of a micro-batch.
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
        **with_jars(connector_jars()),
    }
    session = local_session("cepheid tests", time_zone="UTC", settings=settings)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real Kafka broker, one for the whole run; `spark` has the connector."""
    if not connector_jars():
        pytest.skip("the jars of Kafka are missing: NOTHING IS TESTED AGAINST A REAL KAFKA. `make kafka` copies them")
    with running_broker(tmp_path_factory.mktemp("kafka")) as address:
        yield address
