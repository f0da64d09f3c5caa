"""How Sphinx builds the site: `make docs`. Nothing is fetched: no fonts, no scripts, no inventories of other projects."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from credalens import __version__  # noqa: E402 - after the path

project = "credalens"
author = "the authors of credalens"
project_copyright = "2026, the authors of credalens"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "public_names",
    "linked_names",
    "result_pages",
]
html_math_renderer = "mathml"
exclude_patterns = ["_build", "**/gallery/*.ipynb", "gallery/*.py", "gallery/*.json"]
default_role = "py:obj"
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "gallery_order.ReadingOrder",
    "reset_modules": ("matplotlib",),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 1,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "plot_gallery": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "credalens"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "credalens"},
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "pygments_light_style": "tango",
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
}
html_sidebars = {"index": [], "mathematics": []}
