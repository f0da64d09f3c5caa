"""Guards as earlier versions wrote them; a new version of the format takes its fields away here."""

from __future__ import annotations

from typing import Any

from credalens.guard import Guard


def earlier_fields(guard: Guard, version: int, /) -> dict[str, Any]:
    """The fields that a guard had in a file of that version."""
    fields = guard.saved_fields()
    if version < 4:
        for name in ("temperatures", "costs", "cost"):
            del fields[name]
    if version < 3:
        fields = {"members": fields.pop("note"), **fields}
    if version < 2:
        del fields["rounding"]
    return fields
