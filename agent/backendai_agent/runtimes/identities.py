"""The numbers that an administrator gives a person's containers, checked once more."""

from __future__ import annotations

from backendai_agent.runtimes.base import RuntimeFailure
from backendai_hub.api.agents import Identity


def check_identity(identity: Identity | None) -> None:
    """Raise RuntimeFailure if *identity* would be root, or no user at all.

    The service refuses such numbers too; but it is this node that they would harm.
    """
    if identity is None:
        return
    for number in (identity.uid, identity.gid, *identity.gids):
        if number is not None and not 0 < number < (1 << 31) - 1:
            raise RuntimeFailure(
                f"a session runs neither as user nor as group {number}: an"
                " administrator has to change its owner's container ids"
            )
