"""Code in a sentence becomes a link where it names something public or a table or figure of the results."""

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

Target = tuple[str, str]
"""A document and a place in it."""


def public_names(env: BuildEnvironment) -> Iterator[tuple[str, Target]]:
    """(name, place), with its module and without it; of the same name in several modules the outermost comes last."""
    domain = env.domains.python_domain
    modules = sorted(domain.modules, key=len, reverse=True)
    for name in sorted(domain.objects, key=len, reverse=True):
        entry = domain.objects[name]
        module = next(module for module in modules if f"{name}.".startswith(f"{module}."))
        yield from ((short, (entry.docname, entry.node_id)) for short in {name, name.removeprefix(f"{module}.")})


def result_names(env: BuildEnvironment) -> Iterator[tuple[str, Target]]:
    """The labels of tables and figures, which are the names of their pages."""
    pages = (page for page in env.found_docs if re.match("results/(tables|figures)/", page))
    return ((page.rpartition("/")[2], (page, "")) for page in sorted(pages))


class LinkNames(SphinxPostTransform):
    """Links the first mention of a name in a paragraph, but for headings and the described name itself."""

    default_priority = 500

    def run(self, **options: object) -> None:
        """Wrap such literals into references."""
        targets = {**dict(public_names(self.env)), **dict(result_names(self.env))}
        seen = set()
        for literal in list(self.document.findall(nodes.literal)):
            name = re.sub(r"\(.*\)$", "", literal.astext(), flags=re.DOTALL).replace(" ", "_")
            mention = id(literal.parent), name
            if name in targets and mention not in seen and not _is_own(literal, *targets[name], self.env.docname):
                seen.add(mention)
                node = make_refnode(self.app.builder, self.env.docname, *targets[name], literal.deepcopy())
                literal.replace_self(node)


def _is_own(literal: nodes.literal, page: str, anchor: str, current: str) -> bool:
    """Whether a literal is a link or heading already, or stands on the page or in the description that it names."""
    parents = list(_parents(literal))
    described = {place for node in parents if isinstance(node, addnodes.desc) for place in node[0]["ids"]}
    linked = any(isinstance(node, (nodes.reference, nodes.title, addnodes.pending_xref)) for node in parents)
    return linked or anchor in described or (page, anchor) == (current, "")


def _parents(node: nodes.Node) -> Iterator[nodes.Node]:
    while node := node.parent:
        yield node


def setup(app: Sphinx) -> dict[str, bool]:
    """Run when references are resolved."""
    app.add_post_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
