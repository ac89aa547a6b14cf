"""Commands as processes that need no time for imports: forks of a process that has imported all of it.

``python -m fuzz.launcher`` reads one command a line: its arguments, modules, folder, and a file for messages.
It answers with the process id when the command has started, and with the exit code when it has ended.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fuzz.worker import environment


class Command(NamedTuple):
    """Arguments of ``sufrep``, the files that it writes, and modules that it needs."""

    arguments: list[str]
    outputs: tuple[str, ...]
    modules: tuple[str, ...]


class Launcher:
    """The other end of the process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fuzz.launcher"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            start_new_session=True,  # Ctrl-C is the business of the process that asks
        )

    def start(self, command: Command, folder: Path, messages: Path) -> Launched:
        """Start a command in a folder; one at a time."""
        assert self._process.stdin is not None
        request = {"arguments": command.arguments, "modules": command.modules}
        request |= {"folder": str(folder), "messages": str(messages)}
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return Launched(self._process, self._answer())

    def _answer(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.wait()


class Launched:
    """A command that was started; the part of `subprocess.Popen` that is needed."""

    def __init__(self, launcher: subprocess.Popen[bytes], pid: int) -> None:
        self._launcher, self.pid = launcher, pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        assert self._launcher.stdout is not None
        if self.returncode is None and select.select([self._launcher.stdout], [], [], 0)[0]:
            self.returncode = int(self._launcher.stdout.readline())
        return self.returncode

    def wait(self) -> int:
        """Wait for the end; the exit code."""
        while self.poll() is None:
            time.sleep(0.0005)
        assert self.returncode is not None
        return self.returncode


def main() -> None:
    """Start commands until there are no more."""
    from sufrep.cli import main as run

    for line in sys.stdin:
        request = json.loads(line)
        # Nothing is called: the threads of polars would not survive a fork.
        for module in request.pop("modules"):
            importlib.import_module(module)
        pid = os.fork()
        if not pid:
            _run(run, **request)
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _run(run: Callable[[], None], arguments: list[str], folder: str, messages: str) -> None:
    """In the new process: run the command, and end."""
    code = 1
    try:
        os.setsid()
        os.chdir(folder)
        null = os.open(os.devnull, os.O_RDWR)
        errors = os.open(messages, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream, file in enumerate((null, null, errors)):
            os.dup2(file, stream)
        sys.argv = ["sufrep", *arguments]
        run()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
