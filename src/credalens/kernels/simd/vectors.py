"""What loops over vectors of eight numbers are made of: reading and writing arrays, choosing, reducing to one number.

The types and their operators are in ``operators.py``. `choose`, `smaller`, `larger` and ``phi`` also take plain numbers.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from credalens.kernels.simd.jit import inlined
from credalens.kernels.simd.operators import (
    CONDITION,
    FAST,
    FLOAT,
    INTEGER,
    SHORT,
    SINGLE,
    TINY,
    WIDTH,
    Conditions,
    Floats,
    Integers,
    Vector,
    call,
    spread,
)  # fmt: skip

__all__ = [
    "WIDTH", "bits_of", "bits_to_float", "choose", "count", "everywhere", "fetch", "fetch_to_write", "first_of",
    "float_to_bits", "larger", "least_of", "load", "load_some", "most_of", "positions", "smaller", "store", "store_some",
    "sum_of", "to_float",
]  # fmt: skip

_ELEMENTS = {types.float64: FLOAT, types.float32: SINGLE, types.int64: INTEGER, types.int8: TINY, types.boolean: TINY}
_BYTES = {FLOAT: 8, SINGLE: 4, INTEGER: 8, TINY: 1}
_CODES = {FLOAT: "f64", SINGLE: "f32", TINY: "i8"}
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
    return builder.bitcast(start, kind.as_pointer()), kind, _BYTES[element]


def _code(kind: Any) -> str:
    """How the names of LLVM's functions spell a vector that memory holds."""
    return f"v{WIDTH}{_CODES[kind.element]}"


def _widened(builder: Any, value: Any) -> Any:
    if value.type.element == TINY:
        return builder.sext(value, Integers.code)
    return builder.fpext(value, Floats.code) if value.type.element == SINGLE else value


def _narrowed(builder: Any, value: Any, kind: Any) -> Any:
    if kind.element == TINY:
        return builder.zext(value, kind)
    return builder.fptrunc(value, kind) if kind.element == SINGLE else value


def _check_stored(array: Any, value: Any, *dtypes: Any) -> None:
    """Refuse an array that cannot hold the vector: conditions go to booleans and nothing else does."""
    _check(array, *((types.boolean,) if value == Conditions else dtypes))


@intrinsic
def load(typing_context, array, position):  # type: ignore[no-untyped-def]
    """The eight numbers of an array (float64, float32, int64 or int8) from a position on."""
    _check(array, *_DECIMALS, types.int64, types.int8)

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
        rest = [ir.Constant(SHORT, align), args[2], ir.Constant(kind, [0.0] * WIDTH)]
        return _widened(
            builder, call(builder, f"llvm.masked.load.{_code(kind)}.p0{_code(kind)}", kind, [pointer, *rest])
        )

    return Floats(array, position, which), codegen


@intrinsic
def store(typing_context, array, position, value):  # type: ignore[no-untyped-def]
    """Eight numbers to an array (float64, float32 or int64) from a position on, or eight conditions to one of booleans."""
    _check_stored(array, value, *_DECIMALS, types.int64)

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        pointer, kind, align = _place(context, builder, sig, args)
        builder.store(_narrowed(builder, args[2], kind), pointer, align=align)
        return context.get_dummy_value()

    return types.none(array, position, value), codegen


@intrinsic
def store_some(typing_context, array, position, value, which):  # type: ignore[no-untyped-def]
    """As `store`, of floats or conditions, where ``which`` holds; nothing is written elsewhere."""
    _check_stored(array, value, *_DECIMALS)

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        pointer, kind, align = _place(context, builder, sig, args)
        what = [_narrowed(builder, args[2], kind), pointer, ir.Constant(SHORT, align), args[3]]
        call(builder, f"llvm.masked.store.{_code(kind)}.p0{_code(kind)}", ir.VoidType(), what)
        return context.get_dummy_value()

    return types.none(array, position, value, which), codegen


def _fetch(write: bool) -> Any:
    @intrinsic
    def fetch(typing_context, array, position):  # type: ignore[no-untyped-def]
        """Ask for the memory around a position, which may be past the end, without waiting for it."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            pointer, _, _ = _place(context, builder, sig, args)
            hints = [ir.Constant(SHORT, hint) for hint in (int(write), 3, 1)]
            call(builder, "llvm.prefetch.p0i8", ir.VoidType(), [builder.bitcast(pointer, TINY.as_pointer()), *hints])
            return context.get_dummy_value()

        return types.none(array, position), codegen

    return fetch


fetch, fetch_to_write = _fetch(False), _fetch(True)


@intrinsic
def everywhere(typing_context, number):  # type: ignore[no-untyped-def]
    """A float in every lane."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return spread(context, builder, Floats, sig.args[0], args[0])

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
            pair = [spread(context, builder, vector, one, arg) for one, arg in zip(sig.args[1:], args[1:], strict=True)]
        return builder.select(args[0], *pair)

    return result(condition, x, y), codegen


@inlined
def smaller(x, y):
    """The smaller of two."""
    return choose(x < y, x, y)


@inlined
def larger(x, y):
    """The larger of two."""
    return choose(x > y, x, y)


@intrinsic
def sum_of(typing_context, vector):  # type: ignore[no-untyped-def]
    """The sum over the lanes."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        name = f"llvm.vector.reduce.fadd.v{WIDTH}f64"
        return call(builder, name, FLOAT, [ir.Constant(FLOAT, -0.0), args[0]], FAST)

    return types.float64(vector), codegen


def _extreme(name: str, what: str) -> Any:
    @intrinsic
    def extreme(typing_context, vector):  # type: ignore[no-untyped-def]
        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            return call(builder, f"llvm.vector.reduce.{name}.v{WIDTH}f64", FLOAT, args, ("nnan", *FAST))

        return types.float64(vector), codegen

    extreme.__doc__ = f"The {what} number of the lanes, none of which may be NaN."
    return extreme


least_of, most_of = _extreme("fmin", "least"), _extreme("fmax", "greatest")


@intrinsic
def bits_of(typing_context, which):  # type: ignore[no-untyped-def]
    """Conditions as the low eight bits of an integer, lane 0 in the last one."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return builder.zext(builder.bitcast(args[0], ir.IntType(WIDTH)), INTEGER)

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
        return builder.cttz(args[0], ir.Constant(CONDITION, 1))

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
