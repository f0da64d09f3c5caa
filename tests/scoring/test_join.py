"""Tables of one model each are joined by row id: however their rows are cut and ordered, the scores are the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens import wrap
from credalens.scoring import join, score_folder
from credalens.scoring.settings import score_columns
from tests.arrow_features import can_write_null_lists
from tests.scoring.folders import parts
from tests.scoring.tables import read_columns, write_model, write_part
from tests.strategies import batch_of

ROWS = 40
VALUES = batch_of("mixed", 3, ROWS, 4)
IDS = pa.array(np.arange(ROWS) * 3 + 5)
EVEN = np.split(np.arange(ROWS), 4)


def write_models(folder, layouts, ids=IDS):
    """A folder for each model, its rows laid out as told."""
    for number, places in enumerate(layouts):
        write_model(folder / f"model-{number}", VALUES[number], ids, places)
    return [folder / f"model-{number}" for number in range(len(layouts))]


def assert_joined(folder, *, ids=IDS) -> None:
    """Every row of the first table exactly once and in its order, with the scores of all members."""
    found = read_columns(parts(folder))
    np.testing.assert_array_equal(found.pop("id"), ids.to_numpy(zero_copy_only=False))
    for name, column in score_columns(wrap(VALUES), "maximality").items():
        np.testing.assert_array_equal(found[name], column, err_msg=name)


def refuse_lookup(*args):
    raise AssertionError("parts that line up need no look-up")


@pytest.mark.parametrize("chunk_rows", [3, 10, 1000])
def test_parts_that_line_up_are_read_side_by_side(tmp_path, monkeypatch, chunk_rows):
    monkeypatch.setattr(join, "lookup", refuse_lookup)
    score_folder(write_models(tmp_path, [EVEN] * 3), tmp_path / "out", chunk_rows=chunk_rows)
    assert_joined(tmp_path / "out")
    assert len(parts(tmp_path / "out")) == 4


def test_file_names_need_not_be_the_same_to_line_up(tmp_path, monkeypatch):
    monkeypatch.setattr(join, "lookup", refuse_lookup)
    sources = write_models(tmp_path, [EVEN] * 3)
    for path in parts(sources[1]):
        path.rename(path.with_name(f"other-{path.name}"))
    score_folder(sources, tmp_path / "out")
    assert_joined(tmp_path / "out")


@st.composite
def layouts(draw):
    """The rows in any order, cut anywhere, also into empty parts."""
    order = draw(st.permutations(range(ROWS)))
    cuts = sorted(draw(st.lists(st.integers(0, ROWS), max_size=5)))
    return [np.array(own, int) for own in np.split(np.array(order), cuts)]


@given(layouts(), layouts(), st.sampled_from([4, 1000]), st.booleans())
@settings(derandomize=True, deadline=None, max_examples=20)
def test_any_layout_of_the_other_tables_gives_the_same(tmp_path_factory, second, third, chunk_rows, words):
    folder = tmp_path_factory.mktemp("joined")
    ids = pa.array([f"image {n:02d}" for n in range(ROWS)]) if words else IDS
    sources = write_models(folder, [EVEN, second, third], ids)
    score_folder(sources, folder / "out", chunk_rows=chunk_rows)
    assert_joined(folder / "out", ids=ids)


@pytest.mark.parametrize(
    ("limit", "rows"), [("LOOKED_UP", 6), ("LOOKED_UP_IN_ALL", 12)]
)  # all: two tables beside the first
def test_rows_are_looked_up_in_blocks_of_bounded_size(tmp_path, monkeypatch, limit, rows):
    sizes = []

    def counted(table, columns, ids, name):
        sizes.append(len(ids))
        return plain(table, columns, ids, name)

    plain = join.lookup
    monkeypatch.setattr(join, "lookup", counted)
    monkeypatch.setattr(join, limit, rows * 4 * VALUES.itemsize)  # rows of four classes
    sources = write_models(tmp_path, [[np.arange(ROWS)], [np.arange(ROWS)[::-1]], [np.arange(ROWS)]])
    score_folder(sources, tmp_path / "out", chunk_rows=3)
    assert_joined(tmp_path / "out")
    assert sizes == [6] * 6 + [4]


def test_ids_of_a_narrower_type_are_the_same_ids(tmp_path):
    sources = write_models(tmp_path, [EVEN] * 3)
    for path in parts(sources[1]):
        table = pq.read_table(path)
        pq.write_table(table.set_column(0, "id", table["id"].cast(pa.int32())), path)
    score_folder(sources, tmp_path / "out")
    assert_joined(tmp_path / "out")


def test_a_table_may_hold_several_members(tmp_path):
    write_part(tmp_path / "pair" / "a.parquet", VALUES[:2].transpose(1, 0, 2), IDS)
    write_part(tmp_path / "single" / "a.parquet", VALUES[2], IDS)
    score_folder([tmp_path / "pair", tmp_path / "single"], tmp_path / "out")
    found = read_columns((tmp_path / "out").glob("*.parquet"))
    np.testing.assert_array_equal(found["lower"], wrap(VALUES).lower)


def test_a_missing_id_is_named(tmp_path):
    sources = write_models(tmp_path, [EVEN, EVEN, [EVEN[0], EVEN[1], EVEN[3]]])
    with pytest.raises(ValueError, match=r"model-2: lacks 10 of 10 rows .* id 65\."):
        score_folder(sources, tmp_path / "out")
    summary = score_folder(sources, tmp_path / "out", on_error="skip")
    assert [path.name for path in parts(tmp_path / "out")] == ["part-0.parquet", "part-1.parquet", "part-3.parquet"]
    assert [skipped.part.rpartition("/")[2] for skipped in summary.skipped] == ["part-2.parquet"]


def test_an_id_that_stands_twice_is_named(tmp_path):
    sources = write_models(tmp_path, [EVEN, [np.r_[0:40, 7]]])
    with pytest.raises(ValueError, match=r"model-1: has 1 id more than once in 'id', such as 26"):
        score_folder(sources, tmp_path / "out")


def test_a_row_without_an_id_is_named(tmp_path):
    sources = write_models(tmp_path, [EVEN] * 2)
    ids = IDS.take(EVEN[2]).to_pylist()
    ids[6] = None
    for source in sources:
        write_part(source / "part-2.parquet", VALUES[0][EVEN[2]], pa.array(ids))
    with pytest.raises(ValueError, match=r"part-2.parquet: column 'id' has no id in row 6"):
        score_folder(sources, tmp_path / "out", chunk_rows=4)


def test_a_row_without_an_id_is_named_where_ids_are_looked_up(tmp_path):
    sources = write_models(tmp_path, [EVEN, [np.arange(ROWS)]])
    ids = IDS.take(EVEN[2]).to_pylist()
    ids[6] = None
    write_part(sources[0] / "part-2.parquet", VALUES[0][EVEN[2]], pa.array(ids))
    with pytest.raises(ValueError, match=r"model-0/part-2.parquet: column 'id' has no id in row 6"):
        score_folder(sources, tmp_path / "out", chunk_rows=4)


@pytest.mark.skipif(not can_write_null_lists(), reason="this pyarrow cannot write a missing list")
def test_a_missing_list_is_named_by_its_id_where_ids_are_looked_up(tmp_path):
    sources = write_models(tmp_path, [EVEN, [np.arange(ROWS)[::-1]]])
    table = pq.read_table(sources[1] / "part-0.parquet")
    lists = [None if place == 13 else one for place, one in enumerate(table["probs"].to_pylist())]
    columns = {"id": table["id"], "probs": pa.array(lists, table["probs"].type)}
    pq.write_table(pa.table(columns), sources[1] / "part-0.parquet")
    with pytest.raises(ValueError, match=rf"model-1: .*'probs' .* id {table['id'][13]};"):
        score_folder(sources, tmp_path / "out")


@pytest.mark.parametrize("first", ["plain", "dictionary"])
@pytest.mark.parametrize("second", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_text_is_looked_up_however_it_is_stored(tmp_path, first, second):
    ids = IDS.cast(pa.string())
    write_model(tmp_path / "a", VALUES[0], ids.dictionary_encode() if first == "dictionary" else ids, EVEN)
    write_model(tmp_path / "b", VALUES[1], ids.cast(second), [np.arange(ROWS)[::-1]])
    score_folder([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    np.testing.assert_array_equal(read_columns(parts(tmp_path / "out"))["lower"], wrap(VALUES[:2]).lower)


def test_ids_that_cannot_be_compared_are_no_damage(tmp_path):
    write_model(tmp_path / "a", VALUES[0], IDS, EVEN)
    write_model(tmp_path / "b", VALUES[1], IDS.cast(pa.string()), [np.arange(ROWS)])
    with pytest.raises(ValueError, match=r"b: has string in 'id', .*int64; give .* one type"):
        score_folder([tmp_path / "a", tmp_path / "b"], tmp_path / "out")


def test_a_part_may_line_up_in_its_beginning_only(tmp_path, monkeypatch):
    """What lines up is read side by side, and the rest is looked up."""
    sizes = []

    def counted(table, columns, ids, name):
        sizes.append(len(ids))
        return plain(table, columns, ids, name)

    plain = join.lookup
    monkeypatch.setattr(join, "lookup", counted)
    swapped = [EVEN[0], EVEN[1][[0, 1, 2, 3, 4, 5, 9, 7, 8, 6]], *EVEN[2:]]
    score_folder(write_models(tmp_path, [EVEN, swapped]), tmp_path / "out", chunk_rows=3)
    assert sizes == [4]
    np.testing.assert_array_equal(read_columns(parts(tmp_path / "out"))["lower"], wrap(VALUES[:2]).lower)


def test_partners_with_more_rows_are_looked_through(tmp_path):
    """Equal ids up to the end of a part do not tell that its partner repeats one."""
    sources = write_models(tmp_path, [EVEN, [np.r_[0:10, 3], *EVEN[1:]]])
    with pytest.raises(ValueError, match=r"model-1: has 1 id more than once in 'id', such as 14"):
        score_folder(sources, tmp_path / "out")


@pytest.mark.parametrize("layout", [EVEN, [np.arange(ROWS)[::-1]]], ids=["lined up", "scattered"])
def test_a_bad_row_is_named_with_its_id_and_its_model(tmp_path, layout):
    values = VALUES.copy()
    values[1, 23] *= 2
    ids = pa.array(IDS)
    write_model(tmp_path / "a", values[0], ids, EVEN)
    write_model(tmp_path / "b", values[1], ids, layout)
    with pytest.raises(ValueError, match=r"a/part-2.parquet: row 3 \(id 74\), member 1 "):
        score_folder([tmp_path / "a", tmp_path / "b"], tmp_path / "out")


def test_a_damaged_file_costs_only_the_rows_it_holds(tmp_path):
    sources = write_models(tmp_path, [EVEN, EVEN, np.split(np.arange(ROWS), 8)])
    damaged = sources[2] / "part-5.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-20])
    summary = score_folder(sources, tmp_path / "out", on_error="skip")
    [skipped] = summary.skipped
    assert skipped.part.endswith("part-2.parquet")
    assert "1 of its files cannot be read, the first is part-5.parquet" in skipped.error
    assert summary.scores.rows == 30


def test_tables_must_describe_the_same_classes(tmp_path):
    sources = write_models(tmp_path, [EVEN] * 2)
    write_part(tmp_path / "wide" / "a.parquet", batch_of("flat", 1, ROWS, 5)[0], IDS)
    with pytest.raises(ValueError, match=r"wide holds 5 classes in float64, .*model-0 4 in float64"):
        score_folder([*sources, tmp_path / "wide"], tmp_path / "out")
    write_part(tmp_path / "nameless" / "a.parquet", VALUES[0])
    with pytest.raises(ValueError, match=r"nameless/a.parquet: .*'id' of row ids; it has probs"):
        score_folder([*sources, tmp_path / "nameless"], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    for path in parts(sources[1])[1:]:
        write_part(path, VALUES[0][:10])
    with pytest.raises(ValueError, match=r"model-1/part-1.parquet: has no column 'id' of row ids"):
        score_folder(sources, tmp_path / "out")


def test_another_file_behind_a_part_is_noticed(tmp_path):
    sources = write_models(tmp_path, [EVEN, EVEN, [np.arange(ROWS)]])
    score_folder(sources, tmp_path / "out")
    write_part(sources[1] / "part-1.parquet", VALUES[1][EVEN[1]], IDS.take(EVEN[1]), group=3)
    assert score_folder(sources, tmp_path / "out").resumed_parts == 3
    write_model(sources[2], VALUES[2], IDS, [np.arange(ROWS)[::-1]])
    assert score_folder(sources, tmp_path / "out").resumed_parts == 0
    assert_joined(tmp_path / "out")


def test_partners_that_are_none_any_more_are_noticed(tmp_path):
    sources = write_models(tmp_path, [EVEN, EVEN])
    score_folder(sources, tmp_path / "out")
    write_part(sources[1] / "part-4.parquet", VALUES[1][:0], IDS[:0])
    assert score_folder(sources, tmp_path / "out").resumed_parts == 0
    (sources[1] / "part-4.parquet").unlink()
    (sources[1] / "part-3.parquet").unlink()
    with pytest.raises(ValueError, match="model-1: lacks 10 of 10 rows"):
        score_folder(sources, tmp_path / "out")
    assert "part-3.parquet" not in [path.name for path in parts(tmp_path / "out")]


def test_another_file_with_scattered_rows_of_a_part_is_noticed(tmp_path):
    """As many files as the first table, but none of them is the partner of a part alone."""
    order = np.random.default_rng(0).permutation(ROWS)
    sources = write_models(tmp_path, [EVEN, EVEN, np.split(order, 4)])
    score_folder(sources, tmp_path / "out")
    last = order[-ROWS // 4 :]
    write_part(sources[2] / "part-3.parquet", VALUES[0][last], IDS.take(last), group=3)
    assert score_folder(sources, tmp_path / "out").resumed_parts == 0
    score_folder(sources, tmp_path / "fresh")
    for path in parts(tmp_path / "out"):
        assert path.read_bytes() == (tmp_path / "fresh" / path.name).read_bytes()
    (sources[2] / "part-3.parquet").unlink()
    with pytest.raises(ValueError, match="model-2: lacks"):
        score_folder(sources, tmp_path / "out")


def test_rows_that_only_a_later_table_has_are_not_dropped_unsaid(tmp_path):
    fewer = [EVEN[0], EVEN[1], EVEN[3]]
    sources = write_models(tmp_path, [fewer, EVEN, [np.arange(ROWS)[::-1]]])
    with pytest.raises(ValueError, match=r"model-1: .* 10 rows .*model-0 lacks.*--join first"):
        score_folder(sources, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    summary = score_folder(sources, tmp_path / "out", join="first")
    assert summary.left_out_rows == {str(source): 10 for source in sources[1:]}
    assert (summary.scores.rows, summary.repeated_ids) == (30, 0)


@pytest.mark.parametrize("layout", [[np.r_[0:20, 3], np.r_[20:40]], [np.r_[0:20], np.r_[20:40, 3]]])
def test_an_id_that_stands_twice_in_the_first_table_is_named(tmp_path, layout):
    sources = write_models(tmp_path, [layout, [np.arange(ROWS)]])
    with pytest.raises(ValueError, match=r"model-0: 1 row .* such as \d+\. .*--join"):
        score_folder(sources, tmp_path / "out")
    summary = score_folder(sources, tmp_path / "out", join="first")
    assert (summary.scores.rows, summary.repeated_ids, summary.left_out_rows) == (41, 1, {})


def test_a_damaged_part_of_the_first_table_is_no_difference_of_ids(tmp_path):
    sources = write_models(tmp_path, [EVEN] * 2)
    damaged = sources[0] / "part-1.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-20])
    assert score_folder(sources, tmp_path / "out", on_error="skip").scores.rows == 30
    with pytest.raises(ValueError, match="join must be one of"):
        score_folder(sources, tmp_path / "out", join="outer")
