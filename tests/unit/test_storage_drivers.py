"""What drivers ask of kernels that are not here, and what a site may say of hosts."""

from __future__ import annotations

import errno
import os
import struct
import uuid

import pytest

from backendai_hub.core.configuration import ConfigurationError
from backendai_hub.core.errors import (
    ConflictError,
    HubError,
    InsufficientStorageError,
    LockedError,
    UnavailableError,
)
from backendai_hub.storage import ops, wire
from backendai_hub.storage.configuration import check_default, read_hosts
from backendai_hub.storage.drivers import OURS, find_driver, make_driver
from backendai_hub.storage.drivers.base import Limits, NoOptions
from backendai_hub.storage.drivers.cephfs import CephfsDriver
from backendai_hub.storage.drivers.gluster import GlusterDriver, GlusterOptions
from backendai_hub.storage.drivers.mounts import find_mount
from backendai_hub.storage.drivers.xfs import (
    ATTRIBUTES,
    DISK_QUOTA,
    INHERIT,
    READ_ATTRIBUTES,
    WRITE_ATTRIBUTES,
    Quota,
    XfsDriver,
    choose_project,
    command,
    read_quota,
    write_quota,
)
from backendai_hub.storage.hosts import StorageHosts

SCOPE = f"user-{uuid.UUID(int=1)}"
OTHER = f"user-{uuid.UUID(int=2)}"


@pytest.fixture
def scope(tmp_path):
    (tmp_path / SCOPE).mkdir()
    opened = os.open(tmp_path / SCOPE, os.O_RDONLY)
    yield opened
    os.close(opened)


@pytest.fixture
def root(tmp_path):
    opened = os.open(tmp_path, os.O_RDONLY)
    yield opened
    os.close(opened)


# --- configuration -----------------------------------------------------------------


def test_what_a_driver_has_of_its_own_is_said_beside_the_rest():
    host = read_hosts({"g": {"driver": "gluster", "path": "/g", "volume": "v"}})["g"]
    assert (host.path, host.options) == ("/g", {"volume": "v"})


@pytest.mark.parametrize(
    ("described", "words"),
    [
        ({"A!": {"path": "/x"}}, "a host's name"),
        ({"a": {}}, "path"),
        ({"a": {"path": "relative"}}, "not an absolute path"),
        ({"a": {"path": "/a/../b"}}, "not an absolute path"),
        ({"a": {"path": "/x", "owner": "alice"}}, "uid:gid"),
        ({"a": {"path": "/x", "unmanaged_roots": ["x"]}}, "not an absolute path"),
        ({"a": {"path": "/x", "pth": 1}}, "unknown field `pth`"),
        ({"a": {"path": "/x", "driver": "zfs"}}, "no storage driver 'zfs'"),
        ({"a": {"path": "/x", "driver": "gluster"}}, "volume"),
        ({"a": {"path": "/x", "require_mount": "yes"}}, "require_mount"),
    ],
)
def test_a_host_that_is_described_wrongly_is_refused_by_name(described, words):
    with pytest.raises(ConfigurationError, match=words):
        StorageHosts(described)


def test_the_default_host_is_the_one_there_is_or_the_one_that_is_named():
    one = read_hosts({"a": {"path": "/a"}})
    two = read_hosts({"a": {"path": "/a"}, "b": {"path": "/b"}})
    assert check_default(one, "") == "a"
    assert check_default(two, "") == ""
    assert check_default(two, "b") == "b"
    with pytest.raises(ConfigurationError, match="there are a, b"):
        check_default(two, "c")


def test_every_driver_can_be_found():
    for name in OURS:
        options = {"volume": "v"} if name == "gluster" else {}
        assert make_driver(name, "h", "/x", options)
    with pytest.raises(ConfigurationError, match="there are btrfs, cephfs, dir"):
        find_driver("nfs")


# --- the wire ----------------------------------------------------------------------


def test_a_refusal_arrives_as_what_it_was():
    for error in (
        LockedError("wait"),
        ConflictError("no", offset=7),
        InsufficientStorageError("full"),
        HubError("oh"),
    ):
        read = wire.read_reply(wire.frame(wire.refusal_of(error))[4:])
        again = wire.error_of(read)
        assert type(again) is type(error)
        assert (again.message, again.fields) == (error.message, error.fields)


