"""Who may do what: the table told once more, by caller, and no by default."""

from __future__ import annotations

import itertools

import pytest

from backendai_hub.core.access import (
    ADMIN_SCOPE,
    ADMIN_SCOPES,
    CALLER_OF_ROLE,
    MATRIX,
    PEOPLE,
    RESOURCE_OF,
    SESSION_SCOPES,
    USER_SCOPE,
    USER_SCOPES,
    Action,
    Caller,
    Principal,
    Reach,
    Resource,
    Target,
    admin_scope,
    can,
    expand_scopes,
    reach,
    user_scope,
)
from backendai_hub.core.nouns import NOUNS
from backendai_hub.core.tenancy import Role

EVERY_SCOPE = USER_SCOPES | ADMIN_SCOPES


def words(text: str) -> set[str]:
    """``a:read,write b:read`` is three actions."""
    found = set()
    for part in text.split():
        noun, _, verbs = part.partition(":")
        found |= {f"{noun}:{verb}" for verb in verbs.split(",")}
    return found


ANYBODY = words("version:read spec:read login:start upload:check")
OWN_SESSIONS = words(
    "self:read resources:read session:create,check,read,terminate events:read"
    " log:read preset:check"
)
ACCOUNT = words("account:change login:confirm,end")
OWN_ALONE = words("ssh-key:read,update")
"""Nobody sets another's key to log in with."""
SEEN = words(
    """
    domain:read project:read user:read keypair:read members:read dotfiles:read
    resource-group:read preset:read image:read audit:read account:read
    """
)
DATA_SEEN = words(
    """
    folder:read folder-activity:read folder-guest:read folder-task:read
    storage-host:read quota-scope:read
    """
)
DATA = DATA_SEEN | words(
    """
    folder:create,update,trash,restore,purge,share folder-task:cancel upload:read
    """
)
INVITATIONS = words("invitation:read,answer folder:clone,invite")
FILES = words(
    """
    file:read,download,make-directory,move,copy,trash,restore,empty-trash,extract
    file:write,upload upload:serve,end
    """
)
"""What is in folders: only who may open one does it, whatever their role is."""
POLICIES = words("keypair-policy:read user-policy:read project-policy:read")
PERSON = (
    OWN_SESSIONS
    | ACCOUNT
    | OWN_ALONE
    | SEEN
    | POLICIES
    | DATA
    | INVITATIONS
    | FILES
    | words(
        """
        folder:leave
        console:open user:update keypair:create,update,purge,issue dotfiles:update
        image:forget session:rename,prioritize,hold,release queue:read
        agent-summary:read
        """
    )
)
TENANTS = words(
    """
    domain:update project:create,update,purge user:create members:update
    tenant-dotfiles:update
    account:create,reset shares:read,update
    """
)
SITE_SEEN = words(
    """
    agents:read registry:read resource-group-access:read image:installs usage:verify
    audit:verify reservation:read schedule:read storage-remain:read
    """
)
SITE = words(
    """
    domain:create,purge user:purge resource-group-access:update agent:update
    keypair-policy:create,update,purge user-policy:create,update,purge
    project-policy:create,update,purge resource-group:create,update,purge
    preset:create,update,purge slot-type:create,update,purge
    registry:create,update,purge image:update,rescan,alias,untag,install
    agent:drain,undrain resource-group:freeze,unfreeze
    reservation:create,update,purge
    folder:transfer quota-scope:update storage-remain:check
    """
)
ALWAYS_OWN = words("session:create,check") | ACCOUNT | OWN_ALONE | INVITATIONS | FILES
OWN_OF_DOMAIN = words("image:forget folder:leave")
"""What the administrators of a domain do like everybody else, and superadmins for
others."""

