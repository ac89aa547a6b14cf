"""Settings of the documentation site: `make docs` builds it, offline and without a warning."""

from __future__ import annotations

import sys
from pathlib import Path

import sufrep

sys.path.append(str(Path(__file__).parent / "_ext"))

project = "sufrep"
author = "The sufrep developers"
project_copyright = f"2026, {author}"
version = release = sufrep.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    # In _ext.
    "altair_pictures",
    "commands",
    "idea_picture",
    "linked_names",
    "mathml",
]
exclude_patterns = ["_build", "_ext", "_templates"]
templates_path = ["_templates"]

# Docstrings write `MeansEncoder` for a link to its page. What is no public name stays plain code.
default_role = "py:obj"
nitpicky = True
nitpick_ignore_regex = [
    ("py:obj", "[a-z_].*|X"),  # parameters and attributes
    ("py:obj", "TimeSeriesSplit|GroupDrift"),
    ("py:func", "sufrep.representation.sort_levels"),
    # Classes of other libraries, and bases that have no page of their own.
    ("py:class", "(?!sufrep).*"),
    ("py:class", r"sufrep\._.*|sufrep\.encoders\..*|sufrep\.causal\..*"),
]

# Types stand in the docstrings, where they are easier to read.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
autosummary_generate = True
numpydoc_show_class_members = False
viewcode_line_numbers = True

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_dmath_allow_digits = False  # $5 to $10 are prices
myst_heading_anchors = 4

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("altair_pictures.scrape",),
    "reset_modules": (),
    "ignore_repr_types": "altair|sufrep|sklearn",
    "capture_repr": ("_repr_html_", "__repr__"),
    "abort_on_example_error": True,
    "backreferences_dir": "reference/backreferences",
    "doc_module": ("sufrep",),
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 1_000,
    "download_all_examples": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "sufrep"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/mark.svg"
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "sufrep", "image_light": "_static/mark.svg", "image_dark": "_static/mark.svg"},
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "back_to_top_button": False,
}
# The start page has cards instead of a list of pages.
html_sidebars = {"index": []}
copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
