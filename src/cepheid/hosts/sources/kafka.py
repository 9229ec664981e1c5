"""A topic of Apache Kafka, whose messages are JSON objects. The position is the next offset of each partition.

Positions come from the host alone: no consumer group is joined, and no offset is committed to Kafka.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from cepheid.errors import SourceError
from cepheid.hosts.durable.state import Position
from cepheid.hosts.sources.records import BadRows, json_parser, read_records
from cepheid.hosts.sources.source import Feed

_AT_ONCE = 10_000
"""The most messages of a feed."""
_WAIT = 0.2
"""Seconds for which a feed waits for its messages."""
_ANSWER = 10.0
"""Seconds within which a broker must answer."""
_LOOK = 30.0
"""Seconds between two looks for new partitions."""


class KafkaSource:
    """A `Source` of the messages in a topic, as events with these columns."""

    def __init__(
        self,
        servers: str,
        topic: str,
        columns: pa.Schema,
        *,
        bad_rows: BadRows = "error",
        options: Mapping[str, str] | None = None,
    ) -> None:
        """
        Args:
            options: Further options of the client (librdkafka), such as {"security.protocol": "SSL"}.

        Raises:
            SourceError: an option is wrong.
        """
        settings = {
            **(options or {}),
            "bootstrap.servers": servers,
            "group.id": "cepheid",  # the client demands one; it is not used
            "enable.auto.commit": False,
            "auto.offset.reset": "error",  # offsets that are gone are reported, not skipped
            "enable.partition.eof": True,
        }
        try:
            self._consumer = Consumer(settings)
        except KafkaException as error:
            raise SourceError(f"Kafka's client refuses its options: {_text(error.args[0])}") from error
        self._topic = topic
        self._parse = json_parser(columns)
        self._bad_rows: BadRows = bad_rows
        self._next: dict[int, int] = {}
        """The offset from which each partition is read now; those that have not been read yet are missing."""
        self._partitions: set[int] = set()
        self._at_end: set[int] = set()
        """The partitions whose last message has been read."""
        self._looked = -_LOOK
        self._newest = 0.0
        """Kafka's time of the last message that was read, in seconds since 1970."""

    def after(self, position: Position | None) -> Feed | None:
        self._assign({} if position is None else position)
        messages = self._messages()
        if not messages:
            return None
        values = [message.value() or b"" for message in messages]
        events, malformed = read_records(values, self._parse, lambda i: self._place(messages[i]), self._bad_rows)
        self._next |= {message.partition(): message.offset() + 1 for message in messages}
        self._newest = max(message.timestamp()[1] for message in messages) / 1000
        return Feed(
            events, {str(each): offset for each, offset in self._next.items()}, f"topic {self._topic}", malformed
        )

    def lag(self, position: Position | None) -> float | None:  # noqa: ARG002 - it is where the client reads
        if self._partitions and self._at_end >= self._partitions:
            return 0.0
        return max(0.0, time.time() - self._newest) if self._newest else None

    def close(self) -> None:
        self._consumer.close()

    def _assign(self, position: Position) -> None:
        """Reads from the position on. The client is told only where it reads elsewhere, or has new partitions."""
        assert isinstance(position, Mapping)
        following = {int(partition): offset for partition, offset in position.items()}
        before = {*self._partitions}
        if time.monotonic() - self._looked >= _LOOK:
            self._look_for_partitions()
        if following == self._next and self._partitions == before:
            return
        self._next = following
        self._at_end.clear()
        places = [
            TopicPartition(self._topic, each, following.get(each, OFFSET_BEGINNING))
            for each in sorted(self._partitions)
        ]
        self._consumer.assign(places)

    def _look_for_partitions(self) -> None:
        """
        Raises:
            SourceError: Kafka does not answer, or there is no such topic; not if it was read before, as the client
                waits for brokers that restart.
        """
        self._looked = time.monotonic()
        try:
            topic = self._consumer.list_topics(self._topic, timeout=_ANSWER).topics[self._topic]
        except KafkaException as error:
            if self._partitions:
                return
            raise SourceError(f"Kafka does not answer: {_text(error.args[0])}") from error
        if topic.error is None:
            self._partitions |= {*topic.partitions}
        elif not self._partitions:
            raise SourceError(f"topic {self._topic} cannot be read: {_text(topic.error)}")

    def _messages(self) -> list[Any]:
        """The next messages.

        Raises:
            SourceError: the messages after the position are gone, or may not be read.
        """
        found = self._consumer.consume(_AT_ONCE, timeout=_WAIT)
        messages = []
        for message in found:
            partition = message.partition()
            assert partition is not None, "a message that was read has one"
            if (error := message.error()) is None:
                self._at_end.discard(partition)
                messages.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the client's own name for it
                self._at_end.add(partition)
            else:
                self._check(error, partition)
        return messages

    def _check(self, error: KafkaError, partition: int) -> None:
        """Most errors pass by themselves, as the client tries again."""
        if error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001
            offset = self._next.get(partition, 0)
            raise SourceError(
                f"topic {self._topic}, partition {partition}: the messages from offset {offset} on, "
                "which is the host's position, are not there any more. Kafka has deleted them, or the topic was made "
                "anew. Keep messages for longer than a host may stand still"
            )
        if error.fatal() or error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED):
            raise SourceError(f"topic {self._topic} cannot be read: {_text(error)}")

    def _place(self, message: Any) -> str:
        return f"the message of offset {message.offset()} in partition {message.partition()} of topic {self._topic}"


def _text(error: KafkaError) -> str:
    return str(error.str())
