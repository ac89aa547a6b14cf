"""Run tests with the oldest versions that pyproject.toml allows: ``make oldest``.

Two environments under ``build/oldest``, made from ``constraints/oldest.txt`` and
``constraints/oldest-extras.txt``; they stay, so that a second run only tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build" / "oldest"
# Constraints, extras, tests, and the tests among them that are about something newer.
PARTS = {
    "oldest": (
        "report,test",
        "tests/encoders tests/frames tests/solvers",
        # Lazy frames need the newer narwhals of the extras, and tests of skrub its present names.
        "--deselect tests/encoders/test_lazy.py --ignore tests/frames/test_keys.py "
        "--ignore tests/frames/test_sampling.py -k",
        "not skrub",
    ),
    "oldest-extras": (
        "cli,report,boost,duckdb,dask,sql,test",
        "tests/cli tests/files tests/frames tests/lazy tests/serving tests/charts tests/report "
        "tests/encoders/test_lazy.py",
        "",
        "",
    ),
}


def main() -> None:
    """Install and test each part; the exit code is 1 if a test of any failed."""
    if sys.version_info[:2] != (3, 11):
        sys.exit("The oldest versions have wheels for Python 3.11 only: make oldest PYTHON=python3.11")
    failed = [name for name in PARTS if not passes(name)]
    print("failed: " + ", ".join(failed) if failed else "the oldest versions pass")
    sys.exit(bool(failed))


def passes(name: str) -> bool:
    """Whether the tests of a part pass in its environment."""
    extras, tests, options, expression = PARTS[name]
    python = WORK / name / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(WORK / name)], check=True)
    constraints = ROOT / "constraints" / f"{name}.txt"
    install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--constraint",
        str(constraints),
    ]
    subprocess.run([str(python), *install, "--editable", f"{ROOT}[{extras}]"], check=True)
    chosen = [*tests.split(), *options.split(), *filter(None, [expression])]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "POLARS_MAX_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "",
    }
    print(f"{name}: {' '.join(chosen)}", flush=True)
    done = subprocess.run(
        [str(python), "-m", "pytest", "-q", "-rs", *chosen], cwd=ROOT, env=environment, check=False
    )
    return done.returncode == 0


if __name__ == "__main__":
    main()
