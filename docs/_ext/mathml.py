"""Formulas as MathML, which browsers show by themselves: no script is loaded."""

import re
from functools import reduce

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)
SPELLINGS = {
    r"frac(\d)(\d)": r"frac{\1}{\2}",
    r"\\dots": r"\\ldots",
    r"(?<=\w)\\_": "_",
    r"\\bar (\w)_": r"{\\bar \1{}}_",
    r"(?<![\w\\{])([A-Z]{2,})(?!\w)": r"\\mathrm{\1}",
    r"\\Big(?=[(\[])": r"\\Bigl",
    r"\\Big(?=[)\]])": r"\\Bigr",
}
"""What LaTeX reads and docutils does not, and the same in other letters."""


def _respelled(formula: str, spelling: tuple[str, str]) -> str:
    return re.sub(*spelling, formula)


def to_mathml(node: nodes.Element, *, display: bool) -> str:
    """The formula of a node; a warning, and so the end of the build, where it cannot be read."""
    try:
        return tex2mathml(reduce(_respelled, SPELLINGS.items(), node.astext()), as_block=display)
    except MathError as error:
        logger.warning("cannot read the formula %s: %s", node.astext(), error, location=node)
        return ""


def visit_inline(translator: HTML5Translator, node: nodes.math) -> None:
    """A formula in a line of text."""
    translator.body.append(to_mathml(node, display=False))
    raise nodes.SkipNode


def visit_display(translator: HTML5Translator, node: nodes.math_block) -> None:
    """A formula on a line of its own, with its number if it has one."""
    number = f'<span class="eqno">({get_node_equation_number(translator, node)})</span>' if node["number"] else ""
    translator.body.append(f'<div class="formula">{number}{to_mathml(node, display=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer the renderer to `html_math_renderer`."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
    return {"parallel_read_safe": True}
