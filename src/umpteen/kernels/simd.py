"""Sixteen float32 numbers at once: one 64-byte row of weights, in registers.

Compilers do not reliably keep a row of sixteen sums in registers across a loop over sparse
features; spelling the vector out makes the inner loops of training four to five times faster.
LLVM lowers the same code to AVX-512, AVX2, NEON or plain instructions.

A `Lanes` value lives only inside compiled functions. Arrays are float32, C-ordered, and seen as
rows of sixteen.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

from umpteen.kernels.compiling import shared

WIDTH = 16

_vector = ir.VectorType(ir.FloatType(), WIDTH)
_int32 = ir.IntType(32)
_FUSED = ("contract",)


@shared
def aligned_rows(n: int) -> Any:
    """Return an array of `n` rows of sixteen, not filled, each of which is one line of the cache.

    Arrays of numpy and numba begin anywhere, so their rows often stand on two lines.
    """
    room = np.empty((n + 1) * WIDTH, np.float32)
    skipped = -(room.ctypes.data >> 2) % WIDTH
    return room[skipped : skipped + n * WIDTH].reshape((n, WIDTH))


class Lanes(types.Type):  # type: ignore[misc]
    """The compiled type of sixteen float32 numbers."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


_lanes = Lanes()


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _vector)


def _spread(builder: Any, number: Any) -> Any:
    empty = ir.Constant(_vector, ir.Undefined)
    first = builder.insert_element(empty, number, ir.Constant(_int32, 0))
    zeros = ir.Constant(ir.VectorType(_int32, WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(first, empty, zeros)


def _row_pointer(context: Any, builder: Any, kind: Any, array: Any, row: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    offset = builder.mul(row, ir.Constant(row.type, WIDTH))
    return builder.bitcast(builder.gep(data, [offset]), _vector.as_pointer())


def _larger(builder: Any, left: Any, right: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", left, right), left, right)


@intrinsic
def spread(_context: Any, number: Any) -> Any:
    """Return sixteen times the same number."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _spread(builder, args[0])

    return _lanes(types.float32), codegen


@intrinsic
def load(_context: Any, array: Any, row: Any) -> Any:
    """Return row `row` of an array."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = builder.load(_row_pointer(context, builder, signature.args[0], *args))
        lanes.align = 4
        return lanes

    return _lanes(array, types.uint64), codegen


@intrinsic
def store(_context: Any, array: Any, row: Any, lanes: Any) -> Any:
    """Write row `row` of an array."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _row_pointer(context, builder, signature.args[0], args[0], args[1])
        builder.store(args[2], pointer).align = 4
        return context.get_dummy_value()

    return types.void(array, types.uint64, _lanes), codegen


@intrinsic
def prefetch(_context: Any, array: Any, place: Any) -> Any:
    """Bring a place of an array, counted in numbers, into the cache, without waiting for it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, _int32, _int32, _int32])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        pointer = builder.bitcast(builder.gep(data, [args[1]]), byte)
        how = [ir.Constant(_int32, number) for number in (0, 3, 1)]  # read, keep, data
        builder.call(function, [pointer, *how])
        return context.get_dummy_value()

    return types.void(array, types.uint64), codegen


@intrinsic
def add_scaled(_context: Any, total: Any, scale: Any, lanes: Any) -> Any:
    """Return `total + scale * lanes`, with one number as the scale."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        product = builder.fmul(_spread(builder, args[1]), args[2], flags=_FUSED)
        return builder.fadd(args[0], product, flags=_FUSED)

    return _lanes(_lanes, types.float32, _lanes), codegen


@intrinsic
def add(_context: Any, left: Any, right: Any) -> Any:
    """Return `left + right`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fadd(*args, flags=_FUSED)

    return _lanes(_lanes, _lanes), codegen


@intrinsic
def subtract(_context: Any, left: Any, right: Any) -> Any:
    """Return `left - right`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fsub(*args, flags=_FUSED)

    return _lanes(_lanes, _lanes), codegen


@intrinsic
def multiply(_context: Any, left: Any, right: Any) -> Any:
    """Return `left * right`, lane by lane."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fmul(*args, flags=_FUSED)

    return _lanes(_lanes, _lanes), codegen


@intrinsic
def divide(_context: Any, left: Any, right: Any) -> Any:
    """Return `left / right`, lane by lane."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fdiv(*args)

    return _lanes(_lanes, _lanes), codegen


@intrinsic
def maximum(_context: Any, left: Any, right: Any) -> Any:
    """Return the larger of the two, lane by lane."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _larger(builder, *args)

    return _lanes(_lanes, _lanes), codegen


@intrinsic
def largest(_context: Any, lanes: Any) -> Any:
    """Return the largest of the sixteen."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = args[0]
        for step in (8, 4, 2, 1):
            turned = [(lane + step) % WIDTH for lane in range(WIDTH)]
            mask = ir.Constant(ir.VectorType(_int32, WIDTH), turned)
            lanes = _larger(builder, lanes, builder.shuffle_vector(lanes, lanes, mask))
        return builder.extract_element(lanes, ir.Constant(_int32, 0))

    return types.float32(_lanes), codegen
