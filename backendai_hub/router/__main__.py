"""``python -m backendai_hub.router``."""

from __future__ import annotations

from backendai_hub.router.app import main

main()
