"""``credalens reproduce``: parse, call, print; with networks that need no training."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from credalens.cli.app import COMMANDS
from credalens_paper.experiments.index import LABELS
from credalens_paper.pipeline import engines as reproduce_engine
from reproduction.tests.pipeline.fake_engine import FakeEngine
from tests.cli.running import run as run_command

RealEngine = reproduce_engine.TorchEngine


@pytest.fixture(autouse=True)
def engines(monkeypatch):
    """The command, its engine replaced; gives the engines that were made."""
    made = []

    def make(**options):
        made.append((FakeEngine(side_by_side=options["side_by_side"]), options))
        return made[-1][0]

    monkeypatch.setitem(COMMANDS, "reproduce", "Reproduce the paper")
    monkeypatch.setattr(reproduce_engine, "TorchEngine", make)
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    return made


def run(capsys, *args: object) -> tuple[int, str, str]:
    return run_command(capsys, "reproduce", *args)


def test_the_list_names_all_labels_without_any_result(capsys, tmp_path):
    code, out, err = run(capsys, "--list", "--out", tmp_path)
    assert code == 0
    assert f"{tmp_path}/smoke/results holds no results yet; --from-results FOLDER" in err
    assert [line.split("|")[1].strip() for line in out.splitlines()[2:]] == list(LABELS)
    code, out, _ = run(capsys, "--list", "--json", "--out", tmp_path)
    entries = json.loads(out)
    assert [entry["label"] for entry in entries] == list(LABELS)
    assert [entry["kind"] for entry in entries] == ["table"] * 19 + ["figure"] * 17 + ["ours"] * 12
    assert {entry["status"] for entry in entries} == {"not measured"}


def test_the_list_needs_no_torch(tmp_path):
    code = (
        "import sys; from credalens.cli.app import COMMANDS, main; COMMANDS['reproduce'] = ''\n"
        "try: main(['reproduce', '--list', '--out', sys.argv[1]])\n"
        "except SystemExit as left: assert left.code == 0\n"
        "sys.exit('torch' in sys.modules or 'matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "OODMain" in done.stdout


def test_a_table_is_printed_beside_the_papers_numbers_and_listed_as_measured(capsys, tmp_path):
    code, out, err = run(capsys, "OODMainTU", "--preset", "smoke", "--out", tmp_path)
    assert code == 0
    assert "# OODMainTU" in out
    assert "88.18 ± 1.30" in out
    assert "training digits-resnet18" in err
    _, out, err = run(capsys, "--list", "--json", "--out", tmp_path)
    assert {entry["label"]: entry["status"] for entry in json.loads(out)}["OODMainTU"] == "measured"
    assert err == ""
    _, out, err = run(capsys, "--list", "--from-results", tmp_path / "smoke" / "results")
    assert "| OODMainTU | table | measured |" in " ".join(out.split())
    assert f"{tmp_path}/smoke/results was looked at for results" in err


def test_results_are_printed_again_without_training(capsys, tmp_path, engines):
    _, first, _ = run(capsys, "GHComparison", "PIA", "--out", tmp_path)
    made = len(engines)
    results, document = tmp_path / "smoke" / "results", tmp_path / "README.md"
    code, out, _ = run(capsys, "--from-results", results, "--markdown", document)
    assert (code, out) == (0, first)
    assert len(engines) == made
    assert "tables/GHComparison.md" in document.read_text()
    assert "# GHComparison" in (tmp_path / "tables" / "GHComparison.md").read_text()
    _, out, _ = run(capsys, "PIA", "--from-results", results)
    assert "# PIA" in out
    assert "GHComparison" not in out


def test_pages_take_the_place_of_no_result(capsys, tmp_path):
    run(capsys, "PIA", "--out", tmp_path)
    results = tmp_path / "smoke" / "results"
    before = (results / "PIA.json").read_bytes()
    code, _, err = run(capsys, "--from-results", results, "--markdown", results / "PIA.json")
    assert code == 2
    assert "it is the file that is being read" in err
    assert (results / "PIA.json").read_bytes() == before


def test_later_runs_are_added_to_the_first_ones(capsys, tmp_path):
    first, later, both = (tmp_path / name for name in ("first", "later", "both"))
    label = "ablation_BNNsVGG16EU"
    run(capsys, label, "--out", first, "--bnn-runs", 2)
    run(capsys, label, "--out", later, "--bnn-runs", 4, "--first-run", 2)
    results = ("--from-results", first / "smoke" / "results")
    code, out, _ = run(capsys, label, *results, "--add-runs", later / "smoke" / "results", "--out", both)
    assert code == 0
    assert " of 4 runs)" in out
    _, again, _ = run(capsys, label, "--from-results", both / "smoke" / "results")
    assert again == out
    code, _, err = run(capsys, label, *results, "--add-runs", first / "smoke" / "results", "--out", both)
    assert code == 2
    assert "is in both results and would count twice" in " ".join(err.split())


def test_runs_are_added_to_results_only(capsys, tmp_path):
    code, _, err = run(capsys, "OODMain", "--add-runs", tmp_path, "--out", tmp_path)
    assert code == 2
    assert "--add-runs adds to the result files of --from-results FOLDER" in " ".join(err.replace("│", "").split())


def test_json_holds_results_and_what_is_unfinished(capsys, tmp_path):
    code, out, _ = run(capsys, "OODMainTU", "--out", tmp_path, "--json", "--only-train")
    found = json.loads(out)
    assert (code, found["results"], list(found["unfinished"])) == (0, [], ["OODMainTU"])
    code, out, _ = run(capsys, "OODMainTU", "--out", tmp_path, "--json")
    assert [result["label"] for result in json.loads(out)["results"]] == ["OODMainTU"]


def test_a_time_limit_ends_with_its_own_exit_code_and_the_run_can_go_on(capsys, tmp_path):
    code, _, err = run(capsys, "OODMainTU", "--out", tmp_path, "--time-limit", 1e-9)
    assert code == 3
    assert "OODMainTU: the time limit of 1e-09 s has passed; run the same command again to go on." in err
    code, _, _ = run(capsys, "OODMainTU", "--out", tmp_path, "--time-limit", 1000)
    assert code == 0


NO_DATA = "nothing was measured: no data folder given for CIFAR-10"


@pytest.mark.parametrize("label", ["OODMainTU", "entropy_plots_cifar10", "Exactness"])
def test_where_nothing_could_be_measured_the_exit_code_says_so_and_one_line_why(capsys, tmp_path, label):
    code, out, err = run(capsys, label, "--preset", "fast", "--out", tmp_path, "--json")
    assert (code, err.count("\n")) == (1, 1)
    assert err.startswith(NO_DATA)
    assert [result["status"] for result in json.loads(out)["results"]] == ["not measured"]
    results = tmp_path / "fast" / "results"
    assert (run(capsys, "--from-results", results)[0], run(capsys, "--list", "--from-results", results)[0]) == (0, 0)


def test_the_reason_is_not_that_other_methods_were_left_out(capsys, tmp_path):
    code, _, err = run(capsys, "OODMain", "--only", "DE", "--preset", "fast", "--out", tmp_path, "--json")
    assert code == 1
    assert err.startswith(NO_DATA)


def test_what_could_be_measured_of_several_labels_is_enough(capsys, tmp_path):
    code, out, err = run(capsys, "OODMainTU", "Concept_comparisons", "--preset", "fast", "--out", tmp_path, "--json")
    assert (code, err) == (0, "")
    assert [result["status"] for result in json.loads(out)["results"]] == ["not measured", "measured"]


def test_a_table_of_which_a_part_could_be_measured_is_enough(capsys, tmp_path):
    code, out, _ = run(capsys, "OODMainTU", "--out", tmp_path, "--only", "DE", "--json")
    assert (code, json.loads(out)["results"][0]["status"]) == (0, "partly measured")


@pytest.mark.parametrize("stage", ["--only-train", "--only-predict"])
def test_a_stage_without_anything_to_do_is_no_failure(capsys, tmp_path, stage):
    assert run(capsys, "OODMainTU", "PIA", "--preset", "fast", "--out", tmp_path, stage)[0] == 0


def test_sizes_of_the_preset_can_be_changed(capsys, tmp_path, engines):
    sizes = ("--runs", 1, "--bnn-runs", 1, "--side-by-side", 3, "--compile")
    _, out, _ = run(capsys, "OODMainTU", "--out", tmp_path, "--json", *sizes)
    (result,) = json.loads(out)["results"]
    assert {cell["n"] for cell in result["cells"]} == {1}
    assert engines[-1][1] == {"device": None, "side_by_side": 3, "compile": True}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["OODMian"], "no table or figure 'OODMian' (did you mean 'OODMain'"),
        ([], "name at least one table or figure"),
        (["PIA", "--preset", "huge"], "unknown preset 'huge'; there are smoke, fast, scratch, text, full"),
        (["PIA", "--data-folder", "/nowhere"], "the data folder /nowhere does not exist"),
        (["PIA", "--measure", "XY"], "no other measure 'XY'"),
        (["--from-results", "/nowhere"], "no result files"),
        (["--list", "--preset", "huge"], "unknown preset 'huge'"),
        (["--list", "--from-results", "/nowhere"], "no result files (<label>.json) in /nowhere"),
        (["Exactness", "--threads", "0"], "Invalid value for '--threads'"),
        (["PIA", "--only", "foo"], "only must be one of 'DE'"),
        (["PIA", "--time-limit", "0"], "the time limit is a positive number of seconds, got 0.0"),
        (["PIA", "--dtype", "int8"], "predictions are stored as float32 or float16, got 'int8'"),
        (["PIA", "--pretrained", "/nowhere"], "no config.json in /nowhere; pretrained weights are a folder with"),
        (["PIA", "--markdown", "/nowhere/x.md"], "cannot write /nowhere/x.md: there is no folder /nowhere"),
        (["PIA", "--markdown", "/"], "cannot write /: it is a folder; name a file in it"),
        (["PIA", "--only-train", "--only-predict"], "give it or --only-predict"),
        (["PIA", "--out", __file__], "is a file; name a folder"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, tmp_path, args, message):
    """Before any work: the store stays empty."""
    code, out, err = run(capsys, "--out", tmp_path, *args)
    assert (code, out) == (2, "")
    assert list(tmp_path.iterdir()) == []
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1


def test_a_device_that_torch_cannot_use_is_bad_input_and_no_defect(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce_engine, "TorchEngine", RealEngine)
    code, out, err = run(capsys, "PIA", "--device", "foo", "--out", tmp_path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "device must be 'cpu', 'cuda', 'cuda:1' or another name that torch knows; got 'foo'" in err


def test_an_interrupt_says_that_the_run_can_go_on(capsys, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(FakeEngine, "train", interrupted)
    code, _, err = run(capsys, "OODMainTU", "--out", tmp_path)
    assert code == 130
    assert "interrupted; the same command goes on" in err
