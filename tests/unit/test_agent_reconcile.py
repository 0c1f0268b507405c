"""What the agent decides, for every history it could look back on."""

from __future__ import annotations

import uuid
from collections import Counter

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from backendai_agent.reconcile import (
    HELD,
    VANISHED,
    End,
    Phase,
    Probe,
    Record,
    Showing,
    Start,
    Stop,
    Wait,
    Work,
    describe,
    diff,
    find_unknown,
)
from backendai_agent.runtimes.base import Observed
from backendai_hub.api.agents import (
    ContainerSpec,
    ContainerState,
    DesiredState,
    DeviceShare,
)

IDS = [str(uuid.UUID(int=n)) for n in range(1, 5)]
FOREIGN = "somebody-elses-database"


def wanted(container_id=IDS[0], desired=DesiredState.RUNNING):
    return ContainerSpec(id=container_id, session_id="s", desired=desired)


def seen(container_id=IDS[0], *, running=True, reason=""):
    return Observed(container_id, "s", running=running, exit_code=None, reason=reason)


def record(phase, *, began=True, **changes):
    return Record(session_id="s", phase=phase, began=began, **changes)


def decide(spec, observed=(), past=None, work=None):
    history = {spec.id: past} if past else {}
    busy = {spec.id: work} if work else {}
    return diff([spec], observed, past=history, busy=busy)


def test_a_new_container_is_started():
    assert decide(wanted()) == [Start(wanted())]


def test_a_running_container_that_nobody_remembers_is_adopted_not_started():
    assert decide(wanted(), [seen()]) == [Probe(wanted())]


def test_a_container_that_was_ready_is_left_in_peace_after_a_restart():
    assert decide(wanted(), [seen()], record(Phase.READY)) == []


def test_a_container_removed_behind_our_back_is_reported_gone_not_started_again():
    for phase in (Phase.STARTED, Phase.READY):
        [action] = decide(wanted(), [], record(phase))
        assert action == End(wanted(), ContainerState.GONE, VANISHED)


def test_an_ended_container_is_reported_with_its_reason():
    observed = [
        Observed(IDS[0], "s", running=False, exit_code=137, reason="out of memory")
    ]
    [action] = decide(wanted(), observed, record(Phase.READY))
    assert action == End(wanted(), ContainerState.EXITED, "out of memory", 137)


def test_half_a_container_whose_program_never_began_is_started():
    made = [seen(running=False)]
    for observed in ([], made):
        assert decide(wanted(), observed, record(Phase.STARTING, began=False)) == [
            Start(wanted())
        ]


def test_half_a_container_whose_program_began_is_not_started_again():
    [action] = decide(wanted(), [], record(Phase.STARTING))
    assert isinstance(action, End)


def test_a_container_that_could_not_be_started_but_runs_after_all_is_stopped():
    assert decide(wanted(), [seen()], record(Phase.ENDED)) == [
        Stop(wanted(), keep=True)
    ]


def test_stopping_interrupts_a_start_but_not_another_stop():
    spec = wanted(desired=DesiredState.ABSENT)
    assert decide(spec, work=Work.START) == [Stop(spec)]
    assert decide(spec, work=Work.PROBE) == [Stop(spec)]
    assert decide(spec, [seen()], work=Work.STOP) == []
    assert decide(spec, [seen()], work=Work.SETTLING) == []


def test_what_is_absent_already_needs_nothing():
    spec = wanted(desired=DesiredState.ABSENT)
    assert decide(spec) == []
    assert decide(spec, past=record(Phase.REMOVED)) == []


def test_a_removed_container_is_never_started_again_while_it_is_named():
    assert decide(wanted(), past=record(Phase.REMOVED)) == []
    assert describe(wanted(), record(Phase.REMOVED), None).state == "gone"


def test_what_ended_while_we_looked_is_looked_at_again_first():
    assert decide(wanted(), [], record(Phase.STARTED), Work.SETTLING) == []


