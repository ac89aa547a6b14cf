"""A process that runs cases of a part one after another, because a damaged file may end or fill a process.

It is started again when it dies or takes too long. ``python -m fuzz.worker <part> <folder>`` reads one case a
line and answers with one outcome a line.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from fuzz.part import Case, Outcome

# One thread each, as in the tests: a case is too small for more.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1", "COLUMNS": "200", "NO_COLOR": "1"}
# Memory that a case may use beyond what the process has after its imports.
_MEMORY = 2 << 30


class Worker:
    """The other end of the process.

    Parameters
    ----------
    part : str
        A module of this package with a function ``checker(folder)``, which returns a function from a case to
        an outcome.
    folder : Path
        Files for it.
    seconds : float
        Time that a case may take.
    """

    def __init__(self, part: str, folder: Path, seconds: float = 60.0) -> None:
        self.part, self.folder, self.seconds = part, folder, seconds
        self._process: subprocess.Popen[bytes] | None = None

    def check(self, case: Case) -> Outcome | str:
        """The outcome, or in words how the process ended: "timeout", "signal 6", "exit 1"."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(case).encode() + b"\n")
            process.stdin.flush()
            ready = select.select([process.stdout], [], [], self.seconds)[0]
            line = process.stdout.readline() if ready else None
        except BrokenPipeError:
            line = b""
        if line:
            return Outcome(**json.loads(line))
        if line is None:
            process.kill()
        code = process.wait()
        self.close()
        return "timeout" if line is None else f"signal {-code}" if code < 0 else f"exit {code}"

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    with suppress(BrokenPipeError):
                        stream.close()
            self._process.kill()
            self._process.wait()
            self._process = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "fuzz.worker", self.part, str(self.folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment(),
            )
        return self._process


def environment() -> dict[str, str]:
    """The variables of processes that are started, in which this package can be imported from any folder."""
    here = str(Path(__file__).parents[1])
    paths = [here, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, **ENVIRONMENT, "PYTHONPATH": os.pathsep.join(paths)}


def main() -> None:
    """Answer cases until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the business of the process that asks
    # Whatever a case prints must not mix with the answers.
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    check = importlib.import_module(f"fuzz.{sys.argv[1]}").checker(Path(sys.argv[2]))
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    if pages:
        limit = pages * resource.getpagesize() + _MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for line in requests:
        answers.write(json.dumps(asdict(check(json.loads(line)))).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    main()
