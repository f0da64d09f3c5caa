"""Eight numbers side by side, for loops over the classes of a row: a loop over vectors is one the compiler need not find.

Left to itself the compiler vectorises a loop only where it can show that arrays do not overlap, takes the classes that fill no
vector one by one, and gives up on a minimum. Here are vectors of float64 (`Floats`), of int64 (`Integers`) and of conditions
(`Conditions`) as types of Numba's with the usual operators; numbers go with them. A processor without vectors this wide works
in halves or quarters.

What takes numbers as well as vectors (`choose`, `smaller`, ``phi``) serves loops over rows too.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

__all__ = [
    "WIDTH", "bits_of", "bits_to_float", "choose", "count", "everywhere", "fetch", "fetch_to_write", "first_of",
    "float_to_bits", "least_of", "load", "load_some", "most_of", "positions", "store", "store_some", "sum_of", "to_float",
]  # fmt: skip

WIDTH = 8
FAST = ("reassoc", "contract", "nsz")  # as for all kernels

_FLOAT, _SINGLE, _INTEGER = ir.DoubleType(), ir.FloatType(), ir.IntType(64)
_SHORT, _TINY, _CONDITION = ir.IntType(32), ir.IntType(8), ir.IntType(1)


class Vector(types.Type):  # type: ignore[misc]
    """A vector; ``element`` is the type of its numbers to LLVM."""

    def __init__(self, name: str, element: ir.Type) -> None:
        self.code = ir.VectorType(element, WIDTH)
        super().__init__(name)


Floats, Integers, Conditions = Vector("Floats", _FLOAT), Vector("Integers", _INTEGER), Vector("Conditions", _CONDITION)
_NUMBERS = {Floats: types.Number, Integers: types.Integer, Conditions: types.Boolean}  # what goes with them


@register_model(Vector)
class _Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, vector: Vector) -> None:
        super().__init__(manager, vector, vector.code)


def _spread(context: Any, builder: Any, vector: Vector, given: Any, value: Any) -> Any:
    """A value of the given type as a vector: a number in every lane."""
    if given == vector:
        return value
    scalar = {Floats: types.float64, Integers: types.int64, Conditions: types.boolean}[vector]
    value = context.cast(builder, value, given, scalar)
    value = builder.trunc(value, _CONDITION) if vector == Conditions and value.type != _CONDITION else value
    lane = builder.insert_element(ir.Constant(vector.code, ir.Undefined), value, ir.Constant(_SHORT, 0))
    return builder.shuffle_vector(lane, lane, ir.Constant(ir.VectorType(_SHORT, WIDTH), [0] * WIDTH))


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
        operands = [_spread(context, builder, vector, one, arg) for one, arg in zip(sig.args, args, strict=True)]
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


def _called(builder: Any, name: str, result: Any, arguments: list[Any], fast: tuple[str, ...] = ()) -> Any:
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
_define(abs, {Floats: lambda b, x: _called(b, f"llvm.fabs.v{WIDTH}f64", x.type, [x])})
for _operation, _sign in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items():
    _define(getattr(operator, _operation), _compared(_sign), Conditions)


_ELEMENTS = {types.float64: _FLOAT, types.float32: _SINGLE, types.int64: _INTEGER, types.int8: _TINY}
_DECIMALS = (types.float64, types.float32)


def _check(array: Any, *dtypes: Any) -> None:
    """Refuse an array whose numbers are of other types, or do not lie side by side."""
    if array.dtype not in dtypes or array.ndim != 1 or array.layout != "C":
        names = ", ".join(map(str, dtypes))
        raise TypingError(
            f"vectors are read from and written to contiguous arrays of one axis and of {names}; got {array}"
        )


def _place(context: Any, builder: Any, sig: Any, args: Any) -> tuple[Any, Any, int]:
    """Pointer to a vector in an array, its type and its alignment in bytes."""
    given, position = sig.args[0], context.cast(builder, args[1], sig.args[1], types.intp)
    element = _ELEMENTS[given.dtype]
    kind = ir.VectorType(element, WIDTH)
    start = builder.gep(context.make_array(given)(context, builder, args[0]).data, [position])
    return builder.bitcast(start, kind.as_pointer()), kind, given.dtype.bitwidth // 8


def _code(kind: Any) -> str:
    """How the names of LLVM's functions spell a vector that memory holds."""
    return f"v{WIDTH}f{32 if kind.element == _SINGLE else 64}"


def _widened(builder: Any, value: Any) -> Any:
    if value.type.element == _TINY:
        return builder.sext(value, Integers.code)
    return builder.fpext(value, Floats.code) if value.type.element == _SINGLE else value


def _narrowed(builder: Any, value: Any, kind: Any) -> Any:
    return builder.fptrunc(value, kind) if kind.element == _SINGLE else value


@intrinsic
def load(typing_context, array, position):  # type: ignore[no-untyped-def]
    """The eight numbers of an array (float64, float32, int64 or int8) from a position on."""
    _check(array, *_ELEMENTS)

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        pointer, _, align = _place(context, builder, sig, args)
        return _widened(builder, builder.load(pointer, align=align))

    return (Integers if isinstance(array.dtype, types.Integer) else Floats)(array, position), codegen


@intrinsic
def load_some(typing_context, array, position, which):  # type: ignore[no-untyped-def]
    """As `load`, of floats, where ``which`` holds; zero elsewhere, and nothing is read there."""
    _check(array, *_DECIMALS)

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        pointer, kind, align = _place(context, builder, sig, args)
        rest = [ir.Constant(_SHORT, align), args[2], ir.Constant(kind, [0.0] * WIDTH)]
        return _widened(
            builder, _called(builder, f"llvm.masked.load.{_code(kind)}.p0{_code(kind)}", kind, [pointer, *rest])
        )

    return Floats(array, position, which), codegen


