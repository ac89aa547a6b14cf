"""Build the source distribution and the wheel, twice, and check them and every way to install them.

``make dist`` runs this. Everything is made under ``build/dist``; what passes is in ``dist``:

1. the source distribution and, from it, the wheel; once more from a copy of the source distribution in
   another folder, with another umask: the bytes have to be the same;
2. ``twine check --strict`` and ``check-wheel-contents``; the files and the size of the wheel are printed;
3. the wheel in a new environment without extras, and in one for each extra, each with its test in
   `release/smoke.py`.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build" / "dist"
DIST = ROOT / "dist"
# Tools of developers are no use of the wheel.
NOT_TESTED = ("dev", "docs", "test")


def main() -> None:
    """Build, check, install, test."""
    options = _options()
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    tools = make_environment(WORK / "tools", "--requirement", str(ROOT / "release" / "requirements.txt"))
    first, second = WORK / "first", WORK / "second"
    build(tools, ROOT, first, umask=0o022)
    with tarfile.open(next(first.glob("*.tar.gz"))) as archive:
        archive.extractall(WORK / "copy", filter="data")
    copy = next((WORK / "copy").iterdir())
    (copy / "PKG-INFO").unlink()  # made by the build, and a repository has none
    build(tools, copy, second, umask=0o077)
    files = same_files(first, second)
    run(tools, "-m", "twine", "check", "--strict", *map(str, files))
    wheel = next(path for path in files if path.suffix == ".whl")
    run(tools, "-m", "check_wheel_contents", str(wheel))
    list_files(wheel)
    shutil.rmtree(DIST, ignore_errors=True)
    shutil.copytree(first, DIST)
    for extra in options.extras:
        smoke_test(wheel, extra)
    shutil.rmtree(WORK)
    print(f"done: {', '.join(path.name for path in files)} in dist")


def _options() -> argparse.Namespace:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    known = ["core", *(name for name in extras if name not in NOT_TESTED)]
    parser = argparse.ArgumentParser(description="Build and check a release.")
    parser.add_argument("--extras", nargs="*", choices=known, default=known, help="test these (default: all)")
    return parser.parse_args()


def make_environment(folder: Path, *requirements: str) -> Path:
    """Make an environment and return its interpreter."""
    run(Path(sys.executable), "-m", "venv", str(folder))
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)
    return python


def build(tools: Path, source: Path, out: Path, *, umask: int) -> None:
    """Build the source distribution and, from it, the wheel."""
    before = os.umask(umask)
    try:
        run(tools, "-m", "build", "--no-isolation", "--outdir", str(out), str(source), quiet=True)
    finally:
        os.umask(before)


def same_files(first: Path, second: Path) -> list[Path]:
    """Return the files of the first folder, which have the bytes of those in the second."""
    files = sorted(first.iterdir())
    for path in files:
        digests = [
            hashlib.sha256((folder / path.name).read_bytes()).hexdigest() for folder in (first, second)
        ]
        if digests[0] != digests[1]:
            sys.exit(f"{path.name} has other bytes when it is built again: {digests[0]}, {digests[1]}")
        print(f"same bytes twice: {path.name}, {path.stat().st_size:,} bytes, sha256 {digests[0]}")
    return files


def list_files(wheel: Path) -> None:
    """Print the files of the wheel with their sizes."""
    with zipfile.ZipFile(wheel) as archive:
        members = archive.infolist()
    for member in members:
        print(f"{member.file_size:>9,}  {member.filename}")
    unpacked = sum(member.file_size for member in members)
    print(f"{wheel.name}: {len(members)} files, {wheel.stat().st_size:,} bytes, unpacked {unpacked:,}")


def smoke_test(wheel: Path, extra: str) -> None:
    """Install the wheel with one extra in an environment of its own, and use it."""
    start = perf_counter()
    folder = WORK / extra
    target = str(wheel) if extra == "core" else f"{wheel}[{extra}]"
    python = make_environment(folder, target)
    # In another folder and without PYTHONPATH, so that nothing of the repository is found.
    run(python, str(ROOT / "release" / "smoke.py"), extra, cwd=WORK)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    print(f"{extra}: environment of {size / 2**20:,.0f} MiB, {perf_counter() - start:.0f} s", flush=True)
    shutil.rmtree(folder)


def run(python: Path, *arguments: str, cwd: Path = ROOT, quiet: bool = False) -> None:
    """Run Python without paths of this repository, and with the time of its last commit."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment.setdefault("SOURCE_DATE_EPOCH", commit_time())
    sys.stdout.flush()
    done = subprocess.run(
        [str(python), *arguments], cwd=cwd, env=environment, capture_output=quiet, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(arguments)} failed\n{done.stdout or ''}{done.stderr or ''}")


def commit_time() -> str:
    """Return when the last commit was made, in seconds since 1970."""
    command = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