def test_reports_say_what_is_going_on():
    pulling = Showing(ContainerState.PULLING, 0.5)
    assert describe(wanted(), None, pulling).progress == 0.5
    assert describe(wanted(), None, None).state == "preparing"
    assert describe(wanted(), record(Phase.STARTED), None).state == "creating"
    assert describe(wanted(), record(Phase.READY), None).state == "running"
    ended = record(Phase.ENDED, state=ContainerState.EXITED, reason="why", exit_code=3)
    report = describe(wanted(), ended, pulling)
    assert (report.state, report.reason, report.exit_code) == ("exited", "why", 3)


# -- devices that one container at a time may have -----------------------------------

GPU = "GPU-1"


def wanted_with(*devices, container_id=IDS[1]):
    shares = [DeviceShare(device=d, slot="cuda.device", amount=1000) for d in devices]
    return msgspec.structs.replace(wanted(container_id), shares=shares)


def decide_next_to(observed=(), past=None, work=None, spec=None):
    """What is done for one that wants the GPU which IDS[0] was given."""
    absent = wanted(desired=DesiredState.ABSENT)
    actions = diff(
        [absent, spec or wanted_with(GPU)],
        observed,
        past={IDS[0]: past} if past else {},
        busy={IDS[0]: work} if work else {},
        whole={GPU},
    )
    return [action for action in actions if action.spec.id != IDS[0]]


def test_a_device_is_waited_for_until_the_one_before_is_gone():
    given = record(Phase.READY, devices=[GPU])
    waiting = [Wait(wanted_with(GPU), HELD.format(GPU))]
    assert decide_next_to([seen()], given) == waiting
    assert decide_next_to([seen()], given, Work.STOP) == waiting
    assert decide_next_to([], given, Work.SETTLING) == waiting
    starting = record(Phase.STARTING, began=False, devices=[GPU])
    assert decide_next_to([], starting, Work.STOP) == waiting
    free = [Start(wanted_with(GPU))]
    assert decide_next_to([], given, Work.STOP) == free  # only its folders are left
    assert decide_next_to([seen(running=False)], given) == free
    assert decide_next_to([], record(Phase.REMOVED)) == free


def test_one_the_hub_has_forgotten_still_holds_its_device():
    past = {IDS[0]: record(Phase.READY, devices=[GPU])}
    spec = wanted_with(GPU)
    [action] = diff([spec], [seen()], past=past, busy={}, whole={GPU})
    assert isinstance(action, Wait)


def test_devices_that_are_shared_are_not_waited_for():
    given = record(Phase.READY, devices=["cpu", GPU])
    spec = wanted_with("cpu")
    assert decide_next_to([seen()], given, spec=spec) == [Start(spec)]


def test_of_two_that_want_one_device_the_first_has_it():
    one, two = wanted_with(GPU), wanted_with(GPU, container_id=IDS[2])
    actions = diff([one, two], [], past={}, busy={}, whole={GPU})
    assert actions == [Start(one), Wait(two, HELD.format(GPU))]
    busy = {two.id: Work.START}
    actions = diff([one, two], [], past={}, busy=busy, whole={GPU})
    assert actions == [Wait(one, HELD.format(GPU))]


def test_half_a_container_does_not_wait_for_itself():
    spec = wanted_with(GPU)
    past = {spec.id: record(Phase.STARTING, began=False, devices=[GPU])}
    made = [seen(spec.id, running=False)]
    actions = diff([spec], made, past=past, busy={}, whole={GPU})
    assert actions == [Start(spec)]


containers = st.builds(
    Observed, st.sampled_from([*IDS, FOREIGN]), st.just("s"), running=st.booleans()
)
records = st.builds(
    Record,
    session_id=st.just("s"),
    phase=st.sampled_from(list(Phase)),
    began=st.just(True),
) | st.just(record(Phase.STARTING, began=False))


