"""The paper's experiments: a plan becomes trials, their results go to a store, figures and tables read it.

    plan ──trials──▶ run (joblib) ──records──▶ Store ──▶ summary ──▶ figures and tables, beside the published

Each encoder of the registry is a method here, and every new one is judged here.
"""

from __future__ import annotations
