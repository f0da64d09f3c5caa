"""Text of others cannot steer a terminal, and everything else stays as it was written."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from credalens.checks.options import escaped

BIDIRECTIONAL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
ANY_TEXT = st.text(st.characters(codec=None) | st.sampled_from("\x1b\x9b\r\n\t\x07\x7f" + BIDIRECTIONAL))


@given(ANY_TEXT)
@settings(derandomize=True)
def test_nothing_that_steers_a_terminal_is_left(text):
    shown = escaped(text)
    assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in BIDIRECTIONAL for c in shown)
    shown.encode()


@given(st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp", "Cf"))))
@settings(derandomize=True)
def test_ordinary_text_is_kept(text):
    assert escaped(text) == text


@given(ANY_TEXT)
@settings(derandomize=True)
def test_json_still_says_the_same(text):
    assert json.loads(escaped(json.dumps(text, ensure_ascii=False))) == text


def test_what_may_be_kept():
    assert escaped("a\nb\x1b", keep="\n") == "a\nb\\u001b"
