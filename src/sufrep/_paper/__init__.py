"""The paper's experiments: a plan expands into trials, whose results go to a store for figures and tables.

    plan ──trials──▶ run ──records──▶ Store ──▶ summary ──▶ figures and tables, with the published numbers

Every encoder of the registry is a method here.
"""

from __future__ import annotations