MAY: dict[str, dict[Reach, set[str]]] = {
    "anonymous": {Reach.ALL: ANYBODY, Reach.OWN: words("agent:enroll")},
    "user": {Reach.ALL: ANYBODY | words("slot-type:read"), Reach.OWN: PERSON},
    "domain-admin": {
        Reach.ALL: ANYBODY | words("slot-type:read") | POLICIES,
        Reach.DOMAIN: (PERSON | TENANTS) - ALWAYS_OWN - POLICIES - OWN_OF_DOMAIN,
        Reach.OWN: ALWAYS_OWN | OWN_OF_DOMAIN,
    },
    "superadmin": {
        Reach.ALL: ANYBODY
        | words("slot-type:read")
        | ((PERSON | TENANTS | SITE | SITE_SEEN) - ALWAYS_OWN),
        Reach.OWN: ALWAYS_OWN,
    },
    "monitor": {
        Reach.ALL: ANYBODY
        | SEEN
        | POLICIES
        | SITE_SEEN
        | DATA_SEEN
        | words(
            """
            slot-type:read console:open self:read resources:read session:read
            events:read preset:check queue:read shares:read
            agent-summary:read
            """
        ),
        Reach.OWN: ACCOUNT,
    },
    "spawner": {
        Reach.ALL: ANYBODY | words("account:verify,check"),
        Reach.OWN: OWN_SESSIONS | words("spawned:read folder:read"),
    },
    "router": {Reach.ALL: ANYBODY | words("routes:read")},
    "agent": {Reach.ALL: ANYBODY, Reach.OWN: words("agent:enroll,serve")},
}


def expected(caller: str, action: str) -> Reach | None:
    for extent, actions in MAY[caller].items():
        if action in actions:
            return extent
    return None


def principal(
    caller: Caller, *, scopes: frozenset[str] = EVERY_SCOPE, user_id: str = "u1"
) -> Principal:
    return Principal(
        caller=caller,
        name="alice",
        id=user_id,
        domain_id="d1",
        holds=frozenset({user_id, "d1", "p1"}),
        scopes=scopes,
    )


def test_every_caller_and_every_action_is_expected_here():
    assert set(MAY) == set(Caller)
    told = set().union(*(a for by in MAY.values() for a in by.values()))
    assert told == set(MATRIX)
    for by in MAY.values():
        for one, other in itertools.combinations(by.values(), 2):
            assert not one & other, "an action is told with one reach only"


@pytest.mark.parametrize(("caller", "action"), list(itertools.product(Caller, MATRIX)))
def test_a_caller_may_do_what_is_listed_and_nothing_else(caller, action):
    extent = expected(caller, action)
    everybody = {Reach.ALL}
    asking = principal(caller)
    assert reach(asking, action) is extent
    assert can(asking, action) is (extent is not None)
    mine, ours, theirs = Target("u1", "d1"), Target("u2", "d1"), Target("u3", "d2")
    assert can(asking, action, mine) is (extent is not None)
    assert can(asking, action, ours) is (extent in everybody | {Reach.DOMAIN})
    assert can(asking, action, theirs) is (extent in everybody)
    # What belongs to nobody and to no domain is the site's.
    assert can(asking, action, Target()) is (extent in everybody)


@pytest.mark.parametrize("action", sorted(MATRIX))
def test_without_the_scope_of_its_resource_nothing_is_done(action):
    resource = RESOURCE_OF[action]
    for caller in PEOPLE:
        rights = MATRIX[action].get(caller)
        if resource is None:
            assert reach(principal(caller, scopes=frozenset()), action) is rights
            continue
        others = EVERY_SCOPE - {user_scope(resource), admin_scope(resource)}
        assert reach(principal(caller, scopes=others), action) is None


@pytest.mark.parametrize("action", sorted(MATRIX))
def test_with_scopes_of_ones_own_only_a_role_has_a_users_rights_at_most(action):
    for caller in PEOPLE:
        have = reach(principal(caller, scopes=USER_SCOPES), action)
        if caller not in MATRIX[action]:
            assert have is None, "who may not do it at all may not do it so, either"
        elif RESOURCE_OF[action] is not None:
            assert have is MATRIX[action].get(Caller.USER)


