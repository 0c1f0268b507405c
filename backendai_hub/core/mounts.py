"""Which folders a session gets, where, and how: the rules of mounts.

Everything is decided when a session is asked for, from what is known of its user's
folders then. What is named and cannot be had is refused, never left out; folders whose
names begin with a dot come by themselves and are left out where they cannot be had.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from backendai_hub.core.errors import InvalidRequestError, NotFoundError
from backendai_hub.core.fields import HostPermission
from backendai_hub.core.ids import is_id
from backendai_hub.core.mount_paths import (
    HOME,
    default_target,
    overlap,
    read_subpath,
    read_target,
)
from backendai_hub.core.names import fold, suggest
from backendai_hub.core.vfolders import (
    LOCAL,
    MOUNTABLE,
    FolderPermission,
    HostPermissions,
    Ownership,
    StoragePermissionError,
    UsageMode,
    check_permitted,
    is_automount,
    is_shared_out,
)

MOST_MOUNTS: Final = 100


class MountRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A folder somebody wants in their session.

    ``folder`` is a name, a name and a path inside (``data/2026``), or an id;
    ``subpath`` is a path inside as well. ``target`` is where it is to appear: below
    ``/home/work`` unless it is absolute, and by the folder's name without one.
    ``permission`` is at most the one its user has; without one, it is just that.
    """

    folder: str
    subpath: str = ""
    target: str = ""
    permission: FolderPermission | None = None


