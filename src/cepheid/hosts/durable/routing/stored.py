"""Subscriptions and dead letters in the store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from cepheid.errors import SchemaError, did_you_mean
from cepheid.hosts.durable.host import DurableHost
from cepheid.hosts.durable.routing.subscription import (
    DEAD_LETTERS,
    SUBSCRIPTIONS,
    DeadLetter,
    Letter,
    Subscription,
    dead_letter_id,
    dead_letter_row,
    letter_of,
    subscription_from_row,
    subscription_row,
)
from cepheid.hosts.durable.store import Transaction
from cepheid.hosts.durable.stores.database import literal


class Changed(NamedTuple):
    """What is to be stored about a subscription."""

    subscription: Subscription
    dead: Sequence[DeadLetter] = ()
    sent_again: Sequence[Letter] = ()
    """Dead letters that are delivered by now."""


def check_name(name: str, known: Iterable[str]) -> None:
    """
    Raises:
        SchemaError: no subscription has this name.
    """
    if name not in (names := [*known]):
        instead = did_you_mean(name, names, if_none="The host has none: add one with subscribe")
        raise SchemaError(f"there is no subscription {name!r}. {instead}")


def save(transaction: Transaction, changes: Sequence[Changed]) -> None:
    """Stores the changes."""
    gone = [
        dead_letter_id(change.subscription.name, number)
        for change in changes
        for number in (*(one.letter.number for one in change.dead), *(letter.number for letter in change.sent_again))
    ]
    if gone:
        transaction.delete(DEAD_LETTERS, gone)
    if dead := [dead_letter_row(change.subscription.name, one) for change in changes for one in change.dead]:
        transaction.insert(DEAD_LETTERS, pa.concat_tables(dead))
    if changes:
        transaction.delete(SUBSCRIPTIONS, [change.subscription.name for change in changes])
        rows = [subscription_row(change.subscription) for change in changes]
        transaction.insert(SUBSCRIPTIONS, pa.concat_tables(rows))


def stored_subscriptions(host: DurableHost) -> dict[str, Subscription]:
    """The subscriptions by name. Their tables are made if they are not there."""
    with host.changing() as transaction:
        transaction.create(SUBSCRIPTIONS)
        transaction.create(DEAD_LETTERS)
    rows = host.read("SELECT * FROM subscriptions ORDER BY name").to_pylist()
    return {row["name"]: subscription_from_row(row) for row in rows}


def remove(host: DurableHost, subscription: str) -> None:
    """Removes a subscription and its dead letters."""
    dead = _dead_rows(host, f"subscription = {literal(subscription)}")
    with host.changing() as transaction:
        transaction.delete(DEAD_LETTERS, [row["id"] for row in dead])
        transaction.delete(SUBSCRIPTIONS, [subscription])


def dead_numbers(host: DurableHost, subscription: str) -> list[int]:
    rows = _dead_rows(host, f"subscription = {literal(subscription)}")
    return [row["number"] for row in rows]


def mark_for_sending(host: DurableHost, subscription: str, numbers: Sequence[int]) -> None:
    """The dead letters of these numbers are to be sent again."""
    all_ = _dead_rows(host, f"subscription = {literal(subscription)}")
    rows = [row | {"status": "sending"} for row in all_ if row["number"] in numbers]
    if rows:
        with host.changing() as transaction:
            transaction.delete(DEAD_LETTERS, [row["id"] for row in rows])
            transaction.insert(DEAD_LETTERS, _dead_table(rows))


def to_send_again(host: DurableHost) -> dict[str, list[Letter]]:
    """The dead letters that are to be sent again, by subscription."""
    found: dict[str, list[Letter]] = {}
    for row in _dead_rows(host, "status = 'sending'"):
        found.setdefault(row["subscription"], []).append(letter_of(row)._replace(out_of_order=True))
    return found


def _dead_rows(host: DurableHost, where: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = host.read(
        f"SELECT * FROM dead_letters WHERE {where} ORDER BY subscription, number"
    ).to_pylist()
    return rows


def _dead_table(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Rows of dead letters as they are written. Databases without times give texts."""
    columns = []
    for field in DEAD_LETTERS.columns:
        values = [row[field.name] for row in rows]
        is_text = pa.types.is_timestamp(field.type) and any(isinstance(value, str) for value in values)
        column = pa.array(values, pa.string()) if is_text else pa.array(values)
        columns.append(column.cast(field.type))
    return pa.table(columns, schema=DEAD_LETTERS.columns)
