"""The protocol between the hub service and its agents.

An agent asks for its *assignments*, a complete and versioned document, by
long-poll, and answers with *reports* of what it sees. Nothing else is said, so
losing or repeating any message changes nothing. Both sides tolerate fields they
do not know, so that they may differ by one version.

Routes (mutual TLS; the certificate is the identity)::

    POST /agent/v1/enroll            token + CSR → certificate   (no client cert)
    GET  /agent/v1/assignments?newer_than=G&wait=S               → AssignmentSet
    PUT  /agent/v1/report            AgentReport                 → ReportAnswer
    PUT  /agent/v1/log               LogParcel
    PUT  /agent/v1/usage             core.measures.Measures
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from backendai_hub.core.agents import Device, Isolation

PROTOCOL_VERSION = 2
"""Raised when agents learn something; what they do with it is in core.agents."""

LOG_MOMENT = "X-Backendai-Log-Moment"
"""When a log was read, by a clock of its node's; one waits for more than was there."""

USUAL_GRACE = 10.0
"""Seconds between asking what runs in a container to end, and ending it by force."""


class ContainerState(StrEnum):
    """What an agent sees of one container."""

    PREPARING = "preparing"
    PULLING = "pulling"
    CREATING = "creating"
    RUNNING = "running"
    EXITED = "exited"
    GONE = "gone"


class DesiredState(StrEnum):
    """What the hub wants of one container."""

    RUNNING = "running"
    ABSENT = "absent"


class ImageWish(StrEnum):
    """What the hub wants of one image on a node."""

    PRESENT = "present"
    ABSENT = "absent"


class ImageState(StrEnum):
    """How far a node is with one image it was asked to hold or to remove."""

    WAITING = "waiting"
    PULLING = "pulling"
    DONE = "done"
    FAILED = "failed"


class EnrollRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A new node shows its single-use token and asks for a certificate."""

    token: str
    name: str
    csr: str
    machine_id: str
    resource_group: str | None = None


class EnrollAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The node's identity: PEM texts, and the id that is in the certificate."""

    agent_id: str
    certificate: str
    authority: str


class SessionFile(msgspec.Struct, frozen=True, kw_only=True):
    """A text file for the session's home; ``permission`` is octal, like "644"."""

    path: str
    permission: str
    content: str


