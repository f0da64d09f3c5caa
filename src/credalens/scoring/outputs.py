"""Where scored parts go: into a folder as Parquet, or into one file, by way of a folder of parts beside it."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from credalens.checks.options import count_text
from credalens.scoring.merge_parts import Merger
from credalens.scoring.settings import ENCODED, ScoringSettings, values_of
from credalens.storage.arrow_path import ArrowPath
from credalens.storage.atomic import atomic_file, side_name
from credalens.storage.lock import Lock
from credalens.storage.run_folder import RunFolder

Sums = dict[str, float]
ScoredChunk = tuple[pa.Table, Sums]
SETTINGS: Final = b"credalens"
FOOTER: Final = b"credalens.part"
CHECKSUM: Final = b"credalens.crc32"
CODE_DIFFERS: Final = "credalens was another version, whose last digits may differ"
PHRASES: Final = {
    "input": "the input is another file, or one that has changed",
    "version": CODE_DIFFERS,
    "kernels": CODE_DIFFERS,
}


class StoppedError(OSError):
    """The system refused to read or write; the message says which finished parts are kept."""


@dataclass(frozen=True)
class PartFooter:
    """The metadata of a part. ``scattered`` is the name that files have for the tables to gather."""

    identity: str
    scattered: Sequence[int]
    rows: int
    sums: Sums

    def metadata(self) -> dict[bytes, str]:
        """As metadata of Arrow."""
        return {FOOTER: json.dumps(asdict(self))}


def _read_footer(read_metadata: Callable[[], dict[bytes, bytes]]) -> PartFooter | None:
    """None where the part is missing, damaged or of an older version."""
    try:
        return PartFooter(**json.loads(read_metadata()[FOOTER]))
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        return None


def _checksum(table: pa.Table, footer: str) -> str:
    """Of the footer, the schema and all values: a disk may change what is still to be merged."""
    crc = zlib.crc32(f"{footer} {table.schema.remove_metadata()}".encode())
    for name in table.column_names:
        crc = zlib.crc32(np.ascontiguousarray(values_of(name, table[name])).data, crc)
    return str(crc)


@final
@dataclass(frozen=True)
class FolderOutput:
    """Parquet files, one for each part."""

    run: RunFolder

    @classmethod
    def at(cls, path: ArrowPath, /) -> FolderOutput:
        """The output in a folder."""
        return cls(RunFolder(path, manifest="_credalens.json"))

    def __str__(self) -> str:
        return str(self.run.path)

    def open_run(
        self, settings: ScoringSettings, names: Collection[str], /, *, restart: bool
    ) -> AbstractContextManager[Lock]:
        """Keep other runs out for the time of the block; make the folder this run's, or find that it is."""
        return self.run.begun(settings.as_dict(), parts=names, restart=restart, phrases=PHRASES)

    def write_part(
        self,
        name: str,
        chunks: Iterator[ScoredChunk],
        settings: ScoringSettings,
        identity: str,
        tables_to_gather: Sequence[int],
    ) -> PartFooter:
        """Write the chunks as row groups; the part appears whole or not at all."""
        first = next(chunks)  # the input is looked at before anything is written
        metadata = {SETTINGS: json.dumps(settings.as_dict())}
        schema = first[0].schema.with_metadata(metadata)
        rows, total = 0, dict.fromkeys(first[1], 0.0)
        with (
            self.run.writing(name) as file,
            pq.ParquetWriter(file, schema, use_dictionary=ENCODED, write_page_checksum=True) as writer,
        ):
            for table, sums in chain([first], chunks):
                writer.write_table(table.replace_schema_metadata(metadata), row_group_size=max(1, len(table)))
                rows += len(table)
                total = {key: total[key] + sums[key] for key in total}
            footer = PartFooter(identity, tables_to_gather, rows, total)
            writer.add_key_value_metadata(footer.metadata())
        return footer

    def read_footer(self, name: str, /) -> PartFooter | None:
        """The footer of a finished part."""

        def read_metadata() -> Any:
            with (self.run.path / name).open() as file:
                return pq.read_metadata(file).metadata

        return _read_footer(read_metadata)

    def stopped(self, error: str, failure: str, complete: int, parts: int, /) -> Exception:
        """The error for a part that has a fault or a machine that failed: it says what is kept, and how to continue."""
        advice = (
            f"{complete} of {parts} parts are kept in {self}; the same command resumes from there, and --on-error skip "
            "leaves bad parts out."
        )
        return StoppedError(f"{failure}. {advice}") if failure else ValueError(f"{error} {advice}")


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


