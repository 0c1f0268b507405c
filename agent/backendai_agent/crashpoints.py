"""Named places where a test may make the agent die, as a power cut would.

``BACKENDAI_CRASHPOINT=name[:nth]`` kills the process with SIGKILL when it passes
*name* for the *nth* time (the first, unless said). Without the variable a crash
point does nothing. The names, in the order a container passes them:

=====================  ==========================================================
``agent.ordered``      the order was received, nothing is written yet
``agent.prepared``     the container's folder exists
``agent.pulling``      the environment is being fetched
``agent.mounted``      its folders are mounted for its start
``agent.activated``    environment and arguments (secrets) are written
``agent.recorded``     the intent to start is durable
``agent.created``      inside the runtime: made, not started
``agent.started``      the runtime started it; not written down yet
``agent.probing``      waiting for the first answer
``agent.ready``        it answered; not reported yet
``agent.kept``         what a command printed is kept; its end is not yet
``agent.stopping``     inside the runtime: asked to end, not dead yet
``agent.removed``      the container is gone; its folder is still here
=====================  ==========================================================
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import Final

_NAME, _, _NTH = os.environ.get("BACKENDAI_CRASHPOINT", "").partition(":")
_passed: Final[Counter[str]] = Counter()


def crashpoint(name: str) -> None:
    """Die here if ``BACKENDAI_CRASHPOINT`` says so."""
    if name != _NAME:
        return
    _passed[name] += 1
    if _passed[name] == int(_NTH or 1):
        os.kill(os.getpid(), signal.SIGKILL)
