"""The scripts of a page, and the policy that lets nothing else run and nothing leave the file."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from sufrep._charts import load_altair, require_renderer

if TYPE_CHECKING:
    from collections.abc import Iterable


def read_asset(name: str) -> str:
    """The text of a file that lies beside this one."""
    return files("sufrep._report").joinpath(name).read_text(encoding="utf-8")


@cache
def drawing_bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script, of the version that Altair writes for."""
    require_renderer("A page with charts")
    version = ".".join(load_altair().SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    from vl_convert import javascript_bundle

    # Within a script only its end tag would end it; in its strings and patterns the escape means the same.
    return javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version).replace(
        "</script", r"<\/script"
    )


def content_policy(scripts: Iterable[str]) -> str:
    """Let these inline scripts run and no other; forbid every request, form and frame.

    Styles may be inline because a drawn chart sets some on its marks; without requests they carry nothing
    out.
    """
    digests = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {digests}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(script: str) -> str:
    return b64encode(sha256(script.encode()).digest()).decode()
