"""Vectors of eight numbers as Numba types, with the usual operators.

Explicit SIMD, because the auto-vectoriser misses these loops: it gives up on a minimum, on arrays that might overlap, and
takes the classes that fill no vector one by one. There are vectors of float64 (`Floats`), of int64 (`Integers`) and of
conditions (`Conditions`); a number goes with them as if it stood in every lane. A processor without vectors this wide works
in halves or quarters.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model

__all__ = [
    "CONDITION", "FAST", "FLOAT", "INTEGER", "SHORT", "SINGLE", "TINY", "WIDTH", "Conditions", "Floats", "Integers",
    "Vector", "call", "spread",
]  # fmt: skip

WIDTH = 8
FAST = ("reassoc", "contract", "nsz")  # as for all kernels

FLOAT, SINGLE, INTEGER = ir.DoubleType(), ir.FloatType(), ir.IntType(64)
SHORT, TINY, CONDITION = ir.IntType(32), ir.IntType(8), ir.IntType(1)


class Vector(types.Type):  # type: ignore[misc]
    """A vector; ``element`` is the type of its numbers to LLVM."""

    def __init__(self, name: str, element: ir.Type) -> None:
        self.code = ir.VectorType(element, WIDTH)
        super().__init__(name)


Floats, Integers, Conditions = Vector("Floats", FLOAT), Vector("Integers", INTEGER), Vector("Conditions", CONDITION)
_NUMBERS = {Floats: types.Number, Integers: types.Integer, Conditions: types.Boolean}  # what goes with them


@register_model(Vector)
class _Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, vector: Vector) -> None:
        super().__init__(manager, vector, vector.code)


def spread(context: Any, builder: Any, vector: Vector, given: Any, value: Any) -> Any:
    """A value of the given type as a vector: a number in every lane."""
    if given == vector:
        return value
    scalar = {Floats: types.float64, Integers: types.int64, Conditions: types.boolean}[vector]
    value = context.cast(builder, value, given, scalar)
    value = builder.trunc(value, CONDITION) if vector == Conditions and value.type != CONDITION else value
    lane = builder.insert_element(ir.Constant(vector.code, ir.Undefined), value, ir.Constant(SHORT, 0))
    return builder.shuffle_vector(lane, lane, ir.Constant(ir.VectorType(SHORT, WIDTH), [0] * WIDTH))


def _vector_of(given: tuple[Any, ...], kinds: tuple[Vector, ...]) -> Vector | None:
    """The vector among operands that numbers can join, or None."""
    for vector in kinds:
        if vector in given and all(one == vector or isinstance(one, _NUMBERS[vector]) for one in given):
            return vector
    return None


def _define(operation: Any, emit: dict[Vector, Callable[..., Any]], result: Vector | None = None) -> None:
    """Give an operator its meaning for vectors, and for vectors with numbers."""
    kinds = tuple(emit)

    class Template(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: tuple[Any, ...], kws: Any) -> Any:
            vector = None if kws else _vector_of(args, kinds)
            return None if vector is None else signature(result or vector, *args)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vector = _vector_of(sig.args, kinds)
        operands = [spread(context, builder, vector, one, arg) for one, arg in zip(sig.args, args, strict=True)]
        return emit[vector](builder, *operands)

    infer_global(operation)(Template)
    for vector in kinds:
        if operation in {operator.neg, operator.invert, abs}:
            lower_builtin(operation, vector)(lower)
            continue
        other = _NUMBERS[vector]
        for pair in ((vector, vector), (vector, other), (other, vector)):
            lower_builtin(operation, *pair)(lower)


def _compared(sign: str) -> dict[Vector, Callable[..., Any]]:
    """A comparison; one with NaN is False, and True for "!=" alone, as everywhere."""
    kind = "fcmp_unordered" if sign == "!=" else "fcmp_ordered"
    return {
        Floats: lambda builder, x, y: getattr(builder, kind)(sign, x, y),
        Integers: lambda builder, x, y: builder.icmp_signed(sign, x, y),
    }


def call(builder: Any, name: str, result: Any, arguments: list[Any], fast: tuple[str, ...] = ()) -> Any:
    """A call of a function that is part of LLVM."""
    kind = ir.FunctionType(result, [one.type for one in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments, fastmath=fast)


_define(operator.add, {Floats: lambda b, x, y: b.fadd(x, y, flags=FAST), Integers: lambda b, x, y: b.add(x, y)})
_define(operator.sub, {Floats: lambda b, x, y: b.fsub(x, y, flags=FAST), Integers: lambda b, x, y: b.sub(x, y)})
_define(operator.mul, {Floats: lambda b, x, y: b.fmul(x, y, flags=FAST), Integers: lambda b, x, y: b.mul(x, y)})
_define(operator.truediv, {Floats: lambda b, x, y: b.fdiv(x, y, flags=FAST)})
_define(operator.rshift, {Integers: lambda b, x, y: b.ashr(x, y)})
_define(operator.and_, {Integers: lambda b, x, y: b.and_(x, y), Conditions: lambda b, x, y: b.and_(x, y)})
_define(operator.or_, {Integers: lambda b, x, y: b.or_(x, y), Conditions: lambda b, x, y: b.or_(x, y)})
_define(operator.neg, {Floats: lambda b, x: b.fneg(x, flags=FAST)})
_define(abs, {Floats: lambda b, x: call(b, f"llvm.fabs.v{WIDTH}f64", x.type, [x])})
for _operation, _sign in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items():
    _define(getattr(operator, _operation), _compared(_sign), Conditions)
