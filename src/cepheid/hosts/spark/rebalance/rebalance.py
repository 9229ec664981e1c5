"""Rebalances the checkpoint of a stopped streaming query: other numbers of shards and partitions, nothing else."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from cepheid.errors import SnapshotError
from cepheid.hosts.spark.lift import checked, named
from cepheid.hosts.spark.rebalance.parts import KEY, LEDGER, PART, ROW, VALUE, parts_of
from cepheid.hosts.spark.rebalance.plan import Rebalancing, ShardsChange, Work, folder_of, planned
from cepheid.hosts.spark.rebalance.worker import NAME, Division, Renumbering
from cepheid.hosts.spark.rebalance.writer import write_state
from cepheid.hosts.spark.shipping import mapped
from cepheid.hosts.spark.stream.checkpoint_reader import matching_of, request_of_stored
from cepheid.hosts.spark.stream.ledger import SHARD, ledger_bytes, ledger_shard, packed_asked
from cepheid.hosts.spark.stream.stored_state import CheckpointedPattern, active_session, own_heads
from cepheid.kernel.arrays import NO_TIME
from cepheid.lang.documents import AnyPattern
from cepheid.requests.request import ERROR

_WORKER = "cepheid.hosts.spark.rebalance.worker"


def rebalanced(
    checkpoint: str,
    shards: int | None,
    partitions: int | None,
    patterns: Mapping[str, AnyPattern],
    *,
    dry_run: bool,
) -> Rebalancing:
    """Rebalances the checkpoint, or says what that would do; then it changes nothing at all.

    Raises:
        SchemaError, SnapshotError: as `planned`; nothing has changed.
        PySparkException: the state cannot be read or divided; nothing has changed but that an empty micro-batch is
            planned.
    """
    folder = folder_of(checkpoint)
    if dry_run:
        folder.check_in_place()
        return planned(checkpoint, shards, partitions, patterns).plan
    with folder.alone():
        folder.finish()
        work = planned(checkpoint, shards, partitions, patterns)
        _carry_out(work)
    return work.plan


def _carry_out(work: Work) -> None:
    plan, folder, spark = work.plan, work.folder, active_session()
    last = folder.batch(plan.batch)
    empty = folder.plan_nothing(last)
    try:
        folder.copy_all_but_state(last, empty, plan.partitions)
        written = _write_states(spark, work, last.metadata["conf"])
        _check(spark, work, written)
        folder.check_committed(plan.batch)
    except BaseException:
        shutil.rmtree(folder.copy, ignore_errors=True)
        raise
    folder.swap(plan.batch)


def _write_states(spark: SparkSession, work: Work, settings: Mapping[str, str]) -> list[tuple[ShardsChange, int]]:
    """Writes the new shards. Returns how many partial matches are open in them: fewer than before where time has now
    advanced.
    """
    operators: dict[int, list[ShardsChange]] = {}
    for one in work.shards:
        operators.setdefault(one.first.operator, []).append(one)
    written = []
    for operator, changes in operators.items():
        with tempfile.TemporaryDirectory(prefix=f".{work.folder.path.name}.", dir=work.folder.path.parent) as name:
            rows = _state(spark, changes)
            state = write_state(spark, rows, Path(name), settings, work.plan.partitions)
            work.folder.take_state(state.checkpoint, operator, work.plan.batch)
            written += [(one, sum(state.open.get(number, 0) for number in one.new_numbers)) for one in changes]
    return written


def _state(spark: SparkSession, changes: list[ShardsChange]) -> DataFrame:
    """The parts of all shards of an operator, with their ledgers, as they are to be."""
    parts = parts_of(spark, changes[0].first)
    each = [_shards(spark, parts, change) for change in changes]
    ledgers = [_ledger(change, stored) for change in changes for stored in change.stored]
    return reduce(DataFrame.union, each).union(spark.createDataFrame(ledgers, ROW))


def _ledger(change: ShardsChange, stored: CheckpointedPattern) -> dict[str, object]:
    asked = stored.asked
    if "arguments" in asked:
        asked = asked | {"arguments": asked["arguments"] | {"shards": change.placement.shards}}
    value = ledger_bytes(change.made_for(stored), packed_asked(asked))
    nothing: dict[str, object] = dict.fromkeys(ROW.names)
    return nothing | {SHARD: ledger_shard(stored.number), PART: LEDGER, VALUE: value}


def _shards(spark: SparkSession, parts: DataFrame, change: ShardsChange) -> DataFrame:
    """The parts of the shards as they are to be."""
    own = parts.where(named(SHARD).isin(change.numbers))
    made_for = change.made_for_shards()
    if change.patterns is None:
        pairs = tuple(zip(change.numbers, change.new_numbers, strict=False))
        return _called("renumber", own, tuple(Renumbering(pairs, made_for)))
    matching = matching_of(change.stored, request_of_stored(change.stored, change.patterns))
    now = own_heads(spark, change.first).agg(F.max("value.passed")).collect()[0][0]
    was_made_for = change.made_for_shards(before=True)
    division = Division(matching.runner, matching.columns, was_made_for, made_for, NO_TIME if now is None else int(now))
    pieces = _called("divide", own.union(_targets(own, change)), tuple(division))
    return _called("join", pieces, (matching.runner,))


def _targets(own: DataFrame, change: ShardsChange) -> DataFrame:
    """The keys of each shard, with the number of the shard that each will belong to."""
    asked = change.first.asked
    columns, names = StructType.fromJson(asked["events"]), asked["arguments"]["key"]
    keys = [StructField(f"key{i}", columns[name].dataType) for i, name in enumerate(names)]
    type_ = StructType(
        [StructField(ERROR, StringType()), StructField(SHARD, IntegerType()), StructField(NAME, BinaryType()), *keys]
    )
    found = checked(_in_order(own).mapInArrow(mapped(f"{_WORKER}.keys", (type_,), type_), type_))
    shard = F.pmod(F.hash(*(named(key.name) for key in keys)), F.lit(change.placement.shards))
    numbers = F.lit(change.new_numbers)
    given = {SHARD: named(SHARD), PART: F.lit(KEY), "entries": F.get(numbers, shard), VALUE: named(NAME)}
    return found.select(*(given.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name) for field in ROW))


def _called(function: str, rows: DataFrame, given: tuple[object, ...]) -> DataFrame:
    return checked(_in_order(rows).mapInArrow(mapped(f"{_WORKER}.{function}", given, ROW), ROW))


def _in_order(rows: DataFrame) -> DataFrame:
    """The rows of each shard one after the other."""
    return rows.repartition(SHARD).sortWithinPartitions(SHARD, PART)


def _check(spark: SparkSession, work: Work, written: Sequence[tuple[ShardsChange, int]]) -> None:
    """Reads the copy as Spark will: what was written must be open.

    Raises:
        SnapshotError: this version of Spark writes or reads state in another way.
    """
    for shards, expected in written:
        made_for = shards.made_for(shards.first)
        copy = shards.first._replace(checkpoint=str(work.folder.copy), batch=work.plan.batch, made_for=made_for)
        open_ = own_heads(spark, copy).agg(F.coalesce(F.sum("value.open"), F.lit(0))).collect()[0][0]
        if open_ != expected:
            names = ", ".join(stored.name for stored in shards.stored)
            raise SnapshotError(
                f"pattern {names!r} would have {open_:,} open partial matches, not {expected:,}: this version "
                f"of Spark, {spark.version}, reads the new state in another way. The checkpoint is as it was"
            )
