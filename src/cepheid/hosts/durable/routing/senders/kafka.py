"""Topics of Kafka as targets: at least once, in order, with the idempotency key as the key of each message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from cepheid.errors import SchemaError
from cepheid.hosts.durable.routing.sender import Undelivered
from cepheid.hosts.durable.routing.subscription import Letter

_REFUSED = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG, KafkaError.INVALID_RECORD)
"""Errors that are about the message itself."""


class KafkaSender:
    """Writes letters to a topic, by a producer that writes nothing twice by itself."""

    at_once = 500
    gives_up = True

    def __init__(
        self, servers: str, topic: str, subscription: str, *, timeout: float, options: Mapping[str, str]
    ) -> None:
        """`timeout` has the seconds for an attempt; `options` are further options of the client.

        Raises:
            SchemaError: the client refuses an option.
        """
        self._topic = topic
        self._subscription = subscription
        self._timeout = timeout
        self._settings: dict[str, Any] = {
            **options,
            "bootstrap.servers": servers,
            "enable.idempotence": True,
            "message.timeout.ms": max(1, int(timeout * 1000)),
        }
        try:
            self._producer: Producer | None = Producer(self._settings)
        except KafkaException as error:
            raise SchemaError(f"Kafka's client refuses its options: {error.args[0].str()}") from error

    def send(self, letters: Sequence[Letter]) -> None:
        done, error = self._written(letters)
        if error is not None and error.code() in _REFUSED and len(letters) > 1:
            # Kafka's limit is for all messages that are written at once, so each may be small enough alone.
            while done < len(letters) and (error := self._written(letters[done : done + 1])[1]) is None:
                done += 1
        if error is not None:
            raise Undelivered(f"Kafka: {error.str()}", done=done, is_refused=error.code() in _REFUSED)

    def _written(self, letters: Sequence[Letter]) -> tuple[int, KafkaError | None]:
        """How many of the letters Kafka has before the first that failed, and why that one failed."""
        try:
            self._producer = producer = self._producer or Producer(self._settings)
        except KafkaException as error:
            return 0, error.args[0]
        errors: list[KafkaError | None] = [_UNKNOWN] * len(letters)
        for i, letter in enumerate(letters):
            try:
                producer.produce(
                    self._topic,
                    letter.content.encode(),
                    letter.id,
                    headers=self._headers(letter),
                    on_delivery=_noted(errors, i),
                )
            except (BufferError, KafkaException) as error:
                errors[i] = error.args[0] if isinstance(error, KafkaException) else _UNKNOWN
                break
        producer.flush(self._timeout + 1)
        done = next((i for i, error in enumerate(errors) if error is not None), len(letters))
        if done == len(letters):
            return done, None
        # What is still in the queue would come after what is tried again. After a fatal error nothing comes any more.
        # So the next attempt has a new producer.
        self.close()
        return done, errors[done]

    def close(self) -> None:
        if self._producer is not None:
            self._producer.purge()
            self._producer = None

    def _headers(self, letter: Letter) -> list[tuple[str, str | bytes | None]]:
        about: list[tuple[str, str | bytes | None]] = [
            ("cepheid-subscription", self._subscription),
            ("cepheid-number", str(letter.number)),
        ]
        return [*about, ("cepheid-out-of-order", "true")] if letter.out_of_order else about


_UNKNOWN = KafkaError(KafkaError._MSG_TIMED_OUT)  # noqa: SLF001 - the client's own name for it


def _noted(errors: list[KafkaError | None], place: int) -> Callable[[KafkaError | None, Any], None]:
    def note(error: KafkaError | None, _: Any) -> None:
        errors[place] = error

    return note
