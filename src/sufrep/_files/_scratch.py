"""Files of our own that vanish with what uses them."""

from __future__ import annotations

import os
import tempfile
import weakref
from pathlib import Path


class Scratch:
    """A file in the folder for temporary files, removed when nobody holds this object any more."""

    def __init__(self, suffix: str) -> None:
        handle, name = tempfile.mkstemp(prefix="sufrep-", suffix=suffix)
        os.close(handle)
        self.path = Path(name)
        # Unlike __del__ this also runs when the interpreter ends.
        weakref.finalize(self, self.path.unlink, missing_ok=True)
