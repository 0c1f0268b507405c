"""A whole agent, as a process, against a hub service over mutual TLS."""

from __future__ import annotations

import asyncio
import datetime
import signal

import msgspec
import pytest

from backendai_hub.api.agents import DeviceShare
from tests.agent_hub import AgentHub, Authority
from tests.integration.agent_process import AgentProcess, make_spec


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


async def until(condition, seconds=60.0):
    """Poll what no event of ours can tell: files of another process."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)


async def test_a_container_is_started_reported_and_removed_without_a_trace(hub, agent):
    await agent.start()
    spec = make_spec()
    await hub.want(spec)
    running = await hub.until_state(spec.id, "running")

    assert running.session_id == spec.session_id
    assert agent.starts == [spec.id]
    await hub.want_absent(spec.id)
    await hub.until_state(spec.id, "gone")
    assert agent.containers == agent.folders == []
    await hub.forget(spec.id)
    await hub.until(lambda r: not r.containers and r.generation == hub.generation)
    assert await agent.end() == 0
    assert "canary" not in agent.log.read_text()


async def test_stopping_the_agent_stops_no_session(hub, agent):
    await agent.start()
    spec = make_spec()
    await hub.want(spec)
    await hub.until_state(spec.id, "running")
    url = hub.reports[-1].url

    for number in (signal.SIGTERM, signal.SIGKILL):
        await agent.end(number)
        assert agent.containers == [spec.id]
        hub.reports.clear()
        hub.history.clear()
        await agent.start()
        await hub.until_state(spec.id, "running")
        assert hub.states(spec.id) == ["running"]  # ready is not forgotten
        assert hub.reports[-1].url == url
    assert agent.starts == [spec.id]
    assert len(hub.enrolled) == 1


STARTING = [
    "agent.ordered",
    "agent.prepared",
    "agent.pulling",
    "agent.activated",
    "agent.recorded",
    "agent.created",
    "agent.started",
    "agent.probing",
    "agent.ready",
]


@pytest.mark.parametrize("name", STARTING)
async def test_an_agent_killed_while_starting_makes_exactly_one_container(
    hub, agent, name
):
    await agent.start(crashpoint=name)
    spec = make_spec(image="to-be-fetched")
    await hub.want(spec)
    assert await agent.ended() == -signal.SIGKILL

    await agent.start()
    await hub.until_state(spec.id, "running")
    assert agent.starts == [spec.id]
    assert agent.containers == agent.folders == [spec.id]

    await hub.want_absent(spec.id)
    await hub.until_state(spec.id, "gone")
    assert agent.containers == agent.folders == []


@pytest.mark.parametrize("name", ["agent.stopping", "agent.removed"])
async def test_an_agent_killed_while_stopping_finishes_the_work(hub, agent, name):
    await agent.start(crashpoint=name)
    spec = make_spec()
    await hub.want(spec)
    await hub.until_state(spec.id, "running")
    await hub.want_absent(spec.id)
    assert await agent.ended() == -signal.SIGKILL

    await agent.start()
    await hub.until_state(spec.id, "gone")
    assert agent.containers == agent.folders == []
    assert agent.starts == [spec.id]


async def test_a_stop_done_twice_keeps_what_the_command_printed(hub, agent):
    await agent.start(crashpoint="agent.removed")
    spec = make_spec(command="echo last words; sleep 600")
    await hub.want(spec)
    await hub.until_state(spec.id, "running")
    await hub.want_absent(spec.id)
    assert await agent.ended() == -signal.SIGKILL

    await agent.start()
    await hub.until_state(spec.id, "gone")
    assert hub.logs == {spec.id: b"last words\ntold to end\n"}


async def test_an_agent_killed_again_and_again_starts_everything_once(hub, agent):
    specs = [make_spec() for _ in range(6)]
    await hub.want(*specs)
    for name in ("agent.created:2", "agent.started:3", "agent.ready:2"):
        await agent.start(crashpoint=name)
        assert await agent.ended() == -signal.SIGKILL
    await agent.start()
    for spec in specs:
        await hub.until_state(spec.id, "running")
    assert sorted(agent.starts) == sorted(spec.id for spec in specs)


async def test_a_container_that_vanished_while_the_agent_was_away_is_gone(hub, agent):
    await agent.start()
    spec = make_spec()
    await hub.want(spec)
    await hub.until_state(spec.id, "running")
    await agent.end(signal.SIGKILL)
    (agent.data_dir / "fake-containers" / f"{spec.id}.json").unlink()

    await agent.start()
    report = await hub.until_state(spec.id, "gone")
    assert "disappeared" in report.reason
    assert agent.starts == [spec.id]


async def test_an_end_without_memory_is_told_and_survives_a_restart(hub, agent):
    agent.options = {"FakeRuntime.die_after": "0.2", "FakeRuntime.oom": "1"}
    await agent.start()
    spec = make_spec()
    await hub.want(spec)
    for _ in range(2):
        report = await hub.until_state(spec.id, "exited")
        assert (report.reason, report.exit_code) == ("out of memory", 137)
        await agent.end(signal.SIGKILL)
        hub.reports.clear()
        await agent.start()


async def test_what_cannot_start_is_explained_to_its_owner(hub, agent):
    agent.options = {"FakeRuntime.missing": "nowhere"}
    await agent.start()
    spec = make_spec(image="nowhere")
    await hub.want(spec)
    report = await hub.until_state(spec.id, "exited")
    assert report.reason == "could not start: there is no environment nowhere"
    assert agent.starts == []
    await hub.want_absent(spec.id)
    await hub.until_state(spec.id, "gone")


async def test_a_start_that_fails_leaves_no_secret_behind(hub, agent):
    agent.options = {"FakeRuntime.fail_every": "1"}
    await agent.start()
    spec = make_spec()
    await hub.want(spec)
    report = await hub.until_state(spec.id, "exited")
    assert report.reason == "could not start: the fake runtime was told to fail"
    run = agent.data_dir / "containers" / spec.id / "run"
    await until(lambda: not (run / "activation.json").exists())


async def test_stopping_cancels_a_start_that_takes_too_long(hub, agent):
    agent.options = {"FakeRuntime.fetch_seconds": "600"}
    await agent.start()
    spec = make_spec(image="huge")
    await hub.want(spec)
    await hub.until_state(spec.id, "pulling")
    await hub.want_absent(spec.id)
    await hub.until_state(spec.id, "gone")
    assert agent.starts == agent.containers == agent.folders == []


async def test_stopping_waits_for_a_start_that_cannot_be_cancelled(hub, agent):
    agent.options = {"FakeRuntime.start_seconds": "0.5"}
    await agent.start()
    spec = make_spec()
    await hub.want(spec)
    await until(lambda: agent.containers == [spec.id])
    await hub.want_absent(spec.id)
    await hub.until_state(spec.id, "gone")
    await hub.forget(spec.id)  # from here on nobody would clean up after it
    later = make_spec()  # when this one runs, the first start is long over
    await hub.want(later)
    await hub.until_state(later.id, "running")
    assert agent.containers == agent.folders == [later.id]


async def test_jupyterlab_that_never_answers_ends_with_a_reason(hub, agent):
    agent.options = {
        "FakeRuntime.answer_seconds": "600",
        "BackendAIAgent.ready_seconds": "1",
    }
    await agent.start()
    spec = make_spec()
    await hub.want(spec)
    report = await hub.until_state(spec.id, "exited")
    assert report.reason == "JupyterLab did not answer within 1 s"
    await until(lambda: agent.containers == [])


async def test_the_same_assignments_again_change_nothing(hub, agent):
    await agent.start()
    spec = make_spec()
    await hub.want(spec)
    await hub.until_state(spec.id, "running")
    for _ in range(5):
        await hub.want(spec)
    await hub.until(lambda r: r.generation == hub.generation)
    assert agent.starts == [spec.id]


async def test_older_assignments_are_ignored(hub, agent):
    hub.epoch = 5
    await agent.start()
    spec = make_spec()
    await hub.want(spec)
    await hub.until_state(spec.id, "running")

    hub.epoch = 4
    await hub.want_absent(spec.id)
    await until(lambda: "ignoring assignments" in agent.log.read_text())
    assert agent.containers == [spec.id]

    await agent.end(signal.SIGKILL)  # the epoch is remembered over a restart
    await agent.start()
    await until(lambda: agent.log.read_text().count("ignoring assignments") >= 2)
    assert agent.containers == [spec.id]

    hub.epoch, hub.generation = 6, 0  # a newer hub service counts anew
    await hub.want_absent(spec.id)
    await hub.until_state(spec.id, "gone")
    assert hub.reports[-1].epoch == 6


async def test_what_nobody_asked_for_is_reported_and_left_alone(hub, agent):
    await agent.start()
    spec = make_spec()
    await hub.want(spec)
    await hub.until_state(spec.id, "running")
    await hub.forget(spec.id)
    await hub.until(lambda r: r.unknown == [spec.id])
    await hub.after_reports(3)
    assert agent.containers == [spec.id]

    await hub.want(spec)  # the hub service remembers it after all
    await hub.until_state(spec.id, "running")
    assert agent.starts == [spec.id]


async def test_sessions_outlive_the_hub_service_and_all_is_told_at_its_return(
    hub, agent
):
    agent.options = {"FakeRuntime.persist": "True"}
    await agent.start()
    spec, other = make_spec(), make_spec()
    await hub.want(spec)
    await hub.until_state(spec.id, "running")
    await hub.close()
    await until(lambda: "does not answer" in agent.log.read_text())
    assert agent.containers == [spec.id]

    hub.reports.clear()
    await hub.open()
    await hub.want(other)
    await hub.until_state(other.id, "running")
    assert hub.reports[-1].containers[0].state == "running"
    assert sorted(agent.starts) == sorted([spec.id, other.id])


async def test_an_agent_that_restarts_while_the_hub_is_away_takes_over_its_sessions(
    hub, agent
):
    await agent.start()
    spec = make_spec()
    await hub.want(spec)
    await hub.until_state(spec.id, "running")
    await hub.close()
    await agent.end(signal.SIGKILL)
    socket = agent.data_dir / "containers" / spec.id / "run" / "hub.sock"
    socket.unlink()

    await agent.start()
    await until(socket.exists)
    hub.reports.clear()
    hub.history.clear()
    await hub.open()
    await hub.until_state(spec.id, "running")
    assert hub.states(spec.id) == ["running"]


async def test_reports_are_numbered_upwards_also_over_restarts(hub, agent):
    await agent.start()
    await hub.until(lambda _: len(hub.reports) >= 2)
    await agent.end()
    await agent.start()
    await hub.after_reports(1)
    numbers = [report.sequence for report in hub.reports]
    assert numbers == sorted(set(numbers))


async def test_a_fetch_is_shared_and_its_progress_told(hub, agent):
    agent.options = {"FakeRuntime.fetch_seconds": "1"}
    await agent.start()
    specs = [make_spec(image="big") for _ in range(3)]
    await hub.want(*specs)
    for spec in specs:
        await hub.until_state(spec.id, "running")
    for spec in specs:
        assert hub.states(spec.id) == [
            "preparing",
            "pulling",
            "creating",
            "running",
        ] or (hub.states(spec.id) == ["pulling", "creating", "running"])
        amounts = [seen.progress for seen in hub.history[spec.id] if seen.progress]
        assert amounts == sorted(amounts)
        assert amounts


async def test_a_wrong_token_ends_the_agent_with_a_sentence(hub, agent):
    hub.token = "another"
    await agent.start()
    assert await agent.ended() == 1
    assert "the token is spent" in agent.log.read_text()
    assert "Traceback" not in agent.log.read_text()


async def test_enrolment_waits_for_a_hub_that_is_not_up_yet(hub, agent):
    await hub.close()
    await agent.start()
    await until(lambda: agent.log.exists() and "cannot enrol" in agent.log.read_text())
    await hub.open()
    await hub.until(lambda r: r.sequence > 0)


async def test_a_hub_that_another_authority_vouches_for_is_not_believed(
    hub, agent, tmp_path
):
    genuine, hub.authority = hub.authority, Authority(tmp_path / "other")
    await hub.close()
    await hub.open()
    hub.authority = genuine  # what the agent is given to compare with
    await agent.start()
    await until(lambda: agent.log.exists() and "cannot enrol" in agent.log.read_text())
    assert hub.enrolled == []


async def test_the_certificate_is_renewed_in_time_without_a_break(hub, agent):
    hub.life = datetime.timedelta(seconds=25)  # most of its life lies behind it
    await agent.start()
    spec = make_spec()
    await hub.want(spec)
    await hub.until_state(spec.id, "running")
    async with asyncio.timeout(60), hub.changed:
        while not hub.renewed:
            await hub.changed.wait()
    await hub.after_reports(2)
    assert hub.renewed == 1
    assert agent.starts == [spec.id]


async def test_only_one_agent_serves_a_folder(hub, agent):
    await agent.start()
    await hub.after_reports(1)
    first = agent.process
    await agent.start()
    assert await agent.ended() == 1
    assert "running already" in agent.log.read_text()
    agent.process = first


async def test_ids_that_are_no_ids_are_refused(hub, agent):
    await agent.start()
    await hub.want(make_spec(id="../../etc"), good := make_spec())
    await hub.until_state(good.id, "running")
    assert "refusing container id" in agent.log.read_text()
    assert agent.folders == [good.id]


async def test_a_device_is_given_on_only_when_the_one_before_has_let_go(hub, agent):
    agent.options |= {
        "BackendAIAgent.accelerators": "fake",
        "FakeRuntime.stop_seconds": "2",
    }
    await agent.start()
    report = await hub.until(lambda r: r.devices)
    device = report.devices[0].id
    shares = [DeviceShare(device=device, slot="cuda.device", amount=1000)]
    first, second = make_spec(shares=shares), make_spec(shares=shares)
    await hub.want(first)
    await hub.until_state(first.id, "running")
    await agent.end()
    await agent.start()  # what it was given is known from the records alone
    await hub.want_absent(first.id)
    await hub.want(second)
    await hub.until_state(second.id, "running")
    reasons = [seen.reason for seen in hub.history[second.id]]
    assert any("let go of" in reason and device in reason for reason in reasons)
    assert hub.states(first.id)[-1] == "gone"
    assert agent.containers == [second.id]


async def test_many_at_once_are_all_started(hub, agent):
    await agent.start()
    specs = [make_spec() for _ in range(30)]
    await hub.want(*specs)
    for spec in specs:
        await hub.until_state(spec.id, "running")
    await hub.want(
        *(msgspec.structs.replace(s, desired="absent") for s in specs)  # type: ignore[arg-type]
    )
    await hub.until(lambda r: {c.state for c in r.containers} == {"gone"})
    assert agent.containers == agent.folders == []
    assert sorted(agent.starts) == sorted(spec.id for spec in specs)
