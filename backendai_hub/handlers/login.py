"""Login by JupyterHub: OAuth for browsers, tokens for programs."""

from __future__ import annotations

from jupyterhub.services.auth import HubOAuth

CLIENT_ID = "service-backendai"

__all__ = ["CLIENT_ID", "HubOAuth", "build_login"]


def build_login(
    *, api_url: str, token: str, prefix: str, hub_base: str, cache_seconds: int
) -> HubOAuth:
    """Build what asks JupyterHub who a cookie or a token belongs to.

    Its word is kept for *cache_seconds*, which bounds how long a revoked token or a
    withdrawn right still works.
    """
    return HubOAuth(
        api_url=api_url,
        api_token=token,
        base_url=prefix,
        hub_prefix=f"{hub_base}hub/",
        oauth_client_id=CLIENT_ID,
        oauth_redirect_uri=f"{prefix}oauth_callback",
        cache_max_age=cache_seconds,
    )