class MountableFolder(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a folder that the user of a session may see.

    ``permission`` is what this user may do inside, ``shared`` says that it was given
    by somebody, and ``model_store`` that it lies in a project of that type.
    """

    id: str
    name: str
    host: str
    scope: str
    status: str
    usage_mode: str
    permission: str
    ownership_type: str
    owner_id: str
    owner_name: str = ""
    unmanaged_path: str = ""
    shared: bool = False
    model_store: bool = False


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """One folder, or a part of one, at one place in a session."""

    folder_id: str
    folder_name: str
    host: str
    scope: str
    unmanaged_path: str = ""
    subpath: str = ""
    target: str
    permission: FolderPermission
    automatic: bool = False
    """Whether nobody has asked for it."""


class MountContext(msgspec.Struct, frozen=True, kw_only=True):
    """Whose session it is, in which project, and what is permitted on each host."""

    user_id: str
    project_id: str
    permissions: HostPermissions
    automatic: bool = True
    """Whether anything may come by itself."""


def read_mount(text: str) -> MountRequest:
    """Read ``name[/path][:target][:ro|rw|wd]``, as people write a mount on one line."""
    folder, *rest = text.strip().split(":")
    permission = None
    if rest and rest[-1] in set(FolderPermission):
        permission = FolderPermission(rest.pop())
    if not folder or len(rest) > 1:
        raise InvalidRequestError(
            f"mounts: {text[:64]!r} is no mount; write NAME, NAME:TARGET, NAME:ro or"
            " NAME:TARGET:ro, with ro, rw or wd"
        )
    return MountRequest(
        folder=folder, target=rest[0] if rest else "", permission=permission
    )


# --- the rules -------------------------------------------------------------------


def resolve_mounts(
    requests: Sequence[MountRequest],
    folders: Iterable[MountableFolder],
    context: MountContext,
) -> list[Mount]:
    """Return what a session mounts, in the order of targets.

    Raises a refusal that names the folder for whatever was asked for and cannot be.
    """
    if len(requests) > MOST_MOUNTS:
        raise InvalidRequestError(
            f"mounts: {len(requests)} folders; the most is {MOST_MOUNTS}"
        )
    known = _order(folders, context)
    asked = [_resolve(request, known, context) for request in requests]
    _check_overlaps(asked)
    mounts = asked
    if context.automatic:
        mounts = [*asked, *_list_automatic(known, context, asked)]
    return sorted(mounts, key=lambda mount: mount.target)


def _order(
    folders: Iterable[MountableFolder], context: MountContext
) -> list[MountableFolder]:
    """Put what a name means first: one's own, the project's, what others have given."""

    def key(folder: MountableFolder) -> tuple[int, str]:
        if folder.owner_id == context.user_id:
            return 0, folder.id
        if folder.owner_id == context.project_id:
            return 1, folder.id
        return (2 if folder.shared else 3), folder.id

    alive = [folder for folder in folders if folder.status in MOUNTABLE]
    return sorted(alive, key=key)


def _resolve(
    request: MountRequest, known: Sequence[MountableFolder], context: MountContext
) -> Mount:
    name, _, rest = request.folder.partition("/")
    folder = _find(name, known)
    _check_project(folder, context)
    _check_host(folder, context)
    subpath = read_subpath(f"{rest}/{request.subpath}")
    target = read_target(request.target) if request.target else ""
    return Mount(
        folder_id=folder.id,
        folder_name=folder.name,
        host=folder.host,
        scope=folder.scope,
        unmanaged_path=folder.unmanaged_path,
        subpath=_personal(folder, context, subpath),
        target=target or default_target(folder.name),
        permission=_choose_permission(request, folder, context),
    )


def _find(reference: str, known: Sequence[MountableFolder]) -> MountableFolder:
    key = fold(reference)
    for folder in known:
        if folder.id == key if is_id(key) else fold(folder.name) == key:
            return folder
    raise NotFoundError(
        f"mounts: there is no folder {reference[:64]!r} that you could mount"
        f"{suggest(reference, [f.name for f in known])}"
    )


def _is_store(folder: MountableFolder) -> bool:
    return folder.model_store and folder.usage_mode == UsageMode.MODEL


def _is_foreign(folder: MountableFolder, context: MountContext) -> bool:
    """Tell whether it is of another project than the session."""
    return (
        folder.ownership_type == Ownership.PROJECT
        and folder.owner_id != context.project_id
    )


def _check_project(folder: MountableFolder, context: MountContext) -> None:
    if _is_foreign(folder, context) and not _is_store(folder):
        raise InvalidRequestError(
            f"mounts: the folder {folder.name!r} belongs to the project"
            f" {folder.owner_name or folder.owner_id}; ask for the session in that"
            " project"
        )


def _check_host(folder: MountableFolder, context: MountContext) -> None:
    try:
        check_permitted(context.permissions, folder.host, HostPermission.MOUNT)
    except StoragePermissionError as error:
        raise StoragePermissionError(
            f"mounts: the folder {folder.name!r}: {error.message}", **error.fields
        ) from None


def _effective(folder: MountableFolder, context: MountContext) -> FolderPermission:
    """Return the most that a session may do: of another's model store, only read."""
    if _is_store(folder) and _is_foreign(folder, context):
        return FolderPermission.READ_ONLY
    return FolderPermission(folder.permission)


def _choose_permission(
    request: MountRequest, folder: MountableFolder, context: MountContext
) -> FolderPermission:
    most = _effective(folder, context)
    wanted = request.permission
    if wanted is None:
        return most
    if wanted.rank > most.rank:
        raise InvalidRequestError(
            f"mounts: the folder {folder.name!r} can be mounted {most}, not {wanted}:"
            f" that is all you may do in it"
        )
    return wanted


def _personal(folder: MountableFolder, context: MountContext, subpath: str) -> str:
    """Give everybody a part of their own of a project's ``.local``."""
    if not is_shared_out(folder.ownership_type, folder.name):
        return subpath
    return "/".join(filter(None, (context.user_id, subpath)))


def is_personal(mount: Mount) -> bool:
    """Tell whether it is somebody's own part of a folder that is shared out."""
    of_project = mount.scope.startswith(f"{Ownership.PROJECT}-")
    return of_project and fold(mount.folder_name) == LOCAL


def _source(mount: Mount) -> str:
    """Return where its files are: below one another, if those of two mounts are."""
    return f"{mount.unmanaged_path or f'/{mount.folder_id}'}/{mount.subpath}"


def _check_overlaps(mounts: Sequence[Mount]) -> None:
    for i, one in enumerate(mounts):
        for other in mounts[:i]:
            if one.folder_id == other.folder_id and overlap(
                f"/{one.subpath}", f"/{other.subpath}"
            ):
                raise InvalidRequestError(
                    f"mounts: the folder {one.folder_name!r} would be mounted twice:"
                    f" {one.subpath or 'all of it'!r} and"
                    f" {other.subpath or 'all of it'!r}; name parts that do not"
                    " overlap"
                )
            if overlap(_source(one), _source(other)):
                raise InvalidRequestError(
                    f"mounts: {one.folder_name!r} and {other.folder_name!r} are the"
                    " same place, or one is inside the other; mount one of them"
                )
            if overlap(one.target, other.target):
                raise InvalidRequestError(
                    f"mounts: {one.folder_name!r} at {one.target!r} and"
                    f" {other.folder_name!r} at {other.target!r} would lie inside one"
                    " another; give one of them another target"
                )


def _comes_by_itself(folder: MountableFolder, context: MountContext) -> bool:
    """Tell whether it may come unasked: code in it runs with every session.

    So nobody's but one's own ever does, whatever it was named after it was shared,
    and of the project's only the one of which everybody has a part of their own.
    """
    if folder.ownership_type == Ownership.PROJECT:
        ours = folder.owner_id == context.project_id
        return ours and is_shared_out(folder.ownership_type, folder.name)
    return folder.owner_id == context.user_id


def _list_automatic(
    known: Sequence[MountableFolder], context: MountContext, asked: Sequence[Mount]
) -> list[Mount]:
    """Return what comes by itself, where nothing else was asked for."""
    found: list[Mount] = []
    for folder in known:
        permitted = context.permissions.get(folder.host, frozenset())
        if (
            not is_automount(folder.name)
            or HostPermission.MOUNT not in permitted
            or not _comes_by_itself(folder, context)
        ):
            continue
        mount = Mount(
            folder_id=folder.id,
            folder_name=folder.name,
            host=folder.host,
            scope=folder.scope,
            unmanaged_path=folder.unmanaged_path,
            subpath=_personal(folder, context, ""),
            target=default_target(folder.name),
            permission=_effective(folder, context),
            automatic=True,
        )
        if not any(_collide(mount, other) for other in (*asked, *found)):
            found.append(mount)
    return found


def _collide(one: Mount, other: Mount) -> bool:
    return overlap(_source(one), _source(other)) or overlap(one.target, other.target)


def check_dotfiles(mounts: Iterable[Mount], paths: Iterable[str]) -> None:
    """Refuse a dotfile at the very path of a mount: one would hide the other."""
    targets: Mapping[str, str] = {mount.target: mount.folder_name for mount in mounts}
    for path in paths:
        whole = posixpath.normpath(posixpath.join(HOME, path))
        if whole in targets:
            raise InvalidRequestError(
                f"mounts: the folder {targets[whole]!r} would be mounted over the"
                f" dotfile {path!r}; remove the dotfile, or give the folder another"
                " target"
            )
