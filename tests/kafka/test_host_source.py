"""A host that reads a topic of a real Kafka."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, count

import pyarrow as pa
import pytest

pytest.importorskip("confluent_kafka")

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from cepheid.errors import EventError, SourceError
from cepheid.hosts.durable.state import Position
from cepheid.hosts.sources.kafka import KafkaSource

COLUMNS = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
_NUMBERS = count()


@pytest.fixture
def topic(broker: str) -> str:
    """A new topic with two partitions."""
    name = f"host{next(_NUMBERS)}"
    client = AdminClient({"bootstrap.servers": broker})
    (made,) = client.create_topics([NewTopic(name, 2)]).values()
    made.result(60)
    return name


def write(broker: str, topic: str, *values: str | bytes | None, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(60) == 0


def event(number: int) -> str:
    return json.dumps({"id": number, "at": f"2026-03-02T08:00:{number:02}Z"})


def read(source: KafkaSource, position: Position | None = None) -> Iterator[tuple[list[int], Position]]:
    """The ids of each feed, and the position after it, until the end of the topic."""
    while True:
        feed = source.after(position)
        if feed is not None:
            position = feed.position
            yield feed.events.column("id").to_pylist(), position
        elif source.lag(position) == 0:
            return


def test_positions_are_offsets_of_partitions(broker: str, topic: str) -> None:
    """All messages are read, and any position that was reached is a place to continue."""
    write(broker, topic, *map(event, range(5)))
    write(broker, topic, *map(event, range(10, 13)), partition=1)
    source = KafkaSource(broker, topic, COLUMNS)
    feeds = [*read(source)]
    assert sorted(chain.from_iterable(ids for ids, _ in feeds)) == [0, 1, 2, 3, 4, 10, 11, 12]
    assert feeds[-1][1] == {"0": 5, "1": 3}
    write(broker, topic, event(5))
    assert [*read(source, {"0": 5, "1": 3})] == [([5], {"0": 6, "1": 3})]
    source.close()
    again = KafkaSource(broker, topic, COLUMNS)
    assert sorted(chain.from_iterable(ids for ids, _ in read(again, {"0": 3}))) == [3, 4, 5, 10, 11, 12]
    again.close()


def test_bad_messages(broker: str, topic: str) -> None:
    """A message that is no event is an error with its offset; or it is left out, and the position passes it."""
    write(broker, topic, event(0), b"{", None, event(3), b'{"id": "x"}', b"null")
    with pytest.raises(EventError) as caught:
        [*read(source := KafkaSource(broker, topic, COLUMNS))]
    source.close()
    first, second, *_ = str(caught.value).splitlines()
    assert first.startswith(f"the message of offset 1 in partition 0 of topic {topic} cannot be read as an event: '{{'")
    assert (
        second == f"the message of offset 2 in partition 0 of topic {topic} cannot be read as an event: it has no value"
    )
    source = KafkaSource(broker, topic, COLUMNS, bad_rows="skip")
    feeds = [*read(source)]
    assert ([*chain.from_iterable(ids for ids, _ in feeds)], feeds[-1][1]) == ([0, 3], {"0": 6})
    source.close()


def test_messages_that_are_gone(broker: str, topic: str) -> None:
    """A position after which messages were deleted, or which the topic never had, is an error: nothing is skipped."""
    write(broker, topic, event(0))
    source = KafkaSource(broker, topic, COLUMNS)
    with pytest.raises(SourceError, match=f"topic {topic}, partition 0: the messages from offset 7 on"):
        [*read(source, {"0": 7})]
    source.close()


def test_no_such_topic(broker: str) -> None:
    """A topic that is not there is an error, and is not made."""
    source = KafkaSource(broker, "nowhere", COLUMNS)
    with pytest.raises(SourceError, match=r"topic nowhere cannot be read: .*[Uu]nknown topic"):
        source.after(None)
    source.close()


def test_wrong_options() -> None:
    """Options that the client does not know are an error."""
    with pytest.raises(
        SourceError, match='Kafka\'s client refuses its options: No such configuration property: "colour"'
    ):
        KafkaSource("127.0.0.1:9", "t", COLUMNS, options={"colour": "red"})


@pytest.mark.slow
def test_no_broker() -> None:
    """Without a broker the first look fails, and says so."""
    source = KafkaSource("127.0.0.1:9", "t", COLUMNS)
    with pytest.raises(SourceError, match="Kafka does not answer"):
        source.after(None)
    source.close()
