"""Take the picture of the demo's report that the README shows.

Run by ``make pictures`` after ``make demo``; needs a browser (``make browser``).
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

REPORT = Path(__file__).parents[1] / "demo_output" / "report.html"


def main(picture: str) -> None:
    """Write the upper part of the report as a picture."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None or not REPORT.exists():
        sys.exit("No picture of the report: run `make browser` and `make demo` first.")
    with sync_playwright() as playwright:
        window = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = window.new_page(viewport={"width": 1000, "height": 1360})
        page.goto(REPORT.as_uri())
        page.wait_for_selector("html[data-drawn]", state="attached")
        page.screenshot(path=picture)
        window.close()
    print(picture)


if __name__ == "__main__":
    main(sys.argv[1])