class DeviceShare(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a device: *amount* of *slot*, in the slot's smallest unit.

    ``slices`` says, as bits, which instance of a device that is cut into some.
    """

    device: str
    slot: str
    amount: int
    slices: int = 0


class RegistryCredential(msgspec.Struct, frozen=True, kw_only=True):
    """A login at one registry: ``registry`` is its host, with a port if it has one.

    It travels only over mutual TLS, is handed to that registry and to no other, and
    is never stored or shown: its text form leaves the password out.
    """

    registry: str
    username: str
    password: str

    def __repr__(self) -> str:
        """Describe the login without its secret."""
        return f"RegistryCredential({self.username!r} at {self.registry!r})"

    __str__ = __repr__

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """List what may be printed."""
        return [("registry", self.registry), ("username", self.username)]


class ImageWanted(msgspec.Struct, frozen=True, kw_only=True):
    """An image a node shall hold before anybody needs it, or shall remove."""

    reference: str
    wanted: ImageWish
    credential: RegistryCredential | None = None


class ImageProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a node is with one :class:`ImageWanted`.

    ``wanted`` repeats what this is the answer to; ``progress`` is 0 to 1 while it
    is known; ``reason`` says why it waits or has failed. What has failed is tried
    again for as long as it is wanted.
    """

    reference: str
    wanted: ImageWish
    state: ImageState
    progress: float | None = None
    reason: str = ""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers a container's processes have on the node, and so on its storage.

    What is None is left to the runtime. Zero, which is root, is never among them.
    """

    uid: int | None = None
    gid: int | None = None
    gids: list[int] = []


class ClusterPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Which of its session's containers one is, and where the others are.

    ``hosts`` are the names of all of them, the main one first, and ``beside`` those on
    this container's node; ``addresses`` are the nodes' own, by host. A main container
    that ``waits`` runs its command only when an assignment says that it does not.
    """

    mode: str = "single-node"
    role: str = "main"
    idx: int = 1
    host: str = "main1"
    hosts: tuple[str, ...] = ("main1",)
    beside: tuple[str, ...] = ("main1",)
    addresses: dict[str, str] = {}
    waits: bool = False

    @property
    def size(self) -> int:
        """How many containers the session has."""
        return len(self.hosts)

    @property
    def rank(self) -> int:
        """Where this one is among them, from 0."""
        return self.hosts.index(self.host)

    @property
    def is_together(self) -> bool:
        """Whether all of several containers are on one node."""
        return 1 < len(self.hosts) == len(self.beside)

    @property
    def is_idle(self) -> bool:
        """Whether it runs nothing of its own, and is there for the main one."""
        return self.role == "sub"


class MountSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A folder, or a part of one, that a container sees at ``target``.

    ``parts`` lead from the root of the storage host ``host`` to the folder; an
    ``unmanaged`` folder has an absolute path of the node in their place. ``subpath``
    goes on from there, through what users have made; with ``make`` folders that are
    missing on that way are made. ``permission`` is "ro", "rw" or "wd": to what runs
    in a container the last two are the same. On the host the files are those of
    ``owner_uid`` and ``owner_gid``, to the session its own; None leaves them be.
    """

    host: str
    parts: list[str] = []
    unmanaged: str = ""
    subpath: list[str] = []
    make: bool = False
    target: str
    permission: str = "rw"
    owner_uid: int | None = None
    owner_gid: int | None = None

    @property
    def read_only(self) -> bool:
        """Whether nobody writes through it; what is not understood is taken so."""
        return self.permission not in {"rw", "wd"}


class ContainerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """All an agent needs to run one container of a session.

    ``environ`` holds secrets, and so may ``files`` (written into the home) and
    ``bootstrap`` (a script that runs once before the session is RUNNING): they travel
    only over mutual TLS, are delivered to the container by file, and never appear in
    the runtime's own records. ``labels``
    are what the agent writes on the container to recognise it later.
    ``memory`` and ``shmem`` are bytes, ``cpu`` is in thousandths of a core;
    With ``command``, a line for the shell, the container runs that instead of
    JupyterLab, ends with it, and leaves a :class:`LogParcel`; ``timeout_seconds`` (0:
    none) after its start it is ended. With ``lease_seconds`` (0: none) it ends itself
    when no report of its node has been taken for so long: it may run elsewhere then.
    ``references`` says what each runtime calls the image, ``image`` what the runtime
    calls it that the node had when it was chosen, ``credential`` is for fetching it.
    ``host_network``, ``sudo`` and ``identity`` are what administrators have said of
    its resource group and its owner. A runtime that cannot do the first or the last
    refuses; where sudo cannot work, it does not. ``cluster`` says which of its
    session's containers it is; all but the main one run nothing but a supervisor.
    ``mounts`` are the folders it sees; without one of them it does not start.
    """

    id: str
    session_id: str
    desired: DesiredState
    session_name: str = ""
    owner: str = ""
    image: str = ""
    references: dict[str, str] = {}
    cpu: int = 0
    memory: int = 0
    shmem: int = 0
    shares: list[DeviceShare] = []
    environ: dict[str, str] = {}
    argv: list[str] = []
    files: list[SessionFile] = []
    bootstrap: str = ""
    prefix: str = "/"
    profile: str = "full"
    host_network: bool = False
    sudo: bool = False
    identity: Identity | None = None
    grace_seconds: float = USUAL_GRACE
    command: str = ""
    timeout_seconds: float = 0.0
    lease_seconds: float = 0.0
    credential: RegistryCredential | None = None
    cluster: ClusterPlace = ClusterPlace()
    mounts: list[MountSpec] = []

    @property
    def is_job(self) -> bool:
        """Whether it runs our own runner, and not JupyterLab."""
        return bool(self.command) or self.cluster.is_idle


class AssignmentSet(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one agent should have, as of *generation*.

    ``epoch`` changes when the hub service wants an older agent process fenced off:
    an agent whose ``epoch`` is smaller than the document's takes the new one over.
    A container the agent sees and this document does not name is *unknown*: it is
    reported and left alone. Images it does not name are nobody's wish: they stay.
    """

    agent_id: str
    generation: int
    epoch: int
    containers: list[ContainerSpec]
    heartbeat_seconds: float = 5.0
    images: list[ImageWanted] = []


class ContainerReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one container looks like now; ``reason`` is for its owner to read.

    ``bootstrap`` tells that a script runs in it before it is RUNNING, which takes time.
    """

    id: str
    session_id: str
    state: ContainerState
    reason: str = ""
    exit_code: int | None = None
    progress: float | None = None
    bootstrap: bool = False


class LogParcel(msgspec.Struct, frozen=True, kw_only=True):
    """The end of what a container has printed; sent before its end is reported."""

    container: str
    content: bytes
    clipped: bool = False


class AgentReport(msgspec.Struct, frozen=True, kw_only=True):
    """A node's full account of itself. Reports are numbered by ``sequence``.

    ``labels`` and ``max_containers`` are from the node's own configuration;
    ``storage_hosts`` are those whose folders it can show to sessions now.
    """

    protocol: int
    version: str
    epoch: int
    sequence: int
    machine_id: str
    url: str
    architecture: str
    generation: int
    devices: list[Device]
    containers: list[ContainerReport]
    unknown: list[str]
    isolation: Isolation
    images: list[str] = []
    image_progress: list[ImageProgress] = []
    labels: dict[str, str] = {}
    max_containers: int | None = None
    storage_hosts: list[str] = []


class ReportAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The hub took the report; *generation* is where assignments stand now."""

    generation: int
    epoch: int


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Where requests under *prefix* go: *app* of a container behind an agent."""

    prefix: str
    agent_id: str
    agent_url: str
    container: str
    app: str = "lab"


class RouteTable(msgspec.Struct, frozen=True, kw_only=True):
    """Every route of the data plane, as of *version*."""

    version: int
    routes: list[Route]
