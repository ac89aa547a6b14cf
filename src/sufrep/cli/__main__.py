"""``python -m sufrep.cli`` is the command ``sufrep``."""

from __future__ import annotations

from sufrep.cli import main

if __name__ == "__main__":
    main()
