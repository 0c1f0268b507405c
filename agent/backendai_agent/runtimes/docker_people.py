"""Who a session is in its container: a name for its number, and a right to sudo.

Programs want the user they run as to have a name, and sudo refuses whoever has none.
What names them is written into the container after it is made and before it runs,
so that no image has to be made for it.
"""

from __future__ import annotations

import io
import tarfile
from typing import Any, Final

import docker

from backendai_agent.runtimes.base import RuntimeFailure
from backendai_agent.runtimes.docker_config import HOME, choose_profile
from backendai_hub.api.agents import ContainerSpec

USER: Final = "work"
SUDOERS: Final = f"{USER} ALL=(ALL:ALL) NOPASSWD: ALL\n"
LONGEST: Final = 1 << 20
"""No list of users is longer; what an image says of itself is not believed."""

_PASSWD, _GROUP, _RIGHTS = "etc/passwd", "etc/group", "etc/sudoers.d/backendai"


def name_person(api: docker.APIClient, container: str, spec: ContainerSpec) -> None:
    """Name the user that *container*, made and not started, is going to run as.

    Doing it twice changes nothing. Images without sudo stay without it.
    """
    if spec.identity is None and not spec.sudo:
        return
    profile = choose_profile(spec)
    files: dict[str, tuple[str, int]] = {}
    if spec.identity is not None and not profile.read_only:
        uid, _, gid = profile.user.partition(":")
        passwd = _read(api, container, f"/{_PASSWD}")
        group = _read(api, container, f"/{_GROUP}")
        files[_PASSWD] = (add_user(passwd, uid=int(uid), gid=int(gid)), 0o644)
        files[_GROUP] = (add_group(group, gid=int(gid)), 0o644)
    if spec.sudo and _has_sudo(api, container):
        files[_RIGHTS] = (SUDOERS, 0o440)
    if files and not api.put_archive(container, "/", pack(files)):
        raise RuntimeFailure("the container's user could not be named in it")


def add_user(passwd: str, *, uid: int, gid: int) -> str:
    """Return *passwd* with :data:`USER` as *uid*, unless that is root."""
    if uid == 0:
        return passwd
    kept = [
        line
        for line in passwd.splitlines()
        if (words := line.split(":"))[0] != USER and words[2:3] != [str(uid)]
    ]
    return "\n".join([*kept, f"{USER}:x:{uid}:{gid}::{HOME}:/bin/bash", ""])


def add_group(group: str, *, gid: int) -> str:
    """Return *group* with a name for *gid*, unless that is root's."""
    lines = group.splitlines()
    if gid == 0 or any(line.split(":")[2:3] == [str(gid)] for line in lines):
        return group
    kept = [line for line in lines if line.split(":")[0] != USER]
    return "\n".join([*kept, f"{USER}:x:{gid}:", ""])


def pack(files: dict[str, tuple[str, int]]) -> bytes:
    """Pack *files* (path to content and mode), all of them root's."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, (text, mode) in files.items():
            content = text.encode()
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(content), mode
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def _read(api: docker.APIClient, container: str, path: str) -> str:
    """Return a text file of the container; empty if it has none."""
    found = _get(api, container, path)
    if found is None:
        return ""
    chunks, length = [], 0
    for chunk in found:
        chunks.append(chunk)
        length += len(chunk)
        if length > LONGEST:
            raise RuntimeFailure(f"{path} of the image is too long")
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
        member = archive.next()
        file = archive.extractfile(member) if member and member.isreg() else None
        if file is None:
            raise RuntimeFailure(f"{path} of the image is not a file")
        return file.read().decode("utf-8", "replace")


def _has_sudo(api: docker.APIClient, container: str) -> bool:
    found = _get(api, container, "/usr/bin/sudo")
    if found is None:
        return False
    found.close()
    return True


def _get(api: docker.APIClient, container: str, path: str) -> Any:
    try:
        return api.get_archive(container, path)[0]
    except docker.errors.NotFound:
        return None