@given(
    desired=st.lists(
        st.builds(wanted, st.sampled_from(IDS), st.sampled_from(list(DesiredState))),
        unique_by=lambda spec: spec.id,
    ),
    observed=st.lists(containers, unique_by=lambda found: found.id),
    past=st.dictionaries(st.sampled_from(IDS), records),
)
def test_one_step_is_enough_and_a_second_does_nothing(desired, observed, past):
    world = {found.id: found for found in observed}
    past = dict(past)
    strangers = {k: v for k, v in world.items() if k not in {s.id for s in desired}}

    carry_out(diff(desired, world.values(), past=past, busy={}), world, past)

    assert diff(desired, world.values(), past=past, busy={}) == []
    assert {k: v for k, v in world.items() if k in strangers} == strangers
    assert find_unknown(desired, world.values()) == sorted(strangers)


def carry_out(actions, world, past):
    """Do in an ideal world what the driver does in the real one."""
    for action in actions:
        spec = action.spec
        match action:
            case Start() | Probe():
                world[spec.id] = seen(spec.id)
                past[spec.id] = record(Phase.READY)
            case Stop(keep=keep):
                world.pop(spec.id, None)
                past[spec.id] = past[spec.id] if keep else record(Phase.REMOVED)
            case End(state=state, reason=reason):
                past[spec.id] = record(Phase.ENDED, state=state, reason=reason)


class Node(RuleBasedStateMachine):
    """The hub changes its mind, containers end or vanish, the agent is killed."""

    def __init__(self):
        super().__init__()
        self.desired: dict[str, ContainerSpec] = {}
        self.world: dict[str, Observed] = {FOREIGN: seen(FOREIGN)}
        self.past: dict[str, Record] = {}
        self.began: Counter[str] = Counter()

    ids = st.sampled_from(IDS)

    @rule(container_id=ids)
    def want(self, container_id):
        if container_id not in self.began:  # ids are never given twice
            self.desired[container_id] = wanted(container_id)

    @rule(container_id=ids)
    def want_absent(self, container_id):
        if container_id in self.desired:
            spec = wanted(container_id, DesiredState.ABSENT)
            self.desired[container_id] = spec

    @rule(container_id=ids)
    def forget_what_is_gone(self, container_id):
        past = self.past.get(container_id)
        if past is not None and past.phase is Phase.REMOVED:
            del self.past[container_id]
            self.desired.pop(container_id, None)

    @rule(container_id=ids)
    def ends_by_itself(self, container_id):
        if container_id in self.world:
            self.world[container_id] = seen(container_id, running=False)

    @rule(container_id=ids)
    def vanishes(self, container_id):
        self.world.pop(container_id, None)

    @rule()
    def the_agent_looks(self):
        for action in self.actions():
            if isinstance(action, Start):
                self.begin(action.spec.id)
            carry_out([action], self.world, self.past)

    @rule(stage=st.sampled_from(["recorded", "made", "began", "written"]))
    def the_agent_is_killed_in_the_middle_of_a_start(self, stage):
        starts = [a.spec.id for a in self.actions() if isinstance(a, Start)]
        for container_id in starts[:1]:
            self.past[container_id] = record(Phase.STARTING, began=False)
            if stage == "recorded":
                return
            self.world[container_id] = seen(container_id, running=False)
            if stage == "made":
                return
            self.begin(container_id)
            self.world[container_id] = seen(container_id)
            if stage == "written":
                self.past[container_id] = record(Phase.STARTED)

    @precondition(lambda self: self.past)
    @rule(container_id=ids)
    def the_agent_is_killed_in_the_middle_of_a_stop(self, container_id):
        spec = self.desired.get(container_id)
        if spec is not None and spec.desired is DesiredState.ABSENT:
            self.world.pop(container_id, None)

    def begin(self, container_id):
        """The main program takes its activation, which shows that it began."""
        self.began[container_id] += 1
        past = self.past.get(container_id, record(Phase.STARTING))
        self.past[container_id] = msgspec.structs.replace(past, began=True)

    def actions(self):
        return diff(self.desired.values(), self.world.values(), past=self.past, busy={})

    @invariant()
    def no_program_begins_twice(self):
        assert all(times <= 1 for times in self.began.values())

    @invariant()
    def strangers_are_left_alone(self):
        assert self.world[FOREIGN] == seen(FOREIGN)


Node.TestCase.settings = settings(max_examples=100, stateful_step_count=30)
test_no_history_starts_a_program_twice = Node.TestCase
