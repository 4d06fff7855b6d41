"""Sixty-four bytes of a text at a time, as bits of one 64-bit number: which of them have a property.

Compilers make vector code of it (one comparison with AVX-512, two with AVX2, four with SSE2 or NEON); the bits are the
same on any processor. Bit i, counted from the lowest, is that of the i-th byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

BLOCK: Final = 64


@intrinsic  # type: ignore[untyped-decorator]
def bits_between(context: Any, data: Any, place: Any, fold: Any, low: Any, count: Any) -> Any:
    """Return the bits of those bytes of data[place:place + 64] for which (byte | fold) - low, modulo 256, < count.

    All 64 bytes must be there. `fold` 0x20 takes capital letters for small ones.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[Any]) -> Any:
        byte, vector = ir.IntType(8), ir.VectorType(ir.IntType(8), BLOCK)
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.bitcast(builder.gep(array.data, [arguments[1]]), vector.as_pointer())
        bytes_there = builder.load(address, align=1)

        def spread(value: Any) -> Any:
            one = builder.insert_element(
                ir.Constant(vector, ir.Undefined), builder.trunc(value, byte), ir.Constant(ir.IntType(32), 0)
            )
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), BLOCK), [0] * BLOCK)
            return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)

        fold_, low_, count_ = (spread(value) for value in arguments[2:])
        distance = builder.sub(builder.or_(bytes_there, fold_), low_)
        return builder.bitcast(builder.icmp_unsigned("<", distance, count_), ir.IntType(64))

    return types.uint64(data, place, fold, low, count), generate


@intrinsic  # type: ignore[untyped-decorator]
def count_bits(context: Any, bits: Any) -> Any:
    """Return how many bits of a uint64 are 1, as an int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[Any]) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate
