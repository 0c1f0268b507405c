"""Names of images, and pulling them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, Final

import docker
from docker.utils import parse_repository_tag

from backendai_agent.runtimes.base import RuntimeFailure

LATEST: Final = ":latest"
_ABSENT: Final = ("not found", "manifest unknown", "does not exist", "access denied")


def references(listed: Iterable[dict[str, Any]]) -> list[str]:
    """Return every way to name the images the engine listed."""
    names = set()
    for image in listed:
        names.add(image["Id"])
        for name in (*(image["RepoTags"] or ()), *(image["RepoDigests"] or ())):
            if "<none>" not in name:
                names.add(name)
                names.add(name.removesuffix(LATEST))
    return sorted(names)


class Pull:
    """One pull of an image; ``run`` blocks, ``stop`` ends it from another thread."""

    def __init__(self, image: str, progress: Callable[[float | None], None]) -> None:
        self.image = image
        self._progress = progress
        self._layers: dict[str, tuple[int, int]] = {}
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Give up; the engine ends a pull that nobody listens to."""
        self._stopped.set()

    def run(self, api: docker.APIClient) -> None:
        """Pull the image; raises RuntimeFailure with the reason."""
        name, tag = parse_repository_tag(self.image)
        try:
            steps = api.pull(name, tag=tag or "latest", stream=True, decode=True)
            for step in steps:
                if self._stopped.is_set():
                    steps.close()
                    return
                if "error" in step:
                    raise self._failure(str(step["error"]))
                self._note(step)
        except docker.errors.APIError as error:
            raise self._failure(str(error.explanation or error)) from error

    def _note(self, step: dict[str, Any]) -> None:
        detail = step.get("progressDetail") or {}
        if not detail.get("total") or step.get("status") != "Downloading":
            return
        self._layers[step["id"]] = (detail["current"], detail["total"])
        total = sum(size for _, size in self._layers.values())
        self._progress(sum(here for here, _ in self._layers.values()) / total)

    def _failure(self, said: str) -> RuntimeFailure:
        if any(word in said.lower() for word in _ABSENT):
            return RuntimeFailure(
                f"there is no image {self.image} on this node or in its registry, or"
                f" the registry wants a login ({said})"
            )
        return RuntimeFailure(f"cannot fetch the image {self.image}: {said}")
