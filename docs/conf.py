"""The site: `make docs` builds it from the pages of the repository, as they are.

The source folder is the root of the repository, so that every link between pages, such as
`../CHANGELOG.md`, works on a code host and in the site alike.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # docstrings.py

import docstrings

import umpteen

project = "umpteen"
author = "the umpteen authors"
copyright = author  # noqa: A001
version = release = umpteen.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_copybutton"]
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "papers/README.md",
    "papers/*/README.md",
    "benchmarks/results/*.md",
]
exclude_patterns = ["docs/_*"]
suppress_warnings = [
    "toc.not_included",  # pages that only another page leads to
    "myst.header",  # results begin with smaller headings
    "ref.python",  # names in annotations that several classes have
]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4  # the anchors that code hosts make
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

default_role = "py:obj"  # `LabelTree` in a docstring is a link
add_module_names = False
python_use_unqualified_type_names = True
maximum_signature_line_length = 100
autodoc_class_signature = "mixed"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {
    "members": True,
    "inherited-members": True,
    "exclude-members": "forward",
}

highlight_options = {"python": {"stripnl": True}, "pycon": {"stripnl": True}}

html_theme = "furo"
html_title = f"umpteen {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_root"]  # index.html, which leads to the first page
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "a11y-light"
pygments_dark_style = "a11y-dark"


def setup(app):
    app.connect("autodoc-process-docstring", docstrings.translate)
    app.connect("autodoc-skip-member", docstrings.skip)