def test_every_operation_survives_the_wire():
    place = ops.Place(scope=SCOPE, folder_id=str(uuid.UUID(int=3)))
    operation = ops.AppendUpload(place=place, upload_id="u", offset=3, most=9)
    assert wire.read_request(wire.frame(wire.Request(operation))[4:]) == operation
    use = ops.ScopeUse(bytes=1, files=2)
    asked = ops.ScopeUsage(scope=SCOPE)
    answer = wire.read_reply(wire.frame(wire.answer_of(use))[4:])
    assert wire.read_answer(asked, answer) == use


# --- XFS ---------------------------------------------------------------------------


class PretendedKernel:
    """Remembers attributes by inode, and quotas by project, as XFS would."""

    def __init__(self):
        self.attributes = {}
        self.quotas = {}
        self.asked = []
        self.refuses = None

    def ioctl(self, descriptor, request, content):
        inode = os.fstat(descriptor).st_ino
        if request == READ_ATTRIBUTES:
            return self.attributes.get(inode, bytes(ATTRIBUTES.size))
        assert request == WRITE_ATTRIBUTES
        self.attributes[inode] = content
        return content

    def quotactl(self, number, device, project, content):
        self.asked.append((number, device, project))
        if self.refuses is not None:
            raise OSError(self.refuses, os.strerror(self.refuses))
        if number == command(4):
            self.quotas[project] = read_quota(content)
        if project and project not in self.quotas:
            raise FileNotFoundError
        quota = self.quotas.get(project, Quota(0))
        return write_quota(quota._replace(used_bytes=0))


def make_xfs(kernel, tmp_path, monkeypatch, kind="xfs"):
    monkeypatch.setattr(
        "backendai_hub.storage.drivers.xfs.find_mount", lambda _: (kind, "/dev/sdx1")
    )
    return XfsDriver("h", str(tmp_path), NoOptions(), kernel)


def test_the_kernel_s_structs_have_their_sizes():
    assert DISK_QUOTA.size == 112
    assert ATTRIBUTES.size == 28
    assert READ_ATTRIBUTES == 0x801C581F
    assert WRITE_ATTRIBUTES == 0x401C5820
    assert (command(3), command(4)) == (0x580302, 0x580402)


def test_a_limit_is_written_in_blocks_and_rounded_up():
    written = write_quota(Quota(7, bytes=1000, files=3))
    version, flags, fields, project, blocks, soft, files = struct.unpack_from(
        "=bbHIQQQ", written
    )
    assert (version, flags, fields, project) == (1, 2, 0b1010, 7)
    assert (blocks, soft, files) == (2, 0, 3)
    assert read_quota(written) == Quota(7, bytes=1024, files=3)


def test_each_scope_is_a_project_of_its_own(tmp_path, root, monkeypatch):
    kernel = PretendedKernel()
    driver = make_xfs(kernel, tmp_path, monkeypatch)
    assert driver.prepare() == {"quota", "inode-quota", "fast-usage", "clone"}
    driver.make_scope(root, SCOPE)
    driver.make_scope(root, SCOPE)
    driver.make_scope(root, OTHER)
    found = [ATTRIBUTES.unpack(a) for a in kernel.attributes.values()]
    assert all(flags & INHERIT for flags, *_ in found)
    assert len({projid for *_, projid, _ in found}) == 2


def test_two_scopes_of_one_number_are_kept_apart():
    first = choose_project(SCOPE, set())
    assert choose_project(SCOPE, {first}) == first + 1
    assert choose_project(SCOPE, set()) == first
    assert 0x4000_0000 <= first < 0x8000_0000


def test_limits_and_use_of_a_scope_go_to_its_project(
    tmp_path, root, scope, monkeypatch
):
    kernel = PretendedKernel()
    driver = make_xfs(kernel, tmp_path, monkeypatch)
    driver.prepare()
    driver.make_scope(root, SCOPE)
    assert driver.usage(scope, SCOPE) == ops.ScopeUse()
    driver.set_limit(scope, SCOPE, Limits(1 << 20, 100))
    use = driver.usage(scope, SCOPE)
    assert (use.limit_bytes, use.limit_files) == (1 << 20, 100)
    number, device, project = kernel.asked[-1]
    assert (number, device) == (command(3), "/dev/sdx1")
    assert project == ATTRIBUTES.unpack(next(iter(kernel.attributes.values())))[3]


