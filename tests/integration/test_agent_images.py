"""A whole agent, as a process, that is asked to hold and to remove images."""

from __future__ import annotations

import signal

import pytest

from backendai_hub.api.agents import ImageWanted, ImageWish, RegistryCredential
from tests.agent_hub import AgentHub, Authority
from tests.integration.agent_process import AgentProcess, make_spec

SECRET = "canary-of-the-registry"
LOGIN = RegistryCredential(
    registry="cr.example.org", username="anybody", password=SECRET
)
PRIVATE = "cr.example.org/team/lab:1"


@pytest.fixture
async def hub(tmp_path):
    hub = AgentHub(Authority(tmp_path / "ca"))
    await hub.open()
    yield hub
    await hub.close()


@pytest.fixture
async def agent(tmp_path, hub):
    agent = AgentProcess(tmp_path, hub)
    yield agent
    await agent.end(signal.SIGKILL)


def present(reference, credential=None):
    return ImageWanted(
        reference=reference, wanted=ImageWish.PRESENT, credential=credential
    )


def absent(reference):
    return ImageWanted(reference=reference, wanted=ImageWish.ABSENT)


async def test_an_image_is_held_over_a_restart_and_then_removed(hub, agent):
    await agent.start()
    await hub.want_images(present("lab:1"))
    await hub.until_image("lab:1", "done")
    assert "lab:1" in hub.reports[-1].images

    await agent.end(signal.SIGKILL)
    hub.reports.clear()
    await agent.start()
    await hub.until_image("lab:1", "done")
    states = [told.state for r in hub.reports for told in r.image_progress]
    assert set(states) == {"done"}  # never fetched again, and nothing else said

    await hub.want_images(absent("lab:1"))
    done = await hub.until_image("lab:1", "done")
    if done.wanted is ImageWish.PRESENT:  # the answer to the wish before
        await hub.until(lambda r: r.image_progress[0].wanted is ImageWish.ABSENT)
        await hub.until_image("lab:1", "done")
    assert "lab:1" not in hub.reports[-1].images


async def test_an_agent_killed_while_fetching_begins_again(hub, agent):
    agent.options = {"FakeRuntime.fetch_seconds": "600"}
    await agent.start()
    await hub.want_images(present("lab:1"))
    await hub.until_image("lab:1", "pulling")
    await agent.end(signal.SIGKILL)
    agent.options = {}
    hub.reports.clear()
    await agent.start()
    await hub.until_image("lab:1", "done")


async def test_progress_and_failure_are_told(hub, agent):
    agent.options = {"FakeRuntime.missing": "gone:1"}
    await agent.start()
    await hub.want_images(present("gone:1"), present("--all"))
    failed = await hub.until_image("gone:1", "failed")
    assert failed.reason == "there is no environment gone:1"
    refused = await hub.until_image("--all", "failed")
    assert "not a reference" in refused.reason


async def test_an_image_in_use_is_removed_when_its_session_has_ended(hub, agent):
    await agent.start()
    spec = make_spec(image="lab:1")
    await hub.want(spec)
    await hub.until_state(spec.id, "running")
    await hub.want_images(absent("lab:1"))
    waiting = await hub.until_image("lab:1", "waiting")
    assert waiting.reason == "a session on this node needs it"
    await hub.want_absent(spec.id)
    await hub.until_state(spec.id, "gone")
    await hub.until_image("lab:1", "done")


async def test_a_login_is_used_and_leaves_no_trace_on_the_node(hub, agent, tmp_path):
    # The runtime has to know the password to compare; that is not a trace.
    config = tmp_path / "agent_config.py"
    config.write_text(
        f"c.FakeRuntime.private = {{ {PRIVATE!r}: {SECRET!r}, 'other:1': {SECRET!r} }}"
    )
    agent.options = {
        "BackendAIAgent.config_file": str(config),
        "BackendAIAgent.log_level": "DEBUG",
    }
    await agent.start()
    spec = make_spec(image=PRIVATE, credential=LOGIN)
    await hub.want(spec)
    await hub.until_state(spec.id, "running")
    await hub.want_images(present(PRIVATE, LOGIN), present("other:1", LOGIN))
    await hub.until_image(PRIVATE, "done")
    failed = await hub.until_image("other:1", "failed")
    assert "another login" in failed.reason
    assert await agent.end() == 0

    assert SECRET not in agent.log.read_text()
    written = [path for path in agent.data_dir.rglob("*") if path.is_file()]
    assert len(written) > 5
    for path in written:
        assert SECRET.encode() not in path.read_bytes(), path
    assert all(SECRET not in repr(report) for report in hub.reports)
