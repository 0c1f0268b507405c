"""What JupyterHub's groups give: the rules of the configuration."""

from __future__ import annotations

from typing import Any

import pytest

from backendai_hub.core.configuration import ConfigurationError
from backendai_hub.core.directory import (
    Grants,
    ProjectGrant,
    apply_rules,
    read_rules,
)
from backendai_hub.core.tenancy import Role


def grants(rules: list[dict[str, Any]], *groups: str) -> Grants:
    return apply_rules(read_rules(rules), groups)


def projects(found: Grants) -> list[tuple[str | None, str]]:
    return [(grant.domain, grant.project) for grant in found.projects]


def test_without_rules_or_groups_nothing_is_given():
    assert grants([], "staff") == Grants()
    assert grants([{"group": "staff", "role": "monitor"}]) == Grants()


def test_a_group_gives_what_its_rule_says():
    rule = {"group": "staff", "domain": "lab", "project": "vision", "role": "monitor"}

    found = grants([rule], "staff")

    assert found == Grants(
        domain="lab",
        projects=(ProjectGrant(project="vision", domain="lab"),),
        role=Role.MONITOR,
    )


@pytest.mark.parametrize("group", ["xstaff", "staffx", "Staff", "staff\n", ""])
def test_a_pattern_has_to_match_a_groups_whole_name(group: str):
    assert grants([{"group": "staff", "role": "superadmin"}], group) == Grants()


def test_parts_of_a_groups_name_become_parts_of_names():
    rules = [
        {"group": r"(?P<d>\w+)/(?P<p>\w+)", "domain": "{d}", "project": "{p}-team"},
        {"group": r"old-(\w+)", "project": "{1}"},
    ]

    found = grants(rules, "lab/vision", "old-speech")

    assert found.domain == "lab"
    assert projects(found) == [("lab", "vision-team"), (None, "speech")]


def test_a_part_that_did_not_match_gives_no_project():
    rule = {"group": "team(-(?P<p>.+))?", "project": "{p}"}

    assert grants([rule], "team") == Grants()


def test_projects_add_up_and_each_is_there_once():
    rules = [
        {"group": "a|b", "project": "shared"},
        {"group": "a", "project": "Shared"},
        {"group": "b", "project": "own"},
    ]

    assert projects(grants(rules, "b", "a")) == [(None, "shared"), (None, "own")]


def test_of_several_roles_and_domains_the_first_rules_counts():
    rules = [
        {"group": "guests", "role": "user", "domain": "outside"},
        {"group": "staff", "role": "superadmin", "domain": "inside"},
    ]

    found = grants(rules, "staff", "guests")

    assert found.role is Role.USER
    assert found.domain == "outside"


def test_the_order_of_groups_changes_nothing():
    rules = [{"group": r"p-(\w+)", "domain": "{1}", "project": "{1}"}]

    assert grants(rules, "p-b", "p-a") == grants(rules, "p-a", "p-b")


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"group": "staff", "projct": "x"}, "did you mean 'project'"),
        ({"project": "x"}, "says no group"),
        ({"group": "staff"}, "gives nothing"),
        ({"group": "(", "project": "x"}, "not a regular expression"),
        ({"group": "staff", "project": "{team}"}, "{team} is not a part"),
        ({"group": "(a)", "domain": "{2}"}, "{2} is not a part"),
        ({"group": "(a)", "domain": "{}"}, "{} is not a part"),
        ({"group": "staff", "role": "superadmn"}, "did you mean 'superadmin'"),
        ({"group": "staff", "role": 3}, "has to be a text"),
        ({"group": "", "role": "user"}, "not empty"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_named_when_the_service_starts(
    rule: dict[str, Any], words: str
):
    with pytest.raises(ConfigurationError) as refused:
        read_rules([{"group": "good", "project": "fine"}, rule])

    assert "c.HubService.group_rules[1]" in refused.value.message
    assert words in refused.value.message
