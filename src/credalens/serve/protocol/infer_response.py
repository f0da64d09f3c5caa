"""The response to a request to infer: JSON, and after it the outputs that were asked for as binary data.

It is written in pieces: one call of the encoder for millions of numbers would hold the interpreter, and with it the event loop,
for seconds, and lists of them take many times the memory of the arrays.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from numpy.typing import NDArray
from starlette.responses import Response

from credalens.serve.protocol.binary_tensors import tensor_to_bytes
from credalens.serve.protocol.errors import RequestError
from credalens.serve.protocol.infer_request import WantedOutput
from credalens.serve.protocol.json_tensors import described

HEADER_LENGTH: Final = "Inference-Header-Content-Length"
AT_ONCE: Final = 4096  # values that the encoder gets at a time: it takes some milliseconds for them


@dataclass(frozen=True, eq=False)
class Answer:
    """What a request gets, not yet written.

    :ivar about: the model's name and version, and the request's id.
    :ivar arrays: the outputs by name.
    """

    about: dict[str, Any]
    outputs: tuple[WantedOutput, ...]
    arrays: dict[str, NDArray]

    @property
    def is_short(self) -> bool:
        """Whether it is written in some milliseconds. Binary data are copied, in a hundredth of the time that text takes."""
        values = sum(self.arrays[output.name].size // (128 if output.binary else 1) for output in self.outputs)
        return values <= AT_ONCE

    def written(self, given_up: Callable[[], bool] = lambda: False, /) -> InferResponse:
        """As bytes; ``given_up`` says whether nobody waits for them any more."""
        tail = [tensor_to_bytes(self.arrays[output.name]) for output in self.outputs if output.binary]
        text = []
        for piece in _blocks(self._text([len(part) for part in tail])):
            if given_up():
                raise RequestError("nobody waits for the answer.", status=504)
            text.append(piece)
        if not tail:
            return InferResponse(text, {"Content-Type": "application/json"})
        headers = {"Content-Type": "application/octet-stream", HEADER_LENGTH: str(sum(map(len, text)))}
        return InferResponse([*text, *tail], headers)

    def _text(self, sizes: list[int]) -> Iterator[str]:
        """The JSON; ``sizes`` are those of the outputs as binary data."""
        rest = iter(sizes)
        outputs = [
            described(self.arrays[output.name], output.name)
            | ({"parameters": {"binary_data_size": next(rest)}} if output.binary else {})
            for output in self.outputs
        ]
        data = [None if output.binary else self.arrays[output.name].ravel() for output in self.outputs]
        if self.is_short:
            filled = [
                x if array is None else x | {"data": array.tolist()} for x, array in zip(outputs, data, strict=True)
            ]
            yield json.dumps(self.about | {"outputs": filled}, allow_nan=False)
            return
        yield json.dumps(self.about)[:-1] + ', "outputs": ['
        for n, (about, array) in enumerate(zip(outputs, data, strict=True)):
            yield ", " * (n > 0) + json.dumps(about)[:-1]
            yield from () if array is None else _numbers(array)
            yield "}"
        yield "]}"


def _numbers(array: NDArray) -> Iterator[str]:
    yield ', "data": ['
    for start in range(0, array.size, AT_ONCE):
        part = array[start : start + AT_ONCE].tolist()
        yield ", " * (start > 0) + json.dumps(part, allow_nan=False)[1:-1]
    yield "]"


def _blocks(texts: Iterator[str]) -> Iterator[bytes]:
    """Texts joined to blocks of some size, each of which is sent at once."""
    gathered, size = [], 0
    for text in texts:
        gathered.append(text)
        size += len(text)
        if size >= 16 * AT_ONCE:
            yield "".join(gathered).encode()
            gathered, size = [], 0
    yield "".join(gathered).encode()


class InferResponse(Response):
    """An HTTP response in pieces, each of which is let go once it is sent."""

    def __init__(self, pieces: list[bytes], headers: dict[str, str]) -> None:
        self._pieces = pieces
        super().__init__(headers=headers | {"Content-Length": str(sum(map(len, pieces)))})

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send all of them."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        pieces = self._pieces[::-1]
        self._pieces = []
        while pieces:
            await send({"type": "http.response.body", "body": pieces.pop(), "more_body": bool(pieces)})
