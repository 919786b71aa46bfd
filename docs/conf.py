"""Settings of the documentation site: `make docs` builds it, without a network."""

from __future__ import annotations

import evertree

project = "evertree"
author = "The evertree developers"
project_copyright = author
version = release = evertree.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
default_role = "py:obj"  # names in single backticks lead to their pages, and those that have none are code
language = "en_GB"

myst_heading_anchors = 4
autodoc_typehints = "none"  # the sections on parameters say it in words
autodoc_member_order = "bysource"
autosummary_generate = True
add_module_names = False
numpydoc_show_class_members = False  # docs/api.md lists them by task

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "parallel": True,  # as many examples at once as -j says
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,  # seconds: times differ from run to run
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "evertree"
html_static_path = ["_static"]
html_css_files = ["evertree.css"]
html_show_copyright = False
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["sphinx-version"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def hide_private_parameters(app, what, name, thing, options, signature, annotation):  # noqa: ARG001
    """No signature for a class that is made by the library, with parameters of its own."""
    if what == "class" and signature and (", _" in signature or signature.startswith("(*_")):
        return "", None
    return None


def setup(app):
    """Connect what changes the pages while they are made."""
    app.connect("autodoc-process-signature", hide_private_parameters)
