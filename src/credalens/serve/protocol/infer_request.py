"""A request to infer: its tensors and the outputs it wants, read from a body of JSON, with binary data after it or not."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from numpy.typing import NDArray

from credalens.checks.options import count_text
from credalens.serve.protocol.binary_tensors import tensor_from_bytes
from credalens.serve.protocol.datatypes import check_datatype
from credalens.serve.protocol.errors import RequestError
from credalens.serve.protocol.json_tensors import tensor_from_json

MOST_AXES: Final = 32
MOST_TENSORS: Final = 256
LONGEST_NAME: Final = 256


@dataclass(frozen=True)
class WantedOutput:
    """An output that a request asks for, and whether as binary data."""

    name: str
    binary: bool


@dataclass(frozen=True, eq=False)
class InferRequest:
    """What came.

    :ivar outputs: None where the request names none.
    :ivar binary: whether outputs that are not named come as binary data.
    """

    id: str | None
    inputs: dict[str, NDArray]
    outputs: tuple[WantedOutput, ...] | None
    binary: bool


def read_request(body: bytes, header_length: str | None, /) -> InferRequest:
    """Read a body. ``header_length`` is the header ``Inference-Header-Content-Length``: how many bytes of it are JSON."""
    length = _read_length(header_length, len(body))
    fields = _object(_read_json(body[:length]), "the request")
    binary = _flag(_parameters(fields, "the request"), "binary_data_output", False)
    inputs = _read_inputs(_list(fields, "inputs"), memoryview(body)[length:])
    outputs = _read_outputs(_list(fields, "outputs"), binary) if "outputs" in fields else None
    return InferRequest(_read_id(fields.get("id")), inputs, outputs or None, binary)


def _read_length(text: str | None, size: int) -> int:
    if text is None:
        return size
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= size):
        raise RequestError(
            f"Inference-Header-Content-Length must be a number of bytes up to those of the body, {size}; got {text!r:.40}."
        )
    return int(text)


def _read_json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"the body is not JSON ({error!s:.200}).") from error


def _read_id(value: Any) -> str | None:
    if value is not None and not (isinstance(value, str) and len(value) <= LONGEST_NAME):
        raise RequestError(f"id must be a string of at most {LONGEST_NAME} characters.")
    return value


def _read_inputs(items: list[Any], tail: memoryview) -> dict[str, NDArray]:
    inputs: dict[str, NDArray] = {}
    start = 0
    for item in items:
        name = _name(item, "an input", inputs)
        inputs[name], size = _read_tensor(item, name, tail[start:])
        start += size
    if start != len(tail):
        raise RequestError(
            f"the body holds {count_text(len(tail), 'byte')} of binary data; the inputs account for {start}."
        )
    return inputs


def _read_tensor(item: dict[str, Any], name: str, tail: memoryview) -> tuple[NDArray, int]:
    """The tensor, and how many bytes of binary data were its own."""
    datatype, shape = check_datatype(item.get("datatype"), name), _read_shape(item.get("shape"), name)
    size = _parameters(item, f"input {name!r}").get("binary_data_size")
    if size is None:
        return tensor_from_json(item.get("data"), name, datatype, shape), 0
    if "data" in item:
        raise RequestError(f"input {name!r} has both data and binary_data_size; give one of them.")
    if not _is_count(size) or size > len(tail):
        raise RequestError(
            f"input {name!r}: binary_data_size is {size!r:.40}, with {count_text(len(tail), 'byte')} left."
        )
    return tensor_from_bytes(tail[:size], name, datatype, shape), size


def _read_shape(value: Any, name: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(_is_count(size) and size > 0 for size in value):
        raise RequestError(f"input {name!r}: shape must be a list of whole numbers from 1 on; got {value!r:.60}.")
    if not 0 < len(value) <= MOST_AXES:
        raise RequestError(f"input {name!r}: shape must have 1 to {MOST_AXES} axes; got {len(value)}.")
    return tuple(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62


def _read_outputs(items: list[Any], binary: bool) -> tuple[WantedOutput, ...]:
    outputs: dict[str, WantedOutput] = {}
    for item in items:
        name = _name(item, "an output", outputs)
        wanted = _flag(_parameters(item, f"output {name!r}"), "binary_data", binary)
        outputs[name] = WantedOutput(name, wanted)
    return tuple(outputs.values())


def _name(item: Any, what: str, earlier: dict[str, Any]) -> str:
    """The name of an input or an output, each of which is named once."""
    name = _object(item, what).get("name")
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        raise RequestError(f"{what} needs a name, a string of at most {LONGEST_NAME} characters.")
    if name in earlier:
        raise RequestError(f"{what} {name!r} is named twice.")
    return name


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RequestError(f"{what} must be a JSON object; got {type(value).__name__}.")
    return value


def _list(fields: dict[str, Any], name: str) -> list[Any]:
    value = fields.get(name)
    if not isinstance(value, list) or len(value) > MOST_TENSORS:
        got = (
            "nothing" if value is None else f"{len(value)} of them" if isinstance(value, list) else type(value).__name__
        )
        raise RequestError(f"{name} must be a list of at most {MOST_TENSORS} objects; got {got}.")
    return value


def _parameters(fields: dict[str, Any], what: str) -> dict[str, Any]:
    parameters = _object(fields.get("parameters", {}), f"parameters of {what}")
    for name in ("shared_memory_region", "classification"):
        if name in parameters:
            raise RequestError(f"{what}: the parameter {name!r} is not supported here.")
    return parameters


def _flag(parameters: dict[str, Any], name: str, default: bool) -> bool:
    value = parameters.get(name, default)
    if not isinstance(value, bool):
        raise RequestError(f"the parameter {name} must be true or false.")
    return value
