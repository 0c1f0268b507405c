"""What file systems refuse, in words."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    HubError,
    InsufficientStorageError,
    InvalidRequestError,
    NotFoundError,
    UnavailableError,
)
from backendai_hub.safefs.paths import quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class EntryMissingError(NotFoundError):
    """There is nothing of that name."""


class EntryExistsError(ConflictError):
    """There is something of that name already."""


class NotAFolderError(ConflictError):
    """A file, a link or something else is where a folder has to be."""


class NotAFileError(ConflictError):
    """A folder, a link or something else is where a file has to be."""


class FolderNotEmptyError(ConflictError):
    """The folder has entries, and would have to be removed on purpose."""


class LinkRefusedError(ConflictError):
    """A symbolic link is in the way; links are never followed."""


class ChangedMeanwhileError(ConflictError):
    """Somebody moved or replaced it while it was worked on."""


class StoppedError(ConflictError):
    """The work was stopped on request, before its end."""


class ArchiveRefusedError(InvalidRequestError):
    """The archive is damaged, too large, or asks for what is not allowed."""


class LimitExceededError(InsufficientStorageError):
    """More would be written than the caller allows."""


_WORDS: Final[dict[int, tuple[type[HubError], str]]] = {
    errno.ENOENT: (EntryMissingError, "there is no such file or folder"),
    errno.EEXIST: (EntryExistsError, "something of that name exists already"),
    errno.ENOTDIR: (NotAFolderError, "a part of the path is not a folder"),
    errno.EISDIR: (NotAFileError, "it is a folder, not a file"),
    errno.ENXIO: (NotAFileError, "it is neither a file nor a folder"),
    errno.ENOTEMPTY: (FolderNotEmptyError, "the folder is not empty"),
    errno.ELOOP: (LinkRefusedError, "it is or leads through a link; none is followed"),
    errno.EXDEV: (LinkRefusedError, "it leads to another file system"),
    errno.EINVAL: (InvalidRequestError, "it cannot be done with this place"),
    errno.ENAMETOOLONG: (InvalidRequestError, "the name or the path is too long"),
    errno.EILSEQ: (InvalidRequestError, "the storage does not take such a name"),
    errno.ENOSPC: (InsufficientStorageError, "the storage is full"),
    errno.EDQUOT: (InsufficientStorageError, "the quota is used up"),
    errno.EFBIG: (InsufficientStorageError, "the file would be too large"),
    errno.EMLINK: (InsufficientStorageError, "the folder has too many folders"),
    errno.EACCES: (ForbiddenError, "the file system does not allow it"),
    errno.EPERM: (ForbiddenError, "the file system does not allow it"),
    errno.EROFS: (ForbiddenError, "the storage is read-only"),
    errno.EBUSY: (ConflictError, "it is in use"),
    errno.ETXTBSY: (ConflictError, "it is in use"),
    errno.EAGAIN: (ChangedMeanwhileError, "it changes while it is worked on"),
    errno.ESTALE: (UnavailableError, "the storage lost sight of it; try again"),
    errno.EIO: (UnavailableError, "the storage could not read or write it"),
    errno.ENOTCONN: (UnavailableError, "the storage does not answer"),
    errno.ETIMEDOUT: (UnavailableError, "the storage does not answer"),
}


@contextmanager
def in_words(parts: Sequence[str]) -> Iterator[None]:
    """Turn the refusals of the file system about *parts* into ours."""
    try:
        yield
    except OSError as error:
        known = _WORDS.get(error.errno or 0)
        if known is None:
            raise
        kind, words = known
        raise kind(f"{quote(parts)}: {words}") from error
