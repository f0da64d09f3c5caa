"""Where scored parts go: into a folder as Parquet, or into one file, by way of a folder of parts beside it."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple, final

import pyarrow as pa
import pyarrow.parquet as pq

from credalens.scoring.merge import Merger
from credalens.storage.arrow_path import ArrowPath
from credalens.storage.atomic import atomic_file
from credalens.storage.run_folder import RunFolder

__all__ = ["FileOutput", "FolderOutput", "Footer", "PartedOutput", "Scored", "Sums", "error_reason"]

Sums = dict[str, float]
SETTINGS, IDENTITY, SCATTERED, SUMS = b"credalens", b"credalens.part", b"credalens.scattered", b"credalens.sums"
CODE_DIFFERS: Final = "credalens was another version, whose last digits may differ"
PHRASES: Final = {
    "input": "the input is another file, or one that has changed",
    "version": CODE_DIFFERS,
    "kernels": CODE_DIFFERS,
}


class StoppedError(OSError):
    """The system refused to read or write; the message says which finished parts are kept."""


class Scored(NamedTuple):
    """Scored rows, and the sums over them."""

    table: pa.Table
    sums: Sums


@dataclass(frozen=True)
class Footer:
    """What a part says about itself besides its rows and sums; see ``ScoringJob.identity``."""

    settings: dict[str, Any]
    identity: str
    scattered: tuple[int, ...]

    def metadata(self) -> dict[bytes, str]:
        """As the metadata of an Arrow schema."""
        return {
            SETTINGS: json.dumps(self.settings),
            IDENTITY: self.identity,
            SCATTERED: json.dumps(self.scattered),
        }


class FinishedPart(NamedTuple):
    """A part that was found on disk."""

    rows: int
    sums: Sums
    identity: str
    scattered: tuple[int, ...]


class PartedOutput(ABC):
    """A run folder of scored parts."""

    run: RunFolder

    @abstractmethod
    def write_part(self, name: str, chunks: Iterator[Scored], footer: Footer, /) -> tuple[int, Sums]:
        """Write a part, which appears whole or not at all; returns its rows and sums."""

    @abstractmethod
    def stopped(self, error: str, failure: str, complete: int, parts: int, /) -> Exception:
        """What to raise where a part has an error or a machine failed, with as many of all parts complete."""

    @abstractmethod
    def _read_metadata(self, name: str) -> tuple[int, dict[bytes, bytes]]: ...

    def read_part(self, name: str, /) -> FinishedPart | None:
        """What a part says about itself; None where it is missing, damaged or of an older version."""
        try:
            rows, metadata = self._read_metadata(name)
            scattered = tuple(json.loads(metadata[SCATTERED]))
            return FinishedPart(rows, json.loads(metadata[SUMS]), metadata[IDENTITY].decode(), scattered)
        except (OSError, pa.ArrowInvalid, KeyError):
            return None


@final
@dataclass(frozen=True)
class FolderOutput(PartedOutput):
    """Parquet files, one for each part."""

    run: RunFolder

    @classmethod
    def at(cls, path: ArrowPath, /) -> FolderOutput:
        """The output in a folder."""
        return cls(RunFolder(path, manifest="_credalens.json", pattern="*.parquet"))

    def __str__(self) -> str:
        return str(self.run.path)

    def begin(self, settings: dict[str, Any], names: Collection[str], /, *, restart: bool) -> None:
        """Make the folder this run's, or find that it is; refuse one with parts that the input does not have."""
        self.run.begin(settings, restart=restart, phrases=PHRASES)
        extra = sorted(set(self.run.parts()) - set(names))
        if extra:
            raise ValueError(
                f"{self} holds {len(extra)} parts that the input no longer has, such as {extra[0]}; begin anew with "
                "--restart, or put the input's part back."
            )

    def write_part(self, name: str, chunks: Iterator[Scored], footer: Footer, /) -> tuple[int, Sums]:
        """Write the chunks as row groups."""
        first = next(chunks)  # the input is looked at before anything is written
        metadata = footer.metadata()
        schema = first.table.schema.with_metadata(metadata)
        rows, sums = 0, dict.fromkeys(first.sums, 0.0)
        with self.run.writing(name) as file, pq.ParquetWriter(file, schema, use_dictionary=["label"]) as writer:
            for table, chunk_sums in chain([first], chunks):
                writer.write_table(table.replace_schema_metadata(metadata), row_group_size=max(1, len(table)))
                rows += len(table)
                sums = {key: sums[key] + chunk_sums[key] for key in sums}
            writer.add_key_value_metadata({SUMS: json.dumps(sums)})
        return rows, sums

    def stopped(self, error: str, failure: str, complete: int, parts: int, /) -> Exception:
        """Say what is kept, and how to go on."""
        advice = (
            f"{complete} of {parts} parts are kept in {self}; the same command goes on from there, and --on-error skip "
            "leaves bad parts out."
        )
        return StoppedError(f"{failure}. {advice}") if failure else ValueError(f"{error} {advice}")

    def _read_metadata(self, name: str) -> tuple[int, dict[bytes, bytes]]:
        with (self.run.path / name).open() as file:
            footer = pq.read_metadata(file)
        return footer.num_rows, footer.metadata or {}


