"""The doctor: what is serious, what is advice, and that there is always a remedy."""

import os
import time

import pytest

from backendai_hub.launcher import doctor
from backendai_hub.launcher.doctor import Severity
from backendai_hub.launcher.folder import DataFolder


def test_docker_without_live_restore_is_serious():
    finding = doctor.judge_docker(
        {"ServerVersion": "20.10", "LiveRestoreEnabled": False}
    )

    assert finding.severity is Severity.SERIOUS
    assert "live-restore" in finding.remedy


def test_docker_with_live_restore_is_good():
    finding = doctor.judge_docker(
        {"ServerVersion": "20.10", "LiveRestoreEnabled": True}
    )

    assert finding.severity is Severity.GOOD


@pytest.mark.parametrize(
    "finding",
    [
        doctor.judge_docker(None),
        doctor.judge_bubblewrap(None),
        doctor.judge_bubblewrap("No permissions to create new namespace"),
        doctor.judge_namespaces(allowed=False),
        doctor.judge_cgroups("read-only"),
        doctor.judge_cgroups("none"),
        doctor.judge_slirp(present=False),
        doctor.judge_disk(5 << 30),
    ],
)
def test_what_the_platform_can_do_without_is_advice_with_a_remedy(finding):
    assert finding.severity is Severity.ADVICE
    assert finding.remedy


def test_what_separates_nobody_is_said_loudly():
    (good,) = doctor.judge_separation(isolated=True)
    assert good.severity is Severity.GOOD

    loud, *_ = doctor.judge_separation(isolated=False)
    assert "NONE" in loud.text
    assert "one user" in loud.text
    assert "bubblewrap" in loud.remedy


def test_sandboxes_without_slirp4netns_have_no_network():
    assert "no network" in doctor.judge_slirp(present=False).text


def test_the_first_folder_that_is_closed_to_others_is_named(tmp_path):
    tmp_path.chmod(0o755)
    closed = tmp_path / "closed"
    (closed / "venv").mkdir(parents=True)
    above = doctor.find_closed(str(tmp_path))

    closed.chmod(0o700)

    assert doctor.find_closed(str(closed / "venv")) == (above or closed)


def test_an_old_python_is_serious():
    assert doctor.judge_python((3, 10, 12)).severity is Severity.SERIOUS
    assert doctor.judge_python((3, 11, 2)).severity is Severity.GOOD


def test_a_full_disk_is_serious():
    assert doctor.judge_disk(100 << 20).severity is Severity.SERIOUS
    assert doctor.judge_disk(100 << 30).severity is Severity.GOOD


def test_keys_that_others_can_reach_are_serious(tmp_path):
    folder = DataFolder(tmp_path / "data")
    folder.create()
    assert {f.severity for f in doctor.judge_folder(folder)} == {Severity.GOOD}

    folder.keys.chmod(0o755)

    (finding,) = doctor.judge_folder(folder)
    assert finding.severity is Severity.SERIOUS
    assert str(folder.keys) in finding.remedy


def test_a_clock_before_our_own_certificates_is_serious(tmp_path):
    folder = DataFolder(tmp_path)
    folder.create()
    folder.key("ca.crt").write_text("a certificate")
    assert doctor.judge_clock(folder, synchronised=True).severity is Severity.GOOD

    future = time.time() + 10 * 86400
    os.utime(folder.key("ca.crt"), (future, future))

    assert doctor.judge_clock(folder, synchronised=True).severity is Severity.SERIOUS


def test_a_new_data_directory_is_fine(tmp_path):
    findings = doctor.examine(DataFolder(tmp_path / "new"))

    subjects = {finding.subject for finding in findings}
    assert {"python", "docker", "bubblewrap", "disk", "ports", "clock"} <= subjects
    assert not (tmp_path / "new").exists()