@final
@dataclass(frozen=True)
class FileOutput:
    """One .parquet or .npz file. Finished parts are kept beside it in ``OUT.parts``, as Arrow files, which cost little."""

    file: Path
    run: RunFolder

    @classmethod
    def at(cls, file: Path, /) -> FileOutput:
        """The output in a file."""
        remedy = "Finish that run with its own options, or pass --restart (restart=True) to drop it and begin anew."
        return cls(file, RunFolder(file.with_name(side_name(file.name, ".parts")), remedy=remedy))

    def __str__(self) -> str:
        return str(self.file)

    @contextmanager
    def open_run(self, settings: ScoringSettings, names: Collection[str], /, *, restart: bool) -> Iterator[Lock]:
        """Keep other runs out for the time of the block; make the folder of parts this run's, or find that it is."""
        with ExitStack() as stack:
            stack.callback(_remove_if_empty, Path(str(self.run.path)))  # also one that a kill left
            try:
                run = self.run.begun(settings.as_dict(), parts=names, restart=restart, phrases=PHRASES)
                lock = stack.enter_context(run)
            except OSError as error:
                raise self._refusal(error_reason(error)) from error
            yield lock

    def write_part(
        self,
        name: str,
        chunks: Iterator[ScoredChunk],
        settings: ScoringSettings,
        identity: str,
        tables_to_gather: Sequence[int],
    ) -> PartFooter:
        """Write the only chunk; the part appears whole or not at all."""
        [(table, sums)] = chunks
        footer = PartFooter(identity, tables_to_gather, len(table), sums)
        metadata = footer.metadata()
        table = table.replace_schema_metadata({**metadata, CHECKSUM: _checksum(table, metadata[FOOTER])})
        with self.run.writing(name) as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        return footer

    def read_footer(self, name: str, /) -> PartFooter | None:
        """The footer of a finished part whose bytes are those that were written."""

        def read_metadata() -> Any:
            with pa.memory_map(str(self.run.path / name)) as source, pa.ipc.open_file(source) as file:
                metadata = file.schema.metadata
                if _checksum(file.read_all(), metadata[FOOTER].decode()).encode() != metadata[CHECKSUM]:
                    raise ValueError(f"{name} has changed since it was written.")
                return metadata

        return _read_footer(read_metadata)

    @contextmanager
    def merging(self, names: Sequence[str], settings: ScoringSettings, /) -> Iterator[Merger]:
        """Write the file while parts are being finished; it appears when the block ends without an error."""
        folder = Path(str(self.run.path))
        parts = [folder / name for name in names]
        try:
            with (
                atomic_file(self.file, scratch=folder) as file,
                Merger(parts, settings, file, self.file.suffix.lower()) as merger,
            ):
                yield merger
        except StoppedError:
            raise
        except OSError as error:
            raise self._given_up(error_reason(error)) from error

    def stopped(self, error: str, failure: str, complete: int, parts: int, /) -> Exception:
        """Input that is refused now is refused in every run, so that the parts are of no use to anyone."""
        if not error:
            return self._given_up(failure)
        self.run.clear()
        return ValueError(error)

    def _refusal(self, reason: str) -> StoppedError:
        complete = len(self.run.parts())
        if not complete:
            return StoppedError(f"cannot write {self}: {reason}.")
        return StoppedError(
            f"cannot write {self}: {reason}. {self.run.path} keeps {count_text(complete, 'finished part')}; make room and "
            "run the same command again to resume from there."
        )

    def _given_up(self, reason: str) -> StoppedError:
        """The refusal of a run that has the lock; without a finished part it leaves nothing."""
        if not self.run.parts():
            self.run.clear()
        return self._refusal(reason)


def error_reason(error: OSError, /) -> str:
    """What the system says, without numbers and paths."""
    return os.strerror(error.errno) if error.errno else str(error)