@intrinsic
def store(typing_context, array, position, value):  # type: ignore[no-untyped-def]
    """Eight numbers to an array (float64, float32 or int64) from a position on."""
    _check(array, *_DECIMALS, types.int64)

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        pointer, kind, align = _place(context, builder, sig, args)
        builder.store(_narrowed(builder, args[2], kind), pointer, align=align)
        return context.get_dummy_value()

    return types.none(array, position, value), codegen


@intrinsic
def store_some(typing_context, array, position, value, which):  # type: ignore[no-untyped-def]
    """As `store`, of floats, where ``which`` holds; nothing is written elsewhere."""
    _check(array, *_DECIMALS)

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        pointer, kind, align = _place(context, builder, sig, args)
        what = [_narrowed(builder, args[2], kind), pointer, ir.Constant(_SHORT, align), args[3]]
        _called(builder, f"llvm.masked.store.{_code(kind)}.p0{_code(kind)}", ir.VoidType(), what)
        return context.get_dummy_value()

    return types.none(array, position, value, which), codegen


def _fetch(write: bool) -> Any:
    @intrinsic
    def fetch(typing_context, array, position):  # type: ignore[no-untyped-def]
        """Ask for the memory around a position, which may be past the end, without waiting for it."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            pointer, _, _ = _place(context, builder, sig, args)
            hints = [ir.Constant(_SHORT, hint) for hint in (int(write), 3, 1)]
            _called(
                builder, "llvm.prefetch.p0i8", ir.VoidType(), [builder.bitcast(pointer, _TINY.as_pointer()), *hints]
            )
            return context.get_dummy_value()

        return types.none(array, position), codegen

    return fetch


fetch, fetch_to_write = _fetch(False), _fetch(True)


@intrinsic
def everywhere(typing_context, number):  # type: ignore[no-untyped-def]
    """A float in every lane."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return _spread(context, builder, Floats, sig.args[0], args[0])

    return Floats(number), codegen


@intrinsic
def positions(typing_context):  # type: ignore[no-untyped-def]
    """0, 1, ..., 7."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return ir.Constant(Integers.code, list(range(WIDTH)))

    return Integers(), codegen


@intrinsic
def choose(typing_context, condition, x, y):  # type: ignore[no-untyped-def]
    """x where the condition holds, else y, of numbers or of vectors: both are worked out, nothing branches."""
    vector = next((one for one in (x, y) if isinstance(one, Vector)), None)
    if condition == Conditions and vector is None:
        vector = Floats
    result = vector or typing_context.unify_types(x, y)

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        if vector is None:
            pair = [context.cast(builder, arg, one, result) for one, arg in zip(sig.args[1:], args[1:], strict=True)]
        else:
            pair = [
                _spread(context, builder, vector, one, arg) for one, arg in zip(sig.args[1:], args[1:], strict=True)
            ]
        return builder.select(args[0], *pair)

    return result(condition, x, y), codegen


@intrinsic
def sum_of(typing_context, vector):  # type: ignore[no-untyped-def]
    """The sum over the lanes."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        name = f"llvm.vector.reduce.fadd.v{WIDTH}f64"
        return _called(builder, name, _FLOAT, [ir.Constant(_FLOAT, -0.0), args[0]], FAST)

    return types.float64(vector), codegen


def _extreme(name: str, what: str) -> Any:
    @intrinsic
    def extreme(typing_context, vector):  # type: ignore[no-untyped-def]
        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            return _called(builder, f"llvm.vector.reduce.{name}.v{WIDTH}f64", _FLOAT, args, ("nnan", *FAST))

        return types.float64(vector), codegen

    extreme.__doc__ = f"The {what} number of the lanes, none of which may be NaN."
    return extreme


least_of, most_of = _extreme("fmin", "least"), _extreme("fmax", "greatest")


@intrinsic
def bits_of(typing_context, which):  # type: ignore[no-untyped-def]
    """Conditions as the low eight bits of an integer, lane 0 in the last one."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return builder.zext(builder.bitcast(args[0], ir.IntType(WIDTH)), _INTEGER)

    return types.int64(which), codegen


@intrinsic
def count(typing_context, bits):  # type: ignore[no-untyped-def]
    """How many bits of an integer are set."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return builder.ctpop(args[0])

    return types.int64(types.int64), codegen


@intrinsic
def first_of(typing_context, bits):  # type: ignore[no-untyped-def]
    """The place of the last bit that is set in an integer, which must not be zero."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return builder.cttz(args[0], ir.Constant(_CONDITION, 1))

    return types.int64(types.int64), codegen


def _recast(taken: Vector, given: Vector, operation: str, doc: str) -> Any:
    """From numbers of one kind to those of the other, or from vectors of them."""
    scalars = {Floats: types.float64, Integers: types.int64}

    @intrinsic
    def recast(typing_context, x):  # type: ignore[no-untyped-def]
        takes, gives = (taken, given) if x == taken else (scalars[taken], scalars[given])

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            return getattr(builder, operation)(args[0], context.get_value_type(gives))

        return gives(takes), codegen

    recast.__doc__ = doc
    return recast


float_to_bits = _recast(Floats, Integers, "bitcast", "The 64 bits of a float64 as an int64.")
bits_to_float = _recast(Integers, Floats, "bitcast", "The float64 whose 64 bits are the given int64.")
to_float = _recast(Integers, Floats, "sitofp", "An integer as a float64.")
