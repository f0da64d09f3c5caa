"""What a run over a folder is about to do, and how to tell its finished parts from others."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from credalens import __version__
from credalens.checks.options import check_base, check_choice
from credalens.core.decisions import RULES
from credalens.scoring.joined import Inputs
from credalens.scoring.places import Place
from credalens.scoring.plan import rows_at_a_time
from credalens.scoring.tables import MemberColumns, Table, columns_in, schema_of

__all__ = ["FolderJob", "make_folder_job"]


@dataclass(frozen=True)
class FolderJob:
    """All that a worker needs to score a part: it can be sent to another machine.

    :ivar settings: everything but the input that decides what ends up in the parts.
    """

    inputs: Inputs
    target: Place
    base: float
    rule: str
    chunk_rows: int
    threads: int | None
    settings: dict[str, Any]

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return len(self.inputs.tables[0].parts)

    def fits_this_machine(self) -> bool:
        """Whether the code here gives the same digits as that of the machine where the job was made."""
        return all(self.settings[name] == value for name, value in _code().items())

    def output(self, number: int, /) -> Place:
        """Where a part of the output goes: under the name of the input's part."""
        return self.target / self.inputs.tables[0].parts[number].name

    def identity(self, number: int, scattered: Container[int], /) -> str:
        """A hash of the settings and of the files that a part is made from; it moves when one of them is written again.

        Behind a part are all files of a table in which its rows are ``scattered``, and elsewhere its partner alone.
        """
        first = self.inputs.tables[0].parts[number]
        others = [self._behind(number, place, scattered) for place in range(1, len(self.inputs.tables))]
        return hashlib.sha256(json.dumps([self.settings, asdict(first), *others]).encode()).hexdigest()

    def _behind(self, number: int, place: int, scattered: Container[int]) -> Any:
        table = self.inputs.tables[place]
        if place in scattered or self.inputs.partner(number, place) is None:
            return [asdict(part) for part in table.parts]
        return asdict(table.parts[number])


def make_folder_job(
    tables: Sequence[Table],
    target: Place,
    /,
    *,
    logits: bool,
    base: float,
    rule: str,
    id_column: str | None,
    chunk_rows: int | None,
    threads: int | None,
) -> FolderJob:
    """Check the options, look at the first readable part of each table, and settle how many rows are scored at a time."""
    base, rule = check_base(base), check_choice(rule, RULES, "rule")
    columns = [_columns_of(table, logits, id_column) for table in tables]
    _check_alike(tables, columns)
    members, classes = sum(one.members for one in columns), columns[0].classes
    settings = {
        **_code(),
        "logits": logits,
        "base": base,
        "rule": rule,
        "members": members,
        "classes": classes,
        "dtype": columns[0].dtype,
        "id": id_column,
    }
    inputs = Inputs(tuple(tables), tuple(columns), id_column, logits)
    rows = rows_at_a_time(members, classes, chunk_rows)
    return FolderJob(inputs, target, base, rule, rows, threads, settings)


def _code() -> dict[str, str]:
    from credalens.kernels.simd.jit import FINGERPRINT

    return {"version": __version__, "kernels": FINGERPRINT}


def _columns_of(table: Table, logits: bool, id_column: str | None) -> MemberColumns:
    """From the first part whose footer can be read; what is wrong with the others their own turn will tell."""
    problem: ValueError | None = None
    for number in range(len(table.parts)):
        part = table.part(number)
        try:
            schema_of(part)
        except ValueError as error:
            problem = problem or error
            continue
        return columns_in(part, logits=logits, id_column=id_column)
    raise ValueError(f"{table}: none of its {len(table.parts)} parts can be read; the first: {problem}")


def _check_alike(tables: Sequence[Table], columns: Sequence[MemberColumns]) -> None:
    first = columns[0]
    for table, own in zip(tables, columns, strict=True):
        if (own.classes, own.dtype) != (first.classes, first.dtype):
            raise ValueError(
                f"{table} holds {own.classes} classes in {own.dtype}, {tables[0]} {first.classes} in {first.dtype}; all "
                "tables must describe the same classes in the same precision."
            )
