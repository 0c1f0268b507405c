"""How the documentation is built: ``sphinx-build -W docs/source docs/build``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from traitlets import TraitType

ROOT = Path(__file__).resolve().parents[2]
for folder in (ROOT, ROOT / "agent", ROOT / "labextension"):
    sys.path.insert(0, str(folder))

# JupyterHub imports one schema grammar that takes a second to compile and that
# nothing here needs.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

from backendai_hub import __version__  # noqa: E402 - the path has to come first

project = "backendai-hub"
copyright = "The backendai-hub contributors"
author = "The backendai-hub contributors"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "autodoc_traits",
    "myst_parser",
    "sphinx_design",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["reference/generated/*"]
root_doc = "index"
nitpicky = False
autodoc_typehints = "none"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "pydata_sphinx_theme"
html_title = "Backend.AI Hub"
html_static_path = ["_static"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "use_edit_page_button": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_align": "left",
}
html_sidebars: dict[str, list[str]] = {"index": []}


def skip_what_is_no_setting(*given: Any) -> bool | None:
    """Leave out of the reference all but the settings that are ours to explain."""
    _app, _what, _name, member, _skip, _options = given
    if not isinstance(member, TraitType):
        return True
    ours = str(member.this_class.__module__).startswith("backendai_")
    return None if ours and member.metadata.get("config") else True


def drop_signature(*_given: Any) -> tuple[str, None]:
    """Classes are shown for their settings; nobody calls them."""
    return "", None


def setup(app: Sphinx) -> None:
    """Take part in the build."""
    app.connect("autodoc-skip-member", skip_what_is_no_setting)
    app.connect("autodoc-process-signature", drop_signature)