def test_an_administrators_scope_gives_a_plain_user_nothing_more():
    for action in MATRIX:
        every = reach(principal(Caller.USER), action)
        assert every is reach(principal(Caller.USER, scopes=USER_SCOPES), action)


def test_what_runs_in_a_notebook_reaches_its_users_sessions_and_data_only():
    about = {Resource.SESSIONS, Resource.DATA}
    for caller, action in itertools.product(PEOPLE, MATRIX):
        have = reach(principal(caller, scopes=SESSION_SCOPES), action)
        if RESOURCE_OF[action] is None:
            continue
        if RESOURCE_OF[action] in about and caller in MATRIX[action]:
            assert have is MATRIX[action].get(Caller.USER)
        else:
            assert have is None, (caller, action)


def test_a_monitor_changes_nothing_but_what_logs_them_in():
    reads = {"read", "open", "verify", "installs", "check", "start"}
    changes = {a for a in MATRIX if a.partition(":")[2] not in reads}
    may = {a for a in changes if reach(principal(Caller.MONITOR), a)}
    assert may == ACCOUNT


def test_each_role_is_a_caller_of_its_own():
    assert set(CALLER_OF_ROLE) == set(Role)
    assert set(CALLER_OF_ROLE.values()) == PEOPLE


def test_every_noun_and_every_named_action_is_in_the_table():
    verbs = {noun.action(verb) for noun in NOUNS for verb in noun.verbs}
    assert set(MATRIX) == verbs | set(Action)
    assert set(RESOURCE_OF) == set(MATRIX)
    assert all(MATRIX.values()), "an action that nobody may do is not one"


def test_the_two_umbrella_scopes_stand_for_all_of_their_kind_and_not_more():
    assert expand_scopes({USER_SCOPE}) == {USER_SCOPE} | USER_SCOPES
    assert expand_scopes({ADMIN_SCOPE}) == {ADMIN_SCOPE} | ADMIN_SCOPES
    assert expand_scopes({"custom:backendai:admin:audit"}) == {
        "custom:backendai:admin:audit"
    }
    assert expand_scopes({"custom:backendai", "admin"}) == {"custom:backendai", "admin"}


def test_a_scope_narrowed_to_somebody_is_not_the_scope():
    narrowed = frozenset({f"{s}!user=alice" for s in EVERY_SCOPE})
    asking = principal(Caller.SUPERADMIN, scopes=expand_scopes(narrowed))
    assert not any(reach(asking, a) for a in MATRIX if RESOURCE_OF[a] is not None)


@pytest.mark.parametrize(
    "novelty", ["session:duplicate", "", "session", "SESSION:READ"]
)
def test_an_action_that_is_not_in_the_table_is_nobodys(novelty):
    for caller in Caller:
        assert reach(principal(caller), novelty) is None
        assert not can(principal(caller), novelty)


def test_the_table_cannot_be_changed_while_running():
    with pytest.raises(TypeError):
        MATRIX[Action.READ_AGENTS] = {Caller.ANONYMOUS: Reach.ALL}
    with pytest.raises(TypeError):
        MATRIX[Action.READ_AGENTS][Caller.ANONYMOUS] = Reach.ALL


def test_a_caller_without_an_id_owns_nothing_that_has_an_owner():
    nobody = Principal(caller=Caller.SPAWNER)
    assert not can(nobody, Action.READ_SESSION, Target("u1", "d1"))
    assert not can(nobody, Action.READ_SESSION, Target(None, None))


def test_a_domain_that_is_not_known_is_not_ones_own():
    asking = Principal(
        caller=Caller.DOMAIN_ADMIN, scopes=EVERY_SCOPE, holds=frozenset({"u1"})
    )
    assert not can(asking, "project:update", Target("p2", None))
    assert not can(asking, "project:update", Target("p2", "d1"))
