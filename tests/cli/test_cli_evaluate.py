"""``credalens evaluate``: the files it writes, what it prints, and one clear line for everything that can be wrong."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import accuracy_score, average_precision_score, log_loss, roc_auc_score

from credalens import wrap
from credalens.guard import Guard
from credalens.storage import save_predictions
from tests.cli.running import run
from tests.strategies import batch_of

CLASSES, ROWS = 4, 60


pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def folder(tmp_path):
    """Predictions and labels of every kind a test needs, in a folder of their own."""
    place = tmp_path / "in"
    place.mkdir()
    labels = np.arange(ROWS) % CLASSES
    known = batch_of("peaked", 3, ROWS, CLASSES, seed=1)
    other = batch_of("flat", 3, 40, CLASSES, seed=2)
    np.save(place / "id.npy", known)
    np.save(place / "labels.npy", labels)
    save_predictions(place / "both.npz", known, labels)
    save_predictions(place / "ood.parquet", other)
    np.save(place / "ood.npy", other)
    return place


def common(folder, *more):
    return ("evaluate", "--id", folder / "id.npy", "--replicates", 60, *more)


def test_the_report_and_its_numbers(capsys, folder, tmp_path):
    ood = ("--ood", f"flat={folder / 'ood.parquet'}", "--ood", f"again={folder / 'ood.npy'}")
    code, out, err = run(capsys, *common(folder, "--labels", folder / "labels.npy", *ood, "-o", tmp_path / "out"))
    assert (code, err) == (0, "")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "guard.json",
        "report.html",
        "report.json",
    ]
    result = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    inside, outside = (wrap(np.load(folder / name)) for name in ("id.npy", "ood.npy"))
    truth = np.repeat([0, 1], [ROWS, 40])
    for one in result["ood"]:
        for kind, a, b in (("credal", inside, outside), ("averaged", inside.classical, outside.classical)):
            for measure in ("epistemic", "total"):
                scores = np.concatenate([getattr(a, measure), getattr(b, measure)])
                assert one[measure][kind]["auroc"] == pytest.approx(roc_auc_score(truth, scores), abs=1e-12)
                assert one[measure][kind]["auprc"] == pytest.approx(average_precision_score(truth, scores), abs=1e-12)
    accuracy = accuracy_score(np.load(folder / "labels.npy"), inside.predict())
    assert result["calibration"]["credal"]["accuracy"] == accuracy
    assert [one["name"] for one in result["ood"]] == ["flat", "again"]
    assert f"{100 * result['ood'][0]['epistemic']['credal']['auroc']:.2f}" in out
    assert f"Report: {(tmp_path / 'out' / 'report.html').resolve()}" in out
    assert Guard.load(tmp_path / "out" / "guard.json").false_alarm_rate == 0.05


def test_labels_in_the_file_are_found(capsys, folder, tmp_path):
    args = ("evaluate", "--id", folder / "both.npz", "--ood", f"o={folder / 'ood.npy'}", "--replicates", 60)
    assert run(capsys, *args, "-o", tmp_path / "out")[0] == 0
    assert json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))["data"]["id"]["labelled"]


def test_without_labels_there_is_no_accuracy(capsys, folder, tmp_path):
    code, out, _ = run(capsys, *common(folder, "--ood", f"o={folder / 'ood.npy'}", "-o", tmp_path / "out"))
    assert code == 0
    assert "Accuracy" not in out


def test_without_ood_data_there_is_no_detection(capsys, folder, tmp_path):
    args = ("evaluate", "--id", folder / "both.npz")
    code, out, err = run(capsys, *args, "-o", tmp_path / "out")
    assert (code, err) == (0, "")
    point = wrap(np.load(folder / "id.npy"))
    labels = np.load(folder / "labels.npy")
    for probs in (point.probability, point.mean):
        assert f"{100 * accuracy_score(labels, probs.argmax(axis=-1)):.2f}" in out
        assert f"{log_loss(labels, probs):.4f}" in out
    assert not re.search("OOD|AUROC|catches", out)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"report.html", "report.json", "guard.json"}
    code, out, _ = run(capsys, *args, "-o", tmp_path / "out", "--json")
    assert (code, json.loads(out)["ood"]) == (0, [])
    assert set(json.loads(out)["calibration"]) == {"credal", "averaged"}


def test_without_ood_data_and_labels_there_is_nothing_to_evaluate(capsys, folder, tmp_path):
    code, out, err = run(capsys, *common(folder, "-o", tmp_path / "out"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "nothing to evaluate: give labels" in err
    assert not (tmp_path / "out").exists()


def test_json_is_all_that_is_printed(capsys, folder, tmp_path):
    args = common(folder, "--ood", f"o={folder / 'ood.npy'}", "-o", tmp_path / "out", "--json", "--base", "e")
    code, out, err = run(capsys, *args)
    assert (code, err) == (0, "")
    printed = json.loads(out)
    stored = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert printed.pop("report") == str(tmp_path / "out" / "report.html")
    assert printed == {name: part for name, part in stored.items() if name not in ("curves", "samples")}
    assert "nats" in printed["words"]["threshold"]


def test_logits_class_names_and_rate(capsys, tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "id.npy", 3 * rng.normal(size=(3, 30, 3)))
    np.save(tmp_path / "ood.npy", rng.normal(size=(3, 30, 3)))
    (tmp_path / "names.txt").write_text("cat\ndog\nemu\n", encoding="utf-8")
    args = ("--id", tmp_path / "id.npy", "--ood", f"o={tmp_path / 'ood.npy'}", "-o", tmp_path / "out", "--logits")
    more = ("--classes", tmp_path / "names.txt", "--false-alarm-rate", 0.2, "--replicates", 60, "--bins", 7)
    assert run(capsys, "evaluate", *args, *more)[0] == 0
    result = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert result["data"]["class_names"] == ["cat", "dog", "emu"]
    assert result["settings"]["logits"]
    assert result["settings"]["bins"] == 7
    assert Guard.load(tmp_path / "out" / "guard.json").false_alarm_rate == 0.2
    assert "emu" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_figures_on_request(capsys, folder, tmp_path, monkeypatch):
    def draw(found, place, *, report):
        place.mkdir()
        (place / "roc.svg").write_text(found.ood[0].name)

    monkeypatch.setattr("credalens.report.figures.save_figures", draw)
    args = common(folder, "--ood", f"o={folder / 'ood.npy'}", "-o", tmp_path / "out")
    assert run(capsys, *args)[0] == 0
    assert not (tmp_path / "out" / "figures").exists()
    assert run(capsys, *args, "--figures")[0] == 0
    assert (tmp_path / "out" / "figures" / "roc.svg").read_text() == "o"


def test_title_name_images_and_groups(capsys, folder, tmp_path):
    rng = np.random.default_rng(0)
    np.savez(folder / "images.npz", clinic=rng.random((ROWS, 3, 4, 5)), o=np.zeros((40, 4, 5), np.uint8))
    (folder / "sites.csv").write_text("site,month\n" + "".join(f"s{k % 2},{k % 3}\n" for k in range(ROWS)))
    named = (
        "--name",
        "clinic",
        "--title",
        "Clinic <b>",
        "--images",
        folder / "images.npz",
        "--groups",
        folder / "sites.csv",
    )
    args = common(folder, "--labels", folder / "labels.npy", "--ood", f"o={folder / 'ood.npy'}", *named)
    assert run(capsys, *args, "-o", tmp_path / "out")[0] == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    result = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert "<h1>Clinic &lt;b&gt;</h1>" in page
    assert page.count('<img src="data:') == 2 * len(result["samples"])
    assert result["data"]["id"]["name"] == "clinic"
    assert [one["column"] for one in result["groups"]] == ["true class", "site", "month"]
    assert "By site" in page
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC: credalens", page)


def test_models_are_compared(capsys, folder, tmp_path):
    other = folder.parent / "other"
    other.mkdir()
    save_predictions(other / "both.npz", batch_of("peaked", 5, ROWS, CLASSES, seed=8), np.arange(ROWS) % CLASSES)
    np.save(other / "ood.npy", batch_of("flat", 5, 40, CLASSES, seed=9))
    models = ("--model", f"three={folder}", "--model", f"five={other}")
    args = ("evaluate", *models, "--id", "both.npz", "--ood", "o=ood.npy", "--replicates", 60, "-o", tmp_path / "out")
    code, out, err = run(capsys, *args)
    assert (code, err) == (0, "")
    assert "five" in out
    assert "three" in out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["five", "report.html", "report.json", "three"]
    code, out, _ = run(capsys, *args, "--json")
    assert json.loads(out)["baseline"] == "three"


def spoil(folder):
    """Files with one fault each, name -> what is wrong with them."""
    np.save(folder / "flat.npy", np.full((3, CLASSES), 0.25))
    np.save(folder / "five.npy", np.full((3, 10, 5), 0.2))
    np.save(folder / "two.npy", np.full((2, 10, CLASSES), 0.25))
    np.save(folder / "short.npy", np.zeros(7, int))
    np.save(folder / "range.npy", np.full(ROWS, CLASSES))
    np.save(folder / "floats.npy", np.zeros(ROWS))
    np.save(folder / "sum.npy", np.full((3, 10, CLASSES), 0.3))
    np.save(folder / "logits.npy", -np.ones((3, 10, CLASSES)))
    whole = (folder / "ood.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (folder / "cut.npy").write_bytes((folder / "id.npy").read_bytes()[:200])
    (folder / "file.txt").write_text("x")
    (folder / "names.txt").write_text("a\nb\n")
    pq.write_table(pa.table({"x": [1, 2]}), folder / "other.parquet")
    np.save(folder / "one.npy", np.full((3, 1, CLASSES), 0.25))
    np.save(folder / "images.npy", np.zeros((7, 2, 2), np.uint8))
    np.savez(folder / "images.npz", nobody=np.zeros((7, 2, 2), np.uint8))
    (folder / "short.csv").write_text("site\na\nb\n")
    (folder / "ragged.csv").write_text("site,month\na\n")
    (folder / "twice.csv").write_text("site,site\na,b\n")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"--id": "missing.npy"}, "missing.npy: no such file"),
        ({"--ood": ["o=missing.npy"]}, "missing.npy: no such file"),
        ({"--labels": "missing.npy"}, "missing.npy: no such file"),
        ({"--id": "flat.npy"}, "must have shape (members, rows, classes); got (3, 4)"),
        ({"--ood": ["o=five.npy"]}, "o has 5 classes and in-distribution has 4"),
        ({"--ood": ["o=two.npy"]}, "o has 2 members and in-distribution has 3"),
        ({"--ood": ["o=one.npy"], "--member-axis": 0}, "o: 1 row of predictions; an evaluation needs at least 2"),
        ({"--labels": "short.npy"}, "7 labels for 60 rows"),
        ({"--labels": "range.npy"}, "labels are out of range, the first is 4 in row 0"),
        ({"--labels": "floats.npy"}, "labels must be integers"),
        ({"--ood": ["o=ood.npy", "o=ood.parquet"]}, "'o' is given twice"),
        ({"--ood": ["ood.npy"]}, "write NAME=FILE"),
        ({"--ood": ["=ood.npy"]}, "write NAME=FILE"),
        ({"--ood": ["in-distribution=ood.npy"]}, "names both the ID data and an OOD data set"),
        ({"--ood": ["o=cut.parquet"]}, "cut.parquet: cannot be read: it is damaged, cut short or of another format"),
        ({"--id": "cut.npy"}, "cut.npy: cannot be read: it is damaged, cut short or of another format"),
        ({"--ood": ["o=other.parquet"]}, "predictions are looked for under 'probs'"),
        ({"--ood": ["o=file.txt"]}, "unknown format '.txt'"),
        ({"--ood": ["o=sum.npy"]}, "sum.npy: row 0, member 0: it sums to 1.2"),
        (
            {"--ood": ["o=logits.npy"]},
            "logits.npy holds logits, and id.npy probabilities; all data sets must hold the same",
        ),
        ({"-o": "file.txt"}, "is a file; name a folder (--output)"),
        ({"-o": "file.txt/where"}, "is a file; name a folder"),
        ({"--classes": "names.txt"}, "2 names for 4 classes"),
        ({"--classes": "missing.txt"}, "No such file or directory"),
        ({"--false-alarm-rate": 2}, "false_alarm_rate must lie strictly between 0 and 1"),
        ({"--threads": 0}, "Invalid value for '--threads'"),
        ({"--replicates": 39}, "Invalid value for '--replicates'"),
        ({"--seed": -1}, "Invalid value for '--seed'"),
        ({"--images": "images.npy"}, "images of 'in-distribution' must have shape (60, height, width)"),
        ({"--images": "images.npz"}, "images were given for 'nobody', which is not a data set"),
        ({"--images": "cut.npy"}, "--images cut.npy: cannot be read"),
        ({"--images": "file.txt"}, "--images file.txt: must be an .npz"),
        ({"--groups": "short.csv"}, "one value for each of the 60 inputs; got shape (2,) (--groups)"),
        ({"--groups": "ragged.csv"}, "--groups ragged.csv: line 2 has 1 value for 2 columns"),
        ({"--groups": "twice.csv"}, "must name every column, each once"),
        ({"--groups": "cut.parquet"}, "--groups cut.parquet: cannot be read"),
        ({"--groups": "file.txt"}, "--groups file.txt: must be a .csv"),
        ({"--name": "o"}, "'o' names both the ID data and an OOD data set; rename one of them (--name, --ood)"),
        ({"--model": ["a=."]}, "--model is given once"),
        ({"--model": ["a=.", "a=."]}, "--model 'a' is given twice"),
        ({"--model": ["a=.", "b=nowhere"]}, "--model b=nowhere: is not a folder"),
        ({"--model": ["a=.", "."]}, "--model '.': write NAME=FOLDER"),
        ({"--model": ["a=.", "b=.."]}, "id.npy: no such file"),
        ({"--base": "one"}, "'one' is neither a number nor 'e'"),
    ],
)
def test_bad_input_is_one_line_exit_code_2_and_nothing_written(capsys, folder, tmp_path, change, message, monkeypatch):
    spoil(folder)
    monkeypatch.chdir(folder)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    options = {"--id": "id.npy", "--ood": ["o=ood.npy"], "--labels": "labels.npy", "-o": "out", **change}
    pairs = [(name, one) for name, value in options.items() for one in (value if isinstance(value, list) else [value])]
    args = [part for pair in pairs for part in pair]
    code, out, err = run(capsys, "evaluate", *args)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_a_disk_that_fills_up_leaves_nothing(capsys, folder, tmp_path, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("credalens.report.files.render_html", full)
    code, out, err = run(capsys, *common(folder, "--ood", f"o={folder / 'ood.npy'}", "-o", tmp_path / "out"))
    assert (code, out) == (2, "")
    assert err == f"error: cannot write {tmp_path / 'out'}: No space left on device.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("name", ["id.npy", "ood.npy", "labels.npy", "groups.csv"])
def test_a_report_takes_the_place_of_nothing_that_it_is_made_from(capsys, folder, tmp_path, monkeypatch, name):
    (folder / "groups.csv").write_text("site\n" + "a\n" * ROWS)
    content = (folder / name).read_bytes()
    target = tmp_path / "out" / "report.json"
    target.parent.mkdir()
    target.hardlink_to(folder / name)
    monkeypatch.chdir(folder)
    inputs = ("--id", "id.npy", "--ood", "o=ood.npy", "--labels", "labels.npy", "--groups", "groups.csv")
    code, said, err = run(capsys, "evaluate", *inputs, "-o", target.parent)
    assert (code, said) == (2, "")
    assert err.startswith(f"error: cannot write {target}: it is the file that is being read, {name}")
    assert (folder / name).read_bytes() == content


@pytest.mark.parametrize("full", [False, True])
def test_folders_of_files_are_told_only_if_they_are_wanted(capsys, folder, tmp_path, monkeypatch, full):
    args = ("--id", folder / "id.npy", "--ood", f"o={folder / 'ood.npy'}", "--replicates", 40, "-o", tmp_path / "out")
    wanted = ("--full-paths",) if full else ()
    monkeypatch.setattr("sys.argv", ["/usr/bin/credalens", "evaluate", *map(str, args), *wanted])
    assert run(capsys, "evaluate", *args, *wanted)[0] == 0
    page, result = ((tmp_path / "out" / name).read_text(encoding="utf-8") for name in ("report.html", "report.json"))
    assert (str(tmp_path) in page, str(tmp_path) in result) == (full, full)
    assert json.loads(result)["data"]["id"]["file"] == str(folder / "id.npy" if full else "id.npy")
    if not full:
        assert "credalens evaluate --id id.npy --ood o=ood.npy --replicates 40 -o out<" in page


def test_a_byte_order_mark_is_in_no_name(capsys, folder, tmp_path):
    (folder / "names.txt").write_text("a\nb\nc\nd\n", encoding="utf-8-sig")
    (folder / "sites.csv").write_text("site\n" + "x\n" * ROWS, encoding="utf-8-sig")
    files = ("--id", folder / "id.npy", "--labels", folder / "labels.npy", "--replicates", 40, "-o", tmp_path / "out")
    assert run(capsys, "evaluate", *files, "--classes", folder / "names.txt", "--groups", folder / "sites.csv")[0] == 0
    result = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert result["data"]["class_names"] == ["a", "b", "c", "d"]
    assert [one["column"] for one in result["groups"]] == ["true class", "site"]
