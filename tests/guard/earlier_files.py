"""Guards as earlier versions wrote them."""

from __future__ import annotations

from typing import Any

from credalens.guard import Guard


def earlier_fields(guard: Guard, /) -> dict[str, Any]:
    """The fields of a guard under the names of versions 1 and 2."""
    fields = guard.saved_fields()
    return {"members": fields.pop("note"), **fields}
