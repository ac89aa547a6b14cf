"""The one way to write files: complete or not at all, with the permissions of the file that is replaced.

Links are followed, so that the file they lead to is replaced, not the link. What is not a file (a pipe, a
terminal, ``/dev/stdout``) is written to.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from sufrep.errors import NotWritableError, SufrepError

if TYPE_CHECKING:
    from collections.abc import Iterator

_HINT = "choose a folder in which you may write files, on a disk with free space."
_STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
# Links that are followed before a path counts as a circle; the kernel's own limit.
_MAX_LINKS = 40


@dataclass(frozen=True, slots=True)
class Destination:
    """Where an output goes.

    Attributes
    ----------
    name : Path
        The path as the user wrote it.
    file : Path or None
        The file to replace or create, behind all links; None for a stream.
    descriptor : int or None
        The descriptor of this process that the path stands for, such as 1 for ``/dev/stdout``.
    """

    name: Path
    file: Path | None
    descriptor: int | None = None

    @property
    def folder(self) -> Path:
        """The folder for the unfinished output."""
        return self.file.parent if self.file else Path(tempfile.gettempdir())

    def open_stream(self) -> BinaryIO:
        """Open a pipe or device, which waits for a reader if it is a named pipe."""
        if self.descriptor is None:
            return self.name.open("wb")
        if self.descriptor == 1:
            sys.stdout.flush()
        return os.fdopen(os.dup(self.descriptor), "wb")


def find_destination(path: str | os.PathLike[str]) -> Destination:
    """Find what a path leads to; raise if nothing can be written there.

    Raises
    ------
    NotWritableError
    """
    name = Path(path)
    descriptor = _descriptor(name)
    if descriptor is not None:
        return Destination(name, None, descriptor)
    with explained(name):
        try:
            found = name.stat()
        except FileNotFoundError:
            found = None
        file = Path(os.path.realpath(name))
    if found is not None:
        mode = found.st_mode
        if stat.S_ISDIR(mode):
            raise NotWritableError(name, "it is a folder.", "name a file in it.")
        if not _may_write(name):
            what = "it is write-protected."
            raise NotWritableError(name, what, "name another file, or change its permissions.")
        if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
            return Destination(name, None)
        if not stat.S_ISREG(mode):
            raise NotWritableError(name, "it is neither a file nor a pipe.", "name another file.")
    if not file.parent.is_dir():
        what = f"there is no folder {str(file.parent if name.is_symlink() else name.parent)!r}."
        raise NotWritableError(name, what, "create it first, or check the spelling.")
    return Destination(name, file)


def check_path(path: str | os.PathLike[str]) -> None:
    """Raise if nothing can be written to ``path``, so that a long computation need not be lost."""
    destination = find_destination(path)
    if destination.file is not None:
        with explained(destination.name):
            _hidden_folder(destination).rmdir()


def replace_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file completely, or leave the old one as it was."""
    with replacing(path) as whole:
        whole.write_bytes(content)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The path of a new file, which becomes the output at the end of the ``with`` block.

    It is in a folder of its own, which only this user can read, is next to the output, and holds further
    unfinished files if there are any. An error in the block removes the folder and leaves the old file as it
    was. If the new file does not exist at the end of the block, nothing is replaced.

    Raises
    ------
    NotWritableError
        If the disk is full, for example.
    """
    destination = find_destination(path)
    with explained(destination.name):
        folder = _hidden_folder(destination)
        try:
            whole = folder / "whole"
            yield whole
            if whole.exists():
                _publish(whole, destination)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The path of a new folder, which becomes the output at the end of the ``with`` block.

    An error in the block removes it and leaves an older folder as it was; the older one is moved away before
    the new one takes its name, and removed after that. If the new folder does not exist at the end of the
    block, nothing is replaced.

    Raises
    ------
    NotWritableError
    """
    name = Path(path)
    check_folder(name)
    file = Path(os.path.realpath(name))
    with explained(name):
        hidden = _hidden_folder(Destination(name, file))
        try:
            whole = hidden / "whole"
            yield whole
            if whole.exists():
                older = hidden / "older"
                if file.exists():
                    file.rename(older)
                try:
                    whole.rename(file)
                except OSError:
                    if older.exists():
                        older.rename(file)
                    raise
        finally:
            shutil.rmtree(hidden, ignore_errors=True)


def check_folder(path: Path) -> None:
    """Raise if no folder can be written to ``path``."""
    with explained(path):
        file = Path(os.path.realpath(path))
        if file.exists() and not file.is_dir():
            raise NotWritableError(path, "it is a file.", "name a folder, or remove the file.")
        if not file.parent.is_dir():
            what = f"there is no folder {str(file.parent)!r}."
            raise NotWritableError(path, what, "create it first, or check the spelling.")
        _hidden_folder(Destination(path, file)).rmdir()


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn errors of the system, such as a full disk, into an error of ours."""
    try:
        yield
    except (SufrepError, BrokenPipeError):
        # A reader that stops early, as in `| head`, is not an error of the output.
        raise
    except OSError as error:
        raise NotWritableError(path, f"{error.strerror or error}.", _HINT) from error


def is_standard_output(path: str | os.PathLike[str]) -> bool:
    """Whether a path stands for the standard output of this process."""
    return _descriptor(Path(path)) == 1


def _publish(whole: Path, destination: Destination) -> None:
    if destination.file is None:
        with whole.open("rb") as source, destination.open_stream() as stream:
            shutil.copyfileobj(source, stream)
        return
    with whole.open("rb+") as file:
        os.fsync(file.fileno())
    _keep_permissions(whole, destination.file)
    whole.replace(destination.file)


def _keep_permissions(new: Path, old: Path) -> None:
    """Give a new file the owner, the group and the mode of the one that it replaces, if there is one."""
    try:
        found = old.stat()
    except FileNotFoundError:
        return  # the umask decides
    mode = stat.S_IMODE(found.st_mode)
    if hasattr(os, "chown"):
        for user, group in ((found.st_uid, found.st_gid), (-1, found.st_gid)):
            try:
                os.chown(new, user, group)
            except PermissionError:
                continue
            break
        else:
            # What was for the old group must not become readable for another one.
            mode &= ~stat.S_IRWXG
    new.chmod(mode)


def _may_write(path: Path) -> bool:
    # The effective user is the one who will open the file.
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _hidden_folder(destination: Destination) -> Path:
    """A private folder with a name that nobody else uses, and nobody can have prepared."""
    # The name is cut so that the longer temporary name stays within the limit of the file system.
    prefix = f".{destination.name.name[:40]}."
    return Path(tempfile.mkdtemp(dir=destination.folder, prefix=prefix, suffix=".part"))


def _descriptor(path: Path) -> int | None:
    """The descriptor of this process that a path stands for, perhaps through links."""
    name = os.path.abspath(path)
    for _ in range(_MAX_LINKS):
        number = re.fullmatch(r"/(?:dev|proc/self)/fd/(\d+)", name)
        if number or name in _STANDARD:
            return int(number[1]) if number else _STANDARD[name]
        if not os.path.islink(name):
            break
        name = os.path.abspath(os.path.join(os.path.dirname(name), os.readlink(name)))
    return None
