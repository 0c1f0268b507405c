"""A key that nobody reads is an error, not a silent wish."""

import pytest
from traitlets import Int
from traitlets.config import Config, Configurable

from backendai_hub.core.configuration import (
    ConfigurationError,
    check_keys,
    find_unknown_keys,
)


class Base(Configurable):
    level = Int().tag(config=True)


class Service(Base):
    port = Int().tag(config=True)
    private = Int()


def problems(**sections):
    return list(find_unknown_keys(Config(sections), [Service]))


def test_what_a_class_or_its_base_has_is_known():
    assert problems(Service={"port": 1, "level": 2}, Base={"level": 3}) == []


def test_a_setting_of_the_class_is_not_one_of_its_base():
    assert problems(Base={"port": 1}) == ["c.Base.port: there is no such setting"]


def test_a_misspelt_setting_comes_with_the_right_one():
    assert problems(Service={"prot": 1}) == [
        "c.Service.prot: there is no such setting (did you mean port?)"
    ]


def test_a_misspelt_section_comes_with_the_right_one():
    assert problems(Servic={}) == [
        "c.Servic: there is no such section (did you mean Service?)"
    ]


def test_what_is_not_tagged_for_configuration_cannot_be_set():
    assert problems(Service={"private": 1}) == [
        "c.Service.private: there is no such setting"
    ]


def test_sections_of_another_program_are_not_looked_into():
    config = Config(JupyterHub={"whatever": 1})
    assert list(find_unknown_keys(config, [Service], foreign=["JupyterHub"])) == []
    check_keys(config, [Service], foreign=["JupyterHub"])


def test_every_problem_is_told_at_once():
    with pytest.raises(ConfigurationError, match=r"c\.A: .*; c\.Service\.b: "):
        check_keys(Config(A={}, Service={"b": 1}), [Service])
