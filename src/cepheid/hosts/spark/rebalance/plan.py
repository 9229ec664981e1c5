"""What a rebalancing will do, and whether it can be done: the dry run and the real one share it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it

from cepheid.errors import SchemaError, SnapshotError
from cepheid.families import family_of
from cepheid.hosts.spark.rebalance.folders import Folder, in_use
from cepheid.hosts.spark.stream.placement import Placement
from cepheid.hosts.spark.stream.shard import DIVIDED_BY
from cepheid.hosts.spark.stream.source import shards_made_for
from cepheid.hosts.spark.stream.stored_state import (
    CheckpointedPattern,
    active_session,
    all_operators,
    checkpointed_patterns,
    our_operators,
    own_heads,
)
from cepheid.lang.arguments import brief
from cepheid.lang.documents import AnyPattern, pattern_from_text
from cepheid.requests.request import MOST_SHARDS

MOST_PARTITIONS = 1 << 20


@dataclass(frozen=True)
class PatternChange:
    """What becomes of the shards of a pattern, or of several that share them."""

    name: str
    """The names of all, with commas, if there are several."""
    before: int
    """The number of shards."""
    after: int
    even_before: bool
    """Whether Spark spreads them evenly over partitions that divide them; afterwards it does."""
    open: int
    """The number of open partial matches."""

    def __str__(self) -> str:
        shards = f"{self.before} shards" if self.before == self.after else f"{self.before} → {self.after} shards"
        placed = "" if self.even_before else ", spread evenly from now on"
        return f"{self.name}: {shards}{placed}, {self.open:,} open"


@dataclass(frozen=True)
class Rebalancing:
    """What a rebalancing does, or has done."""

    checkpoint: str
    query: str
    """The id of the query, which stays."""
    batch: int
    """The last finished micro-batch. The next one is the next number."""
    partitions_before: int
    partitions: int
    patterns: tuple[PatternChange, ...]
    former: str
    """Where the checkpoint as it was is afterwards."""

    def __str__(self) -> str:
        partitions = f"{self.partitions_before} → {self.partitions} partitions"
        if self.partitions == self.partitions_before:
            partitions = f"{self.partitions} partitions"
        lines = [f"{self.checkpoint}, after micro-batch {self.batch}: {partitions}", *map(str, self.patterns)]
        return "\n".join([*lines, f"the checkpoint as it was: {self.former}"])


class ShardsChange(NamedTuple):
    """Shards as they are and as they are to be."""

    stored: tuple[CheckpointedPattern, ...]
    """The pattern that has them, or several that share them."""
    placement: Placement
    """The new one."""
    patterns: tuple[AnyPattern, ...] | None
    """The patterns, if the shards are divided anew."""

    @property
    def first(self) -> CheckpointedPattern:
        return self.stored[0]

    @property
    def numbers(self) -> list[int]:
        """The numbers of the shards as they are."""
        found: list[int] = self.first.placement.numbers(self.first.number).tolist()
        return found

    @property
    def new_numbers(self) -> list[int]:
        found: list[int] = self.placement.numbers(self.first.number).tolist()
        return found

    def made_for(self, one: CheckpointedPattern) -> dict[str, object]:
        """What the checkpoint is made for afterwards, for one of the patterns."""
        return one.made_for | self.placement.made_for

    def made_for_shards(self, *, before: bool = False) -> str:
        """What the shards are made for afterwards, or `before`, as JSON."""
        each = {one.name: one.made_for if before else self.made_for(one) for one in self.stored}
        return shards_made_for(each)


@dataclass(frozen=True)
class Work:
    """A plan, with what is needed to carry it out."""

    plan: Rebalancing
    folder: Folder
    shards: tuple[ShardsChange, ...]


def folder_of(checkpoint: str) -> Folder:
    """
    Raises:
        SchemaError: it is not on this machine's file systems.
    """
    parts = urlsplit(checkpoint)
    if parts.scheme not in ("", "file"):
        raise SchemaError(
            f"checkpoint: {checkpoint!r} is not a folder of this machine. Only there a whole folder takes the place of "
            "another at once: copy the checkpoint here, rebalance it, and copy it back while no query runs"
        )
    return Folder(Path(parts.path if parts.scheme else checkpoint).absolute())


def planned(checkpoint: str, shards: int | None, partitions: int | None, patterns: Mapping[str, AnyPattern]) -> Work:
    """
    Raises:
        SchemaError: an argument is wrong; the message has all faults.
        SnapshotError: the checkpoint is in use, is no checkpoint of `detect`, is of a newer format, or cannot be
            divided so.
    """
    _check_arguments(shards, partitions)
    spark, folder = active_session(), folder_of(checkpoint)
    if not hasattr(spark, "newSession"):
        raise SchemaError("a checkpoint is rebalanced in a session of this process, not over Spark Connect")
    _check_not_running(spark, folder)
    each = checkpointed_patterns(str(folder.path))
    batch = _finished(folder)
    _check_operators(spark, folder)
    if not each:
        raise SnapshotError(f"the query of the checkpoint at {checkpoint!r} has had no events yet: give it another one")
    now = folder.batch(batch).partitions
    found = [placed(several, shards, patterns) for several in _by_shards(each.values())]
    labels = {id(stored): label for label, stored in each.items()}
    changes = tuple(_change(spark, ", ".join(labels[id(one)] for one in change.stored), change) for change in found)
    plan = Rebalancing(
        checkpoint=str(folder.path),
        query=folder.query,
        batch=batch,
        partitions_before=now,
        partitions=now if partitions is None else partitions,
        patterns=changes,
        former=str(folder.former(batch)),
    )
    if plan.partitions == now and all(one.even_before and one.before == one.after for one in changes):
        raise SchemaError(f"the checkpoint has {now} partitions and {changes[0].before} evenly spread shards already")
    return Work(plan, folder, tuple(found))


def _check_arguments(shards: object, partitions: object) -> None:
    faults = []
    for name, given, most in (("shards", shards, MOST_SHARDS), ("partitions", partitions, MOST_PARTITIONS)):
        if given is not None and (isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= most):
            faults.append(f"{name}: a whole number from 1 to {most:,} is expected, got {brief(given)}")
    if faults:
        raise SchemaError("\n".join(faults))


def _check_not_running(spark: SparkSession, folder: Folder) -> None:
    # Spark knows the queries of all sessions of this process here; `spark.streams` has only those of one.
    shared = getattr(spark, "_jsparkSession").sharedState()  # noqa: B009 - it is not in PySpark's types
    if folder.query in {query.toString() for query in shared.activeStreamingQueries().keySet()}:
        raise SnapshotError(f"the query of the checkpoint at {str(folder.path)!r} runs in this process: stop it first")


def _finished(folder: Folder) -> int:
    """The number of the last micro-batch, which is finished."""
    checkpoint = str(folder.path)
    batch, planned_ = folder.committed, folder.planned
    if batch < 0:
        raise SnapshotError(f"the query of the checkpoint at {checkpoint!r} has finished no micro-batch yet")
    if planned_ != batch and folder.batch(planned_).mark is None:
        raise SnapshotError(in_use(checkpoint, planned_))
    if folder.commit(batch).get("stateUniqueIds"):
        raise SnapshotError(
            f"the checkpoint at {checkpoint!r} has state in the second format of Spark's checkpoints, which cannot be "
            "rebalanced. Queries with spark.sql.streaming.stateStore.checkpointFormatVersion 1 can"
        )
    return batch


def _check_operators(spark: SparkSession, folder: Folder) -> None:
    operators = all_operators(spark, str(folder.path))
    ours = our_operators(operators)
    if others := [one.operatorName for one in operators if one not in ours]:
        raise SnapshotError(
            f"the query has other operators with state, besides those of detect ({', '.join(others)}): their state "
            "would have to be divided, too. Give them a query of their own, which reads the matches"
        )


def _by_shards(each: Iterable[CheckpointedPattern]) -> Iterator[list[CheckpointedPattern]]:
    """The patterns by their shards: alone, or several that share them."""
    together = dict[int, list[CheckpointedPattern]]()
    for one in each:
        if one.placement.together:
            together.setdefault(one.operator, []).append(one)
        else:
            yield [one]
    yield from (sorted(several, key=lambda one: one.number) for several in together.values())


def placed(each: Sequence[CheckpointedPattern], shards: int | None, patterns: Mapping[str, AnyPattern]) -> ShardsChange:
    """What becomes of the shards that these patterns have, or that the only one has.

    Raises:
        SnapshotError: their state cannot be divided.
    """
    before = each[0].placement
    if before.standbys:
        raise SnapshotError(
            f"pattern {each[0].name!r} has {before.standbys} standbys, which may hold copies of its hot keys: "
            "a query with standbys keeps its shards and partitions"
        )
    new = Placement(before.shards if shards is None else shards, together=before.together)
    known = None if new.shards == before.shards else [_pattern(one, patterns) for one in each]
    chosen = None if known is None else tuple(one for one in known if one is not None)
    return ShardsChange(tuple(each), new, chosen or None)


def _pattern(stored: CheckpointedPattern, patterns: Mapping[str, AnyPattern]) -> AnyPattern | None:
    """The pattern, by which the state of its shards is divided; None if it has one shard, whatever their number.

    Raises:
        SnapshotError: its state cannot be divided.
    """
    asked, name = stored.asked, stored.name
    if "event_id" in asked.get("arguments", {}):
        raise SnapshotError(
            f"pattern {name!r}: the state of events that rows open and close (event_id) cannot be divided. Let the "
            "query go on with its shards, or give it a new checkpoint"
        )
    if "pattern" not in asked:
        raise SnapshotError(
            f"pattern {name!r}: an earlier version of Cepheid wrote the checkpoint, which stored no patterns of "
            f"{asked['kind']}. Let the query process events with this version, stop it, and rebalance it then; or "
            "leave out shards: the number of partitions can change"
        )
    if values := stored.made_for.get(DIVIDED_BY):
        raise SnapshotError(
            f"pattern {name!r}: its events are divided by values besides the key ({', '.join(values)}), which its "
            f"stored state is not divided by, so its query keeps its {stored.placement.shards} shards. Leave out "
            "shards: the number of partitions can change"
        )
    if not asked["arguments"]["key"]:
        return None
    given = patterns.get(name)
    if given is not None:
        return given
    if asked["functions"]:
        raise SnapshotError(
            f"pattern {name!r} has conditions in Python ({', '.join(asked['functions'])}), which a checkpoint does not "
            "store. Give it: cepheid.streams.rebalance(…, patterns=…)"
        )
    return pattern_from_text(json.dumps(asked["pattern"]), source="the checkpoint's pattern")


def _change(spark: SparkSession, label: str, change: ShardsChange) -> PatternChange:
    open_ = own_heads(spark, change.first).agg(F.coalesce(F.sum("value.open"), F.lit(0))).collect()[0][0]
    before = change.first.placement
    return PatternChange(label, before.shards, change.placement.shards, before.even, int(open_))


def checked_patterns(patterns: AnyPattern | Iterable[AnyPattern] | None) -> dict[str, AnyPattern]:
    """The patterns by name.

    Raises:
        SchemaError: one is no pattern.
    """
    given = [] if patterns is None else [*patterns] if isinstance(patterns, Iterable) else [patterns]
    for one in given:
        if family_of(one) is None:
            raise SchemaError(f"patterns: patterns are expected, got {brief(one)}")
    return {one.name: one for one in given}
