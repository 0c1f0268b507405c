"""Named places where a test may make a worker die, as a power cut would.

``BACKENDAI_STORAGE_CRASHPOINT=name[:nth]`` in the environment of the service kills the
worker with SIGKILL when it passes *name* for the *nth* time (the first, unless said).
Without the variable a crash point does nothing.

=========================  ======================================================
``upload.written``         a chunk is written, and not yet safe on the disk
``upload.synced``          the chunk is safe; nobody has been told
``upload.intended``        it is written down where a whole upload is to appear
``upload.published``       it has appeared; nobody has been told
``removing.renamed``       a folder is out of sight, and all of it is there still
``removing.entry``         one more entry of it is gone
``cloning.entry``          one more entry is copied
``cloning.copied``         all of it is copied, and has not appeared yet
``cloning.published``      the copy has appeared; nobody has been told
``making.noted``           it is written down where what a task made is to appear
``making.appeared``        it has appeared; nobody has been told
``moving.trash``           what was thrown away in a folder has moved, not yet itself
``moving.copied``          it is where it moves to, and still where it was
``trashing.noted``         it is written down what is to be thrown away
``trashing.renamed``       it is out of sight; nobody has been told
=========================  ======================================================
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import Final

VARIABLE: Final = "BACKENDAI_STORAGE_CRASHPOINT"
_NAME, _, _NTH = os.environ.get(VARIABLE, "").partition(":")
_passed: Final[Counter[str]] = Counter()


def crashpoint(name: str) -> None:
    """Die here if the environment says so."""
    if name != _NAME:
        return
    _passed[name] += 1
    if _passed[name] == int(_NTH or 1):
        os.kill(os.getpid(), signal.SIGKILL)
