"""What the agent decides about images, and what it says of them."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from backendai_agent.image_plan import (
    HELD_TOO,
    NEEDED,
    NO_REFERENCE,
    DiscardImage,
    Failure,
    FetchImage,
    GiveUpImage,
    ImageView,
    ImageWork,
    describe_images,
    next_retry,
    plan_images,
)
from backendai_hub.api.agents import ImageState, ImageWanted, ImageWish
from backendai_hub.core.references import shorten

FETCHING = {"tiny": ImageWork.FETCH}


def present(reference="tiny"):
    return ImageWanted(reference=reference, wanted=ImageWish.PRESENT)


def absent(reference="tiny"):
    return ImageWanted(reference=reference, wanted=ImageWish.ABSENT)


def view(held=(), **seen):
    return ImageView(held=held, **seen)


def plan(wanted, seen, *, limit=2, now=0.0):
    return plan_images(wanted, seen, limit=limit, now=now)


def told(image, seen, amounts=None):
    [described] = describe_images([image], seen, amounts or {})
    assert (described.reference, described.wanted) == (image.reference, image.wanted)
    return described.state, described.reason


# -- holding ---------------------------------------------------------------------


def test_an_image_that_is_not_here_is_fetched():
    assert plan([present()], view()) == [FetchImage(present())]
    assert told(present(), view()) == (ImageState.WAITING, "")


def test_an_image_that_is_here_is_left_alone():
    assert plan([present()], view(held=["tiny"])) == []
    assert told(present(), view(held=["tiny"])) == (ImageState.DONE, "")


def test_an_image_that_is_here_by_its_short_name_is_here():
    long = present("docker.io/library/tiny")
    assert plan([long], view(held=["tiny"], shorten=shorten)) == []
    assert told(long, view(held=["tiny"], shorten=shorten)) == (ImageState.DONE, "")


def test_what_is_being_fetched_is_not_fetched_again():
    seen = view(fetching=["tiny"], busy=FETCHING)
    assert plan([present()], seen) == []
    assert told(present(), seen) == (ImageState.PULLING, "")


def test_progress_is_told_while_it_is_fetched_and_not_after():
    seen = view(fetching=["tiny"], busy=FETCHING)
    [described] = describe_images([present()], seen, {"tiny": 0.25})
    assert described.progress == 0.25
    [described] = describe_images([present()], view(held=["tiny"]), {"tiny": 0.25})
    assert described.progress is None


def test_no_more_than_the_limit_are_fetched_at_once():
    wanted = [present(name) for name in ("a", "b", "c")]
    assert plan(wanted, view()) == [FetchImage(w) for w in wanted[:2]]
    busy = {"a": ImageWork.FETCH, "b": ImageWork.FETCH}
    assert plan(wanted, view(fetching=["a", "b"], busy=busy)) == []
    assert plan(wanted, view(held=["a"], fetching=["b"])) == [
        FetchImage(present("b")),
        FetchImage(present("c")),
    ]


def test_a_fetch_for_a_session_is_joined_whatever_the_limit():
    seen = view(fetching=["x", "y", "tiny"])
    assert plan([present(), present("z")], seen) == [FetchImage(present())]


def test_what_is_not_wanted_any_more_is_given_up():
    seen = view(fetching=["tiny"], busy=FETCHING)
    assert plan([], seen) == [GiveUpImage("tiny")]
    assert plan([absent()], seen) == [GiveUpImage("tiny")]
    assert plan([], view(busy={"tiny": ImageWork.DISCARD})) == []


def test_what_failed_is_tried_again_when_its_time_has_come():
    seen = view(past={"tiny": Failure(1, "no such tag", retry_at=5.0)})
    assert plan([present()], seen, now=4.9) == []
    assert told(present(), seen) == (ImageState.FAILED, "no such tag")
    assert next_retry([present()], seen) == 5.0
    assert plan([present()], seen, now=5.0) == [FetchImage(present())]


def test_one_failure_does_not_hold_up_others():
    seen = view(past={"tiny": Failure(1, "no such tag", retry_at=5.0)})
    assert plan([present(), present("b")], seen, limit=1) == [FetchImage(present("b"))]


# -- removing --------------------------------------------------------------------


def test_an_image_that_is_here_is_removed():
    assert plan([absent()], view(held=["tiny"])) == [DiscardImage(absent())]
    assert told(absent(), view(held=["tiny"])) == (ImageState.WAITING, "")


def test_an_image_that_is_not_here_is_removed_already():
    assert plan([absent()], view()) == []
    assert told(absent(), view()) == (ImageState.DONE, "")


def test_what_a_session_needs_is_not_removed():
    for seen in (
        view(held=["tiny"], needed=["tiny"]),
        view(held=["tiny"], needed=["docker.io/library/tiny"], shorten=shorten),
        view(held=["tiny"], fetching=["tiny"]),
        view(fetching=["tiny"]),
    ):
        assert plan([absent()], seen) == []
        assert told(absent(), seen) == (ImageState.WAITING, NEEDED)


def test_what_is_wanted_by_another_name_is_not_removed():
    wanted = [present("library/tiny"), absent()]
    seen = view(held=["tiny"], shorten=shorten)
    assert plan(wanted, seen) == []
    assert describe_images(wanted, seen, {})[1].reason == HELD_TOO


def test_a_removal_that_failed_says_why_until_it_is_done():
    seen = view(held=["tiny"], past={"tiny": Failure(1, "it is in use", 5.0)})
    assert plan([absent()], seen, now=1.0) == []
    assert told(absent(), seen) == (ImageState.FAILED, "it is in use")
    assert plan([absent()], seen, now=6.0) == [DiscardImage(absent())]


def test_images_nobody_named_are_never_touched():
    assert plan([], view(held=["tiny", "other"])) == []


def test_what_is_no_reference_is_never_acted_on():
    for reference in ("--all", "a" * 600, "../x"):
        for image in (present(reference), absent(reference)):
            assert plan([image], view(held=[reference])) == []
            assert told(image, view()) == (ImageState.FAILED, NO_REFERENCE)


# -- any history -----------------------------------------------------------------


NAMES = ("a", "b", "c")


class Node(RuleBasedStateMachine):
    """Wishes, sessions and failures come and go in any order."""

    LIMIT = 1

    def __init__(self):
        super().__init__()
        self.wanted = {}
        self.held, self.needed = set(), set()
        self.busy, self.past = {}, {}
        self.now = 0.0

    def view(self):
        fetching = {n for n, work in self.busy.items() if work is ImageWork.FETCH}
        return view(
            held=self.held,
            fetching=fetching | (self.needed - self.held),
            needed=self.needed,
            busy=dict(self.busy),
            past=dict(self.past),
        )

    def look(self):
        before = set(self.view().fetching)
        actions = plan(
            self.wanted.values(), self.view(), limit=self.LIMIT, now=self.now
        )
        for action in actions:
            match action:
                case FetchImage(wanted):
                    assert wanted.reference not in self.held
                    self.busy[wanted.reference] = ImageWork.FETCH
                case DiscardImage(wanted):
                    assert wanted.reference not in self.needed
                    self.busy[wanted.reference] = ImageWork.DISCARD
                case GiveUpImage(reference):
                    del self.busy[reference]
        begun = set(self.view().fetching) - before
        assert len(begun) <= max(0, self.LIMIT - len(before))
        if any(isinstance(action, GiveUpImage) for action in actions):
            self.look()  # the end of any work wakes the keeper

    @rule(name=st.sampled_from(NAMES), wish=st.sampled_from(ImageWish))
    def want(self, name, wish):
        self.wanted[name] = ImageWanted(reference=name, wanted=wish)
        self.past.pop(name, None)
        self.look()

    @rule(name=st.sampled_from(NAMES))
    def forget(self, name):
        self.wanted.pop(name, None)
        self.look()

    @rule(name=st.sampled_from(NAMES))
    def begin_session(self, name):
        if self.busy.get(name) is not ImageWork.DISCARD:
            self.needed.add(name)
        self.look()

    @rule(name=st.sampled_from(NAMES))
    def end_session(self, name):
        self.needed.discard(name)
        self.look()

    @precondition(lambda self: self.busy)
    @rule(well=st.booleans())
    def finish(self, well):
        name, work = self.busy.popitem()
        if not well:
            self.past[name] = Failure(1, "it failed", self.now + 2)
        elif work is ImageWork.FETCH:
            self.held.add(name)
        else:
            self.held.discard(name)
        self.look()

    @rule()
    def wait(self):
        self.now += 1
        self.look()

    @invariant()
    def looking_again_changes_nothing(self):
        wanted = self.wanted.values()
        assert plan(wanted, self.view(), limit=self.LIMIT, now=self.now) == []

    def teardown(self):
        """Whatever has happened, in the end every wish comes true."""
        self.needed.clear()
        for _ in range(20):
            self.now += 10
            self.look()
            while self.busy:
                self.finish(well=True)
        for name, image in self.wanted.items():
            assert (name in self.held) == (image.wanted is ImageWish.PRESENT)
            assert told(image, self.view())[0] is ImageState.DONE


TestNode = Node.TestCase
