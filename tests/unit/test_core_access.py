"""Who may do what: the table told once more, by caller, and no by default."""

import itertools

import pytest

from backendai_hub.core.access import (
    MATRIX,
    Action,
    Caller,
    Principal,
    Reach,
    can,
    reach,
)

ANYBODY = {"version:read", "spec:read"}
PERSON = ANYBODY | {
    "console:open",
    "self:read",
    "resources:read",
    "session:create",
    "session:read",
    "session:terminate",
    "events:read",
}

MAY = {
    "anonymous": ANYBODY | {"agent:enroll"},
    "user": PERSON,
    "superadmin": PERSON | {"agents:read", "account:create"},
    "spawner": (PERSON - {"console:open"}) | {"spawned:read", "account:verify"},
    "router": ANYBODY | {"routes:read"},
    "agent": ANYBODY | {"agent:enroll", "agent:serve"},
}

OVER_EVERYTHING = {
    "anonymous": ANYBODY,
    "user": ANYBODY,
    "superadmin": MAY["superadmin"],
    "spawner": ANYBODY | {"account:verify"},
    "router": MAY["router"],
    "agent": ANYBODY,
}
"""Everything else a caller may do reaches what is their own."""


def principal(caller, user_id="u1"):
    return Principal(caller=caller, name="alice", id=user_id)


def test_every_caller_is_expected_here():
    assert set(MAY) == set(OVER_EVERYTHING) == set(Caller)
    assert set().union(*MAY.values()) == set(Action)


@pytest.mark.parametrize(("caller", "action"), list(itertools.product(Caller, Action)))
def test_a_caller_may_do_what_is_listed_and_nothing_else(caller, action):
    expected = None
    if action in MAY[caller]:
        everything = action in OVER_EVERYTHING[caller]
        expected = Reach.ALL if everything else Reach.OWN
    assert reach(principal(caller), action) is expected
    assert can(principal(caller), action) is (expected is not None)
    assert can(principal(caller), action, "u1") is (expected is not None)
    assert can(principal(caller), action, "u2") is (expected is Reach.ALL)


def test_an_action_that_is_not_in_the_table_is_nobodys():
    class Novelty:
        """An action somebody has just thought of."""

    assert reach(principal(Caller.SUPERADMIN), Novelty()) is None
    assert not can(principal(Caller.SUPERADMIN), Novelty())


def test_the_table_cannot_be_changed_while_running():
    with pytest.raises(TypeError):
        MATRIX[Action.READ_AGENTS] = {Caller.ANONYMOUS: Reach.ALL}


def test_a_caller_without_an_id_owns_nothing_that_has_an_owner():
    nobody = principal(Caller.SPAWNER, user_id="")
    assert not can(nobody, Action.READ_SESSION, "u1")
