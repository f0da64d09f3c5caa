"""Shells complete commands and their options."""

from __future__ import annotations

import pytest

from credalens.cli import main


def printed(capsys, *args: str) -> str:
    with pytest.raises(SystemExit) as left:
        main(args)
    out, err = capsys.readouterr()
    assert (left.value.code, err) == (0, "")
    return out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_for_the_shell_it_is_asked_from(capsys, monkeypatch, shell):
    monkeypatch.setattr("shellingham.detect_shell", lambda: (shell, f"/bin/{shell}"))
    script = printed(capsys, "--show-completion", shell)
    assert f"_CREDALENS_COMPLETE=complete_{shell}" in script
    monkeypatch.setenv("_CREDALENS_COMPLETE", f"source_{shell}")
    assert printed(capsys).strip() == script.strip()


@pytest.mark.parametrize(
    ("words", "completed"),
    [("credalens sc", {"score"}), ("credalens score --log", {"--logits"}), ("credalens dem", {"demo"})],
)
def test_a_shell_is_told_what_may_follow(capsys, monkeypatch, words, completed):
    monkeypatch.setenv("_CREDALENS_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    assert set(printed(capsys).split()) == completed
