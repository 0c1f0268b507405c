"""Names of images, pulling them, and removing them."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
from collections.abc import Collection, Iterable
from typing import Any, Final

import docker
import docker.errors
import requests
from docker.auth import get_config_header, resolve_repository_name
from docker.utils import parse_repository_tag

from backendai_agent.runtimes.base import Progress, RuntimeFailure
from backendai_hub.api.agents import RegistryCredential
from backendai_hub.core.references import find_registry, is_reference

LATEST: Final = ":latest"
SILENCE_SECONDS: Final = 300
"""How long the engine may say nothing at all about a pull."""

_CAUSES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("there is no space left on this node", ("no space left", "quota exceeded")),
    (
        "its registry cannot be reached",
        (
            "no such host",
            "connection refused",
            "connection reset",
            "unreachable",
            "timeout",
            "deadline exceeded",
            "server misbehaving",
            "no route to host",
            "eof",
        ),
    ),
    (
        "this node does not trust its registry",
        ("x509:", "certificate", "http response to https"),
    ),
    ("there is no such tag in its registry", ("manifest unknown", "manifest for")),
    (
        "its registry refuses the login, or wants one",
        ("no basic auth", "unauthorized", "authentication required"),
    ),
    (
        "its registry does not have it, or wants another login",
        ("not found", "does not exist", "access denied", "name unknown", "denied"),
    ),
)
"""What the engine's words mean, the more certain meanings first."""


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


class Layers:
    """How far the layers of an image are, from the steps of a pull.

    Half of a layer's way is getting its bytes, half is unpacking them. How large a
    layer is is known when it begins; the others count like the average till then.
    """

    def __init__(self) -> None:
        self._sizes: dict[str, int | None] = {}
        self._got: dict[str, int] = {}
        self._unpacked: dict[str, int] = {}
        self._best = 0.0

    def note(self, step: dict[str, Any]) -> None:
        """Take in one step."""
        layer, status = step.get("id"), step.get("status")
        if not isinstance(layer, str):
            return
        detail = step.get("progressDetail") or {}
        here, size = int(detail.get("current") or 0), int(detail.get("total") or 0)
        match status:
            case "Pulling fs layer":
                self._sizes.setdefault(layer, None)
            case "Downloading" | "Extracting" if size > 0:
                self._sizes[layer] = size
                self._got[layer] = here if status == "Downloading" else size
                self._unpacked[layer] = here if status == "Extracting" else 0
            case "Download complete" | "Pull complete":
                known = self._sizes.get(layer) or 0
                self._sizes[layer] = self._got[layer] = known
                self._unpacked[layer] = known if status == "Pull complete" else 0

    def fraction(self) -> float | None:
        """Return 0 to 1, never less than before; None before anything is known."""
        sizes = [size for size in self._sizes.values() if size is not None]
        if not sum(sizes):
            return None
        total = sum(sizes) / len(sizes) * len(self._sizes)
        done = sum(self._got.values()) + sum(self._unpacked.values())
        self._best = max(self._best, min(1.0, done / (2 * total)))
        return self._best


class Pull:
    """One pull of an image; ``run`` blocks, ``stop`` ends it from another thread."""

    def __init__(
        self,
        image: str,
        progress: Progress,
        credential: RegistryCredential | None = None,
    ) -> None:
        if not is_reference(image):
            raise RuntimeFailure(f"{image[:80]!r} is not a reference of an image")
        registry = find_registry(image)
        meant = find_registry(f"{credential.registry}/") if credential else registry
        if credential is not None and meant != registry:
            raise RuntimeFailure(
                f"the login for {credential.registry[:80]} is none for {registry}"
            )
        self.image = image
        self._progress = progress
        self._credential = credential
        self._layers = Layers()
        self._stopped = threading.Event()
        self._answer: requests.Response | None = None

    def stop(self) -> None:
        """Give up; the engine ends a pull that nobody listens to."""
        self._stopped.set()
        if self._answer is not None:
            with contextlib.suppress(OSError, RuntimeError, ValueError):
                self._answer.raw.shutdown()  # wakes the thread that reads

    def run(self, api: docker.APIClient) -> None:
        """Pull the image; raises RuntimeFailure with the reason.

        docker-py's own ``pull`` would wait for ever for an engine that waits for a
        registry that has fallen silent.
        """
        name, tag = parse_repository_tag(self.image)
        with api.post(
            f"{api.base_url}/v{api.api_version}/images/create",
            params={"fromImage": name, "tag": tag or "latest"},
            headers={"X-Registry-Auth": self._login(api)},
            stream=True,
            timeout=SILENCE_SECONDS,
        ) as answer:
            self._answer = answer
            if answer.status_code >= 400:
                raise self._failure(_read_refusal(answer))
            for line in answer.iter_lines():
                if self._stopped.is_set():
                    return
                self._take(json.loads(line))

    def _take(self, step: dict[str, Any]) -> None:
        if "error" in step:
            raise self._failure(str(step["error"]))
        self._layers.note(step)
        self._progress(self._layers.fraction())

    def _login(self, api: docker.APIClient) -> str:
        """Return what the engine is to show the registry.

        Without a credential of the platform it is what this node's operator has
        logged in with, if anything.
        """
        login: dict[str, str] = {}
        if self._credential is not None:
            login = {
                "username": self._credential.username,
                "password": self._credential.password,
                "serveraddress": self._credential.registry,
            }
        else:
            registry, _ = resolve_repository_name(self.image)
            if known := get_config_header(api, registry):
                return bytes(known).decode()
        return _encode(login)

    def _failure(self, said: str) -> RuntimeFailure:
        said = self._conceal(said)
        lowered = said.lower()
        for meaning, words in _CAUSES:
            if any(word in lowered for word in words):
                said = f"{meaning} ({said})"
                break
        return RuntimeFailure(f"cannot fetch the image {self.image}: {said}")

    def _conceal(self, said: str) -> str:
        """Remove the password from what a registry may have sent back to us."""
        if self._credential is None:
            return said
        name, password = self._credential.username, self._credential.password
        pair = base64.b64encode(f"{name}:{password}".encode()).decode()
        for secret in (pair, password):
            if secret:
                said = said.replace(secret, "…")
        return said


def _encode(login: dict[str, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(login).encode()).decode()


def _read_refusal(answer: requests.Response) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        return f"the engine answered {answer.status_code}"


def discard(api: docker.APIClient, image: str, needed: Collection[str]) -> None:
    """Remove *image* unless a container is made of it or its id is in *needed*."""
    if not is_reference(image):
        raise RuntimeFailure(f"{image[:80]!r} is not a reference of an image")
    try:
        found = api.inspect_image(image)["Id"]  # type: ignore[no-untyped-call]
    except docker.errors.NotFound:
        return
    rows = [row for row in api.containers(all=True) if row["ImageID"] == found]
    if rows or found in needed:
        some = "a container" if len(rows) < 2 else f"{len(rows)} containers"
        raise RuntimeFailure(f"the image {image} is needed by {some} on this node")
    try:
        api.remove_image(image)
    except docker.errors.NotFound:
        return
    except docker.errors.APIError as error:
        raise RuntimeFailure(
            f"cannot remove the image {image}: {error.explanation or error}"
        ) from error
