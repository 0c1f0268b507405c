"""JupyterHub's side of the platform: spawner, authenticator and pages."""

from __future__ import annotations

from backendai_spawner.installation import install

__all__ = ["install"]
