"""Build an image from this checkout: ``python -m images.build jupyterlab [--json]``."""

from __future__ import annotations

import sys

from backendai_agent.environments import main

if __name__ == "__main__":
    main(["build", *sys.argv[1:]])
