"""What a training shows while it runs: a line for each epoch, and bars where there is a terminal."""

from io import StringIO

from rich.console import Console

from credalens_paper.training import train_networks
from credalens_paper.training.train_networks import train_models
from reproduction.tests.training.tiny import SPEC, blobs, build, member


def test_the_log_has_a_line_for_each_epoch(tmp_path, capsys):
    lines = []
    train_models([SPEC], blobs(), tmp_path, build=build, device="cpu", progress=True, log=lines.append)
    assert len(lines) == 2
    assert lines[1].startswith(f"{SPEC.key}: epoch 2/2, loss ")
    assert "%" in lines[1]
    assert capsys.readouterr() == ("", "")  # no bars where there is no terminal


def test_the_bars_show_every_member(tmp_path, monkeypatch):
    screen = Console(file=StringIO(), force_terminal=True, width=200)
    monkeypatch.setattr(train_networks, "Console", lambda **options: screen)
    train_models([SPEC, member(seed=1)], blobs(), tmp_path, build=build, device="cpu", side_by_side=2)
    text = screen.file.getvalue()
    for part in (SPEC.key, member(seed=1).key, "epoch 2/2", "loss", "accuracy", "img/s"):
        assert part in text