@pytest.mark.parametrize("refusal", [errno.ENOSYS, errno.ESRCH, errno.EPERM])
def test_xfs_without_project_quotas_is_refused_in_words(tmp_path, monkeypatch, refusal):
    kernel = PretendedKernel()
    kernel.refuses = refusal
    driver = make_xfs(kernel, tmp_path, monkeypatch)
    with pytest.raises(UnavailableError, match="prjquota"):
        driver.prepare()
    driver = make_xfs(kernel, tmp_path, monkeypatch, kind="ext4")
    with pytest.raises(UnavailableError, match="lies on ext4, not on XFS"):
        driver.prepare()


# --- CephFS ------------------------------------------------------------------------


class PretendedAttributes:
    def __init__(self, values=None):
        self.values = values or {}

    def read(self, descriptor, name):
        if name not in self.values:
            raise OSError(errno.ENODATA, "no data")
        return self.values[name]

    def write(self, descriptor, name, value):
        self.values[name] = value


def test_cephfs_keeps_limits_and_use_in_attributes(tmp_path, scope):
    attributes = PretendedAttributes(
        {"ceph.dir.rbytes": b"12345", "ceph.dir.rentries": b"6"}
    )
    driver = CephfsDriver("h", str(tmp_path), NoOptions(), attributes)
    assert driver.prepare() == {"quota", "inode-quota", "fast-usage"}
    assert driver.usage(scope, SCOPE) == ops.ScopeUse(bytes=12345, files=5)
    driver.set_limit(scope, SCOPE, Limits(99, None))
    assert attributes.values["ceph.quota.max_bytes"] == b"99"
    assert attributes.values["ceph.quota.max_files"] == b"0"
    assert driver.usage(scope, SCOPE).limit_bytes == 99
    assert driver.usage(scope, SCOPE).limit_files is None


def test_what_is_no_cephfs_is_refused_in_words(tmp_path):
    driver = CephfsDriver("h", str(tmp_path), NoOptions(), PretendedAttributes())
    with pytest.raises(UnavailableError, match="does not lie on CephFS"):
        driver.prepare()


# --- GlusterFS ---------------------------------------------------------------------


def test_gluster_is_asked_by_the_path_in_the_volume(tmp_path, scope, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda *_, **__: "/usr/sbin/gluster")
    asked = []

    def run(argv):
        asked.append(list(argv))
        if argv[-1] != "--xml":
            return ""
        return (
            f"<o><limit><path>/part/{SCOPE}</path><hard_limit>100</hard_limit>"
            "<used_space>42</used_space><file_count>2</file_count>"
            "<dir_count>1</dir_count></limit></o>"
        )

    options = GlusterOptions(volume="v", folder="/part", server="far")
    driver = GlusterDriver("h", str(tmp_path), options, run)
    driver.set_limit(scope, SCOPE, Limits(100, None))
    head = [*("/usr/sbin/gluster", "--mode=script", "--remote-host=far")]
    head += ["volume", "quota", "v"]
    path = f"/part/{SCOPE}"
    assert asked == [
        [*head, "limit-usage", path, "100"],
        [*head, "remove-objects", path],
    ]
    use = driver.usage(scope, SCOPE)
    assert (use.bytes, use.files, use.limit_bytes) == (42, 3, 100)


def test_a_mount_is_found_also_where_one_hides_another(tmp_path):
    table = tmp_path / "mounts"
    table.write_text(
        "/dev/a / ext4 rw 0 0\n"
        "/dev/b /data xfs rw 0 0\n"
        "/dev/c /data/with\\040blank btrfs rw 0 0\n"
        "tmpfs /data tmpfs rw 0 0\n"
    )
    assert find_mount("/srv", table) == ("ext4", "/dev/a")
    assert find_mount("/data/x", table) == ("tmpfs", "tmpfs")
    assert find_mount("/data/with blank/x", table) == ("btrfs", "/dev/c")
    assert find_mount("/database", table) == ("ext4", "/dev/a")
