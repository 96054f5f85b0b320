"""``python -m lsm``: the command ``lsm``."""

from __future__ import annotations

import sys

from lsm.cli import main

if __name__ == "__main__":
    sys.exit(main())
