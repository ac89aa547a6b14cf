"""What the four parts share: a case, what became of it, and how cases are made from seeds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# All that is needed to run a case again, as JSON: the frame, the damaged file or the command line itself, not
# only a seed, whose meaning changes with the generator.
Case = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case.

    Attributes
    ----------
    result : str
        What happened, in a word or two that is counted: "same", "our error", "exit 2".
    finding : str
        What went wrong; empty if nothing did.
    signature : str
        Findings with the same signature are probably the same defect; one of them is reported.
    """

    result: str
    finding: str = ""
    signature: str = ""


class Part(ABC):
    """One part of the harness.

    Parameters
    ----------
    folder : Path
        An empty folder for its files.
    """

    name: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def check(self, case: Case) -> Outcome:
        """Run one case."""

    @abstractmethod
    def draw(self, seed: int) -> Case:
        """The case of a seed."""

    def run(self, seed: int, known: set[str]) -> Iterator[tuple[Case, Outcome]]:
        """Run the case of a seed, or several; findings whose signature is known need not be minimised."""
        del known
        case = self.draw(seed)
        yield case, self.check(case)

    def close(self) -> None:
        """End what was started; here nothing was."""
        return

    def __enter__(self) -> Part:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def signature(part: str, what: str, error: BaseException | None = None) -> str:
    """A signature from what was done and, if any, the kind of error and the innermost line of ours."""
    if error is None:
        return f"{part}: {what}"
    place, trace = "", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if "sufrep" in Path(code.co_filename).parts:
            place = f"{Path(code.co_filename).name}:{code.co_name}"
        trace = trace.tb_next
    return f"{part}: {what}: {type(error).__name__} in {place}"
