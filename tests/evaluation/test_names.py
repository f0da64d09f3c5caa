"""Names that others wrote: harmless once, where data sets are made, and the same in every part of the result."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens.checks.options import escaped, escaped_names
from credalens.evaluation import compare_models, evaluate
from credalens.storage import open_predictions, save_predictions
from tests.strategies import batch_of

KNOWN, OTHER = batch_of("peaked", 3, 60, 3, seed=1), batch_of("flat", 3, 40, 3, seed=2)
HOSTILE = ("a\x1b[31m", "a\0b", "a\ud800", "a\uffff", "a\n\tb\x9f\u202e", "\udcff")
GIVEN = st.text(st.characters(), max_size=20)


def evaluated(name, **options):
    return evaluate(
        KNOWN, {f"o{name}": OTHER}, labels=np.arange(60) % 3, class_names=[f"c{name}", "b", "c"], id_name=f"i{name}",
        groups={f"g{name}": np.array([f"v{name}", "w"], object)[np.arange(60) % 2]}, replicates=40, **options,
    )  # fmt: skip


@given(GIVEN)
def test_what_is_escaped_is_text_that_every_format_can_hold(text):
    safe = escaped(text)
    assert safe == escaped(safe)
    assert not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in safe)
    safe.encode()
    markup = safe.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert (ElementTree.fromstring(f"<t>{markup}</t>").text or "") == safe  # noqa: S314


@given(st.dictionaries(GIVEN, st.integers(), max_size=4))
def test_two_names_never_become_one(named):
    try:
        safe = escaped_names(named, "a data set")
    except ValueError:
        assert len({escaped(name) for name in named}) < len(named)
    else:
        assert list(safe.values()) == list(named.values())


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_the_same_everywhere(name):
    images = {f"i{name}": np.zeros((60, 2, 2), np.uint8)}
    found, safe = evaluated(name, images=images), escaped(name)
    assert [found.data.id.name, found.data.ood[0].name, found.data.class_names[0]] == [
        f"i{safe}",
        f"o{safe}",
        f"c{safe}",
    ]
    assert list(found.values) == [f"i{safe}", f"o{safe}"]
    assert {one.column for one in found.groups} == {"true class", f"g{safe}"}
    assert {group.name for one in found.groups for group in one.groups} == {f"c{safe}", "b", "c", f"v{safe}", "w"}
    assert {place[0] for place in found.pictures} == {f"i{safe}"}
    text = found.to_json()
    assert name not in text
    json.loads(text.encode())


def test_a_name_that_is_another_after_escaping_is_refused():
    with pytest.raises(ValueError, match=r"'a\\\\u0000' is the name of an OOD data set twice"):
        evaluate(KNOWN, {"a\0": OTHER, r"a\u0000": OTHER}, replicates=40)
    with pytest.raises(ValueError, match="names both the ID data and an OOD data set"):
        evaluate(KNOWN, {"a\0": OTHER}, id_name=r"a\u0000", replicates=40)
    with pytest.raises(ValueError, match="is the name of a model twice"):
        compare_models({"a\0": evaluated("x"), r"a\u0000": evaluated("x")})


@pytest.mark.parametrize("full", [False, True])
def test_folders_of_files_stay_out_unless_they_are_wanted(tmp_path, full):
    folder = tmp_path / "secret\x1b"
    folder.mkdir()
    save_predictions(folder / "id.npz", KNOWN)
    save_predictions(folder / "ood.npz", OTHER)
    opened = [open_predictions(folder / name) for name in ("id.npz", "ood.npz")]
    found = evaluate(opened[0], {"o": opened[1]}, replicates=40, full_paths=full)
    files = [found.data.id.file, found.data.ood[0].file]
    assert files == ([escaped(folder / "id.npz"), escaped(folder / "ood.npz")] if full else ["id.npz", "ood.npz"])
    assert ("secret" in found.to_json()) is full


class TestNamesThatBecomeOne:
    @pytest.mark.parametrize(
        ("options", "what"),
        [
            ({"class_names": ["a\0", "a\\u0000", "c"]}, "a class"),
            ({"groups": {"g": np.array(["a\x01", "a\\u0001"], object)[np.arange(60) % 2]}}, "a group"),
            ({"groups": {"a\0": np.arange(60), "a\\u0000": np.arange(60)}}, "a column of groups"),
        ],
    )
    def test_they_are_refused(self, options, what):
        with pytest.raises(ValueError, match=f"is the name of {what} twice"):
            evaluate(KNOWN, {"o": OTHER}, labels=np.arange(60) % 3, replicates=40, **options)

    def test_equal_names_of_classes_are_one_group(self):
        options = {"class_names": ["crane", "crane\0", "crane"], "groups": {"g": ["v"] * 60}}
        found = evaluate(KNOWN, {"o": OTHER}, labels=np.arange(60) % 3, replicates=40, **options)
        assert found.data.class_names == ["crane", "crane\\u0000", "crane"]
        assert {group.name: group.rows for group in found.groups[0].groups} == {"crane": 40, "crane\\u0000": 20}
