"""The order of documents in caches: a constant of the format."""

from __future__ import annotations

import pyarrow as pa

from transforms.token_order import leading_number, order_of, orders_of


def test_order_of_the_format() -> None:
    """Golden: one that changes means another format."""
    digests = pa.array([bytes(16), bytes(range(16))], pa.binary(16))
    assert [order.hex() for order in orders_of(digests).to_pylist()] == [
        "4da8c36456f736feb8c5d30ccef84935",
        "2cd3b9fc4a2400c8227bdc585642fa51",
    ]
    assert orders_of(digests.slice(1)).to_pylist() == [order_of(bytes(range(16)))]
    numbers = leading_number(orders_of(digests).slice(1))
    assert numbers.tolist() == [int.from_bytes(order_of(bytes(range(16)))[:8], "big")]