@final
@dataclass(frozen=True)
class FileOutput(PartedOutput):
    """One .parquet or .npz file. Finished parts are kept beside it in ``OUT.parts``, as Arrow files, which cost little."""

    file: Path
    run: RunFolder

    @classmethod
    def at(cls, file: Path, /) -> FileOutput:
        """The output in a file."""
        remedy = "Finish that run with its own options, or pass --restart (restart=True) to drop it and begin anew."
        return cls(file, RunFolder(file.with_name(f"{file.name}.parts"), pattern="part-*", remedy=remedy))

    def __str__(self) -> str:
        return str(self.file)

    @contextmanager
    def begun(self, settings: dict[str, Any], /, *, restart: bool) -> Iterator[None]:
        """Keep other runs out for the time of the block; make the folder of parts this run's, or find that it is."""
        with ExitStack() as stack:
            try:
                stack.enter_context(self.run.locked())
                self.run.begin(settings, restart=restart, phrases=PHRASES)
            except OSError as error:
                raise self._refusal(error_reason(error), len(self.run.parts())) from error
            yield

    def write_part(self, name: str, chunks: Iterator[Scored], footer: Footer, /) -> tuple[int, Sums]:
        """Write the only chunk."""
        [(table, sums)] = chunks
        table = table.replace_schema_metadata({**footer.metadata(), SUMS: json.dumps(sums)})
        with self.run.writing(name) as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        return len(table), sums

    @contextmanager
    def merging(self, names: Sequence[str], rows: int, settings: dict[str, Any], /) -> Iterator[Merger]:
        """Write the file while parts are being finished; it appears when the block ends without an error."""
        folder = Path(str(self.run.path))
        parts = [folder / name for name in names]
        try:
            with (
                atomic_file(self.file, scratch=folder) as file,
                Merger(parts, rows, file, self.file.suffix.lower(), settings) as merger,
            ):
                yield merger
        except StoppedError:
            raise
        except OSError as error:
            raise self._refusal(error_reason(error), len(self.run.parts())) from error

    def stopped(self, error: str, failure: str, complete: int, parts: int, /) -> Exception:
        """Input that is refused now is refused in every run, so that the parts are of no use to anyone."""
        if error:
            self.run.remove()
            return ValueError(error)
        return self._refusal(failure, complete)

    def _refusal(self, reason: str, complete: int) -> StoppedError:
        if not complete:
            self.run.remove()
            return StoppedError(f"cannot write {self}: {reason}.")
        return StoppedError(
            f"cannot write {self}: {reason}. {complete} finished parts are kept in {self.run.path}; make room and run the "
            "same command again to go on from there."
        )

    def _read_metadata(self, name: str) -> tuple[int, dict[bytes, bytes]]:
        with pa.OSFile(str(self.run.path / name)) as source, pa.ipc.open_file(source) as file:
            return sum(file.get_batch(n).num_rows for n in range(file.num_record_batches)), file.schema.metadata


def error_reason(error: OSError, /) -> str:
    """What the system says, without numbers and paths."""
    return os.strerror(error.errno) if error.errno else str(error)
