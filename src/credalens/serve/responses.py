"""Answers to requests to infer: written and sent in pieces.

One call of the encoder for millions of numbers would hold the interpreter, and with it the event loop, for seconds, and
lists of them take many times the memory of the arrays.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final

from numpy.typing import NDArray
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from credalens.serve.places import Place, Room, is_read_slowly
from credalens.serve.protocol import HEADER_LENGTH, RequestError, WantedOutput, datatype_of, tensor_to_bytes

AT_ONCE: Final = 4096  # values that the encoder gets at a time: it takes some milliseconds for them
NUMBER: Final = 26  # bytes that a number and what is between two of them take at most as text
SHORT: Final = 128 << 10  # bytes up to which an answer is not long
PIECE: Final = 64 << 10  # bytes that a connection gets at once: its client has to read them before it gets more


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to a request, not yet written.

    :ivar about: the model's name and version, and the request's id.
    """

    about: dict[str, Any]
    outputs: tuple[WantedOutput, ...]
    arrays: dict[str, NDArray]

    @property
    def is_quick(self) -> bool:
        """Whether it is written in some milliseconds: binary data take a hundredth of the time that text takes."""
        values = sum(self.arrays[output.name].size // (128 if output.binary else 1) for output in self.outputs)
        return values <= AT_ONCE

    @property
    def most_bytes(self) -> int:
        """About the number of bytes, before it is written."""
        arrays = ((self.arrays[output.name], output.binary) for output in self.outputs)
        return sum(array.nbytes if binary else NUMBER * array.size for array, binary in arrays)

    def written(self, given_up: Callable[[], bool] = lambda: False, /) -> InferResponse:
        """Write the answer as bytes; ``given_up`` says whether nobody waits for them any more."""
        tail = {output.name: tensor_to_bytes(self.arrays[output.name]) for output in self.outputs if output.binary}
        pieces, texts, size = [], list[str](), 0
        for text in self._texts(tail):
            texts.append(text)
            size += len(text)
            if size >= 16 * AT_ONCE:
                pieces.append("".join(texts).encode())
                texts, size = [], 0
                if given_up():
                    raise RequestError("nobody waits for the answer.", status=504)
        pieces.append("".join(texts).encode())
        if not tail:
            return InferResponse(pieces, {"Content-Type": "application/json"})
        headers = {"Content-Type": "application/octet-stream", HEADER_LENGTH: str(sum(map(len, pieces)))}
        return InferResponse([*pieces, *tail.values()], headers)

    def _texts(self, tail: dict[str, bytes]) -> Iterator[str]:
        """The JSON in parts; ``tail`` has the binary data behind it."""
        outputs, quick = list[dict[str, Any]](), self.is_quick
        for output in self.outputs:
            array = self.arrays[output.name]
            outputs.append({"name": output.name, "datatype": datatype_of(array), "shape": list(array.shape)})
            if output.binary:
                outputs[-1]["parameters"] = {"binary_data_size": len(tail[output.name])}
            elif quick:
                outputs[-1]["data"] = array.ravel().tolist()
        if quick:
            yield json.dumps(self.about | {"outputs": outputs}, allow_nan=False)
            return
        yield json.dumps(self.about)[:-1] + ', "outputs": ['
        for n, (output, described) in enumerate(zip(self.outputs, outputs, strict=True)):
            yield ", " * (n > 0) + json.dumps(described)[:-1]
            if not output.binary:
                values = self.arrays[output.name].ravel()
                yield ', "data": ['
                for start in range(0, values.size, AT_ONCE):
                    part = values[start : start + AT_ONCE].tolist()
                    yield ", " * (start > 0) + json.dumps(part, allow_nan=False)[1:-1]
                yield "]"
            yield "}"
        yield "]}"


class InferResponse(Response):
    """An HTTP response in pieces, each of which must be read before the next is sent, and is then released.

    A long one has a place in a room, which it gives back when it is read. If it has to give way it ends early, and the
    server closes the connection.
    """

    def __init__(self, pieces: list[bytes], headers: dict[str, str]) -> None:
        self._pieces = pieces
        self.place = Place(sum(map(len, pieces)), is_read_slowly)
        self.room: Room | None = None
        super().__init__(headers=headers | {"Content-Length": str(self.place.size)})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all of them."""
        pieces, self._pieces = self._pieces[::-1], []
        self.place.since = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(None) if self.room is not None else nullcontext() as self.place.limit:
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                while pieces:
                    piece = pieces.pop()
                    for start in range(0, max(len(piece), 1), PIECE):
                        body, more = piece[start : start + PIECE], bool(pieces) or start + PIECE < len(piece)
                        await send({"type": "http.response.body", "body": body, "more_body": more})
                        self.place.moved += len(body)
        except TimeoutError:
            return
        finally:
            if self.room is not None:
                self.room.give_back(self.place)
