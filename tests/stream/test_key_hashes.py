"""The hash by which tasks know a key with copies is that of the key alone: all tasks route its events alike."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cepheid.hosts.spark.stream.load.hot_keys import KeySampler, key_hash, key_hashes

DAYS = pa.array([0, 4_000_000], pa.int32()).cast(pa.date32())
"""The second one is after the year 9999, which Python's dates do not reach."""


def test_equal_keys() -> None:
    """-0.0 and 0.0 are one key, also within structs and lists."""
    for zeros in (
        pa.array([0.0, -0.0]),
        pa.array([{"x": 0.0}, {"x": -0.0}]),
        pa.array([[{"x": 0.0}], [{"x": -0.0}]]),
    ):
        one, other = key_hashes([zeros])
        assert one == other
    assert len({*key_hashes([pa.array([0.0, 1.0, None])])}) == 3


def test_other_keys_of_the_batch() -> None:
    """A date that Python cannot represent does not change the hashes of the other keys of a batch."""
    first, second = key_hashes([DAYS])
    assert [first] == key_hashes([DAYS.slice(0, 1)])
    assert [second] == key_hashes([DAYS.slice(1, 1)])
    assert first != second


def test_the_sample_counts_equal_keys_together() -> None:
    """Whichever zero a sample meets first, the key has one count and one hash."""
    sampler = KeySampler(show=False)
    sampler.add([pa.array([-0.0, 0.0] * 200_000)], np.zeros(400_000, np.int32))
    assert [*sampler.sample.keys] == [key_hash((0.0,))]
