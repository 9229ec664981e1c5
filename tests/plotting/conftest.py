"""Small events with matches, and the marks that a picture has of them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pandas as pd
import pytest

from cepheid import Pattern, Skip

START = datetime(2026, 3, 2, 8)  # noqa: DTZ001 a clock on the wall
PRICES = {"a": [5, 12, 7, 13, 6], "b": [8, 7, 11, 3, 20]}


@pytest.fixture
def events() -> pd.DataFrame:
    """Prices of two symbols, one a minute."""
    rows = [
        {"symbol": symbol, "at": START + timedelta(minutes=minute), "price": float(price), "note": f"{symbol}{minute}"}
        for symbol, prices in PRICES.items()
        for minute, price in enumerate(prices)
    ]
    return pd.DataFrame(rows)


@pytest.fixture
def rising() -> Pattern:
    """A low price, then a higher one: twice in each symbol."""
    low = Pattern.begin("low", name="rising").where("price < 10").next("high").where("price > low.price + 3")
    return low.skip(Skip.past_last_event())
