"""A container's folders on the node, when those inside are other users than we."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Final

import docker

from backendai_agent.folders import ContainerFolder, check_unmounted, remove_trees
from backendai_agent.runtimes.base import RuntimeFailure, ShownFolder

SWEEP_SECONDS: Final = 60
INSIDE: Final = "/folder"


def hand_over(folder: ContainerFolder, *, user: str, offset: int) -> None:
    """Give the container's folders to *user* (``uid:gid``) of the container.

    Done before anything runs inside, when only the agent can have put things there.
    """
    uid, gid = (offset + int(part) for part in user.split(":"))
    if (uid, gid) == (os.geteuid(), os.getegid()) or (user == "0:0" and not offset):
        return
    if os.geteuid() != 0:
        raise RuntimeFailure(
            f"sessions as user {user} need an agent that runs as root on this node"
        )
    # The folder above stays shut to all but the agent, so nobody else on the node
    # gains anything by owning what is below it.
    for path in (folder.run, *folder.run.iterdir(), folder.work):
        os.chown(path, uid, gid, follow_symlinks=False)


def blame_view(
    failure: RuntimeFailure, folders: Iterable[ShownFolder]
) -> RuntimeFailure:
    """Say what it means if the engine does not find what the agent has mounted."""
    if not any(shown.source in str(failure) for shown in folders):
        return failure
    return RuntimeFailure(
        "the container engine does not see the folders that this node's agent has"
        " mounted for the session: both have to run in the same mount namespace"
        " (systemd's PrivateMounts=, ProtectSystem= and the like separate them)"
    )


def empty_folders(api: docker.APIClient, folder: ContainerFolder, image: str) -> None:
    """Remove all that the session left, with root's help where we lack the right."""
    try:
        remove_trees([folder.run, folder.work])
    except OSError:
        if not image:
            raise
        check_unmounted([folder.path])  # root's help would not stop there either
        _sweep(api, folder, image)
        remove_trees([folder.run, folder.work])


def _sweep(api: docker.APIClient, folder: ContainerFolder, image: str) -> None:
    """Empty the folders as root, in a short-lived container that sees only them."""
    config: dict[str, Any] = {
        "Image": image,
        "Entrypoint": ["/bin/rm", "-rf", "--"],
        "Cmd": [f"{INSIDE}/run", f"{INSIDE}/work"],
        "User": "0:0",
        "WorkingDir": "/",
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": {
            "NetworkMode": "none",
            "CapDrop": ["ALL"],
            "CapAdd": ["DAC_OVERRIDE", "FOWNER"],
            "SecurityOpt": ["no-new-privileges"],
            "ReadonlyRootfs": True,
            "Mounts": [
                {
                    "Type": "bind",
                    "Source": str(folder.path),
                    "Target": INSIDE,
                    "ReadOnly": False,
                }
            ],
        },
    }
    made = api.create_container_from_config(config)["Id"]  # type: ignore[no-untyped-call]
    try:
        api.start(made)
        api.wait(made, timeout=SWEEP_SECONDS)
    finally:
        api.remove_container(made, force=True, v=True)
