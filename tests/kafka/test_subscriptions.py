"""Subscriptions whose target is a topic of a real Kafka."""

from __future__ import annotations

import json
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("confluent_kafka")

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.durable.routing.hosts import find, opened, subscriptions

import cepheid
from cepheid.hosts.durable.routing.sender import Undelivered
from cepheid.hosts.durable.routing.senders import kafka
from cepheid.hosts.durable.routing.senders.kafka import KafkaSender
from cepheid.hosts.durable.routing.subscription import Letter

_NUMBERS = count()


@pytest.fixture
def topic(broker: str) -> str:
    """A new topic with one partition, whose messages have at most 2,000 bytes."""
    name = f"subscribed{next(_NUMBERS)}"
    new = NewTopic(name, 1, config={"max.message.bytes": "2000"})
    client = AdminClient({"bootstrap.servers": broker})
    (made,) = client.create_topics([new]).values()
    made.result(60)
    return name


def read(broker: str, topic: str, number: int) -> list[Message]:
    """The first messages of the topic."""
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "test"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[Message] = []
    end = time.monotonic() + 30
    while len(found) < number and time.monotonic() < end:
        found += [one for one in consumer.consume(number, timeout=1) if one.error() is None]
    consumer.close()
    return found


def test_messages(broker: str, topic: str, tmp_path: Path) -> None:
    """Each match is a message in the order of the outbox: its id is the key, the row the value, the number a header."""
    with opened(f"sqlite:///{tmp_path}/alerts.db", f"kafka://{broker}") as host:
        host.subscribe("topic", where="id > 1", to=f"kafka://{broker}/{topic}")
        find(host, *range(1, 400, 2))
        assert host.deliver()
        expected = (
            host.sql("SELECT match_id FROM matches_pairs WHERE id > 1 ORDER BY id").column("match_id").to_pylist()
        )
        assert subscriptions(host)["topic"]["status"] == "active"
    found = read(broker, topic, 199)
    assert [(message.key() or b"").decode() for message in found] == expected
    assert b'"id":3' in (found[0].value() or b"")
    assert dict(found[0].headers() or []) == {"cepheid-subscription": b"topic", "cepheid-number": b"2"}


def test_refused_message(broker: str, topic: str, tmp_path: Path) -> None:
    """A message that Kafka does not take becomes a dead letter at once; those around it arrive in order."""
    with opened(f"sqlite:///{tmp_path}/alerts.db", f"kafka://{broker}") as host:
        long = cepheid.Pattern.begin("x", name="long").where("what = 'b'")
        host.deploy(long, input="events", measures={"id": "x.id", "text": "rpad(x.what, 3000, 'b')"})
        host.subscribe("topic", to=f"kafka://{broker}/{topic}", timeout="20 seconds")
        find(host, 1, 3)
        assert host.deliver("1 minute")
        dead = host.dead_letters.to_pylist()
        assert {one["pattern"] for one in dead} == {"long"}
        assert all(one["attempts"] == 1 and one["problem"].startswith("Kafka: ") for one in dead)
        numbers = host.sql("SELECT number FROM outbox WHERE pattern = 'pairs' ORDER BY number").column(0).to_pylist()
    found = read(broker, topic, 2)
    assert [int(dict(message.headers() or [])["cepheid-number"]) for message in found] == numbers


def test_no_new_client(broker: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the client cannot be made anew after a refused message, those written before it count as delivered, and the
    next attempt goes on after them.
    """
    sender = KafkaSender(broker, topic, "topic", timeout=20, options={})
    letters = [
        Letter(number, "p", "1", "match", f"id{number}", json.dumps({"text": "x" * size}))
        for number, size in ((1, 10), (2, 3000), (3, 10))
    ]
    made = count()

    def producer(settings: dict[str, Any]) -> Producer:
        if next(made):
            raise KafkaException(KafkaError(KafkaError.BROKER_NOT_AVAILABLE, "no more threads"))
        return Producer(settings)

    with monkeypatch.context() as broken:
        broken.setattr(kafka, "Producer", producer)
        with pytest.raises(Undelivered, match="arge") as caught:
            sender.send(letters)
        assert (caught.value.done, caught.value.is_refused) == (1, True)
        with pytest.raises(Undelivered, match="Kafka: no more threads") as caught:
            sender.send(letters[2:])
        assert (caught.value.done, caught.value.is_refused) == (0, False)
    sender.send(letters[2:])
    for _ in range(2):
        sender.close()
    assert [message.key() for message in read(broker, topic, 2)] == [b"id1", b"id3"]


def test_no_broker(tmp_path: Path) -> None:
    """While no broker answers, the message is tried again, and then given up."""
    with opened(f"sqlite:///{tmp_path}/alerts.db", "kafka://127.0.0.1:9") as host:
        to = "kafka://127.0.0.1:9/topic"
        host.subscribe("topic", to=to, timeout="500 milliseconds", attempts=2, pause="1 millisecond")
        find(host, 1)
        assert host.deliver()
        (dead,) = host.dead_letters.to_pylist()
        assert dead["attempts"] == 2
        assert dead["problem"].startswith("Kafka: ")


def test_wrong_options(tmp_path: Path) -> None:
    """Options that the client does not know make the subscription wait."""
    url = f"sqlite:///{tmp_path}/alerts.db"
    with opened(url, "kafka://127.0.0.1:9", kafka_options={"colour": "red"}) as host:
        host.subscribe("topic", to="kafka://127.0.0.1:9/topic")
        assert host.deliver()
        problem = subscriptions(host)["topic"]["problem"]
        assert problem == 'Kafka\'s client refuses its options: No such configuration property: "colour"'
