"""Needs that are not met: skipped with a reason here, a failure in CI."""

import pytest

pytest_plugins = ["pytester"]

TEST = """
import pytest

@pytest.mark.postgres
def test_with_a_database():
    raise AssertionError("it ran")
"""

STORY = """
def test_that_does_with_less():
    pass
"""
PREFERENCE = """
from tests.requirement_marks import prefer

def pytest_runtest_setup(item):
    prefer(item, "postgres")
"""


@pytest.fixture
def run(pytester, monkeypatch):
    monkeypatch.delenv("BACKENDAI_TEST_POSTGRES_URL", raising=False)
    pytester.makeini("[pytest]\nmarkers = postgres: needs PostgreSQL\n")

    def run(ci, test=TEST):
        pytester.makepyfile(test)
        monkeypatch.setenv("CI", ci)
        return pytester.runpytest_subprocess(
            "-p", "tests.requirement_marks", "-p", "no:cacheprovider"
        )

    return run


@pytest.fixture(autouse=True)
def importable(monkeypatch, pytestconfig):
    root = pytestconfig.rootpath
    monkeypatch.setenv("PYTHONPATH", f"{root}:{root}/agent:{root}/labextension")
    # Other plugins take seconds to load and have nothing to do with it.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def test_on_somebody_s_machine_the_test_is_skipped_and_counted(run):
    result = run(ci="")

    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["postgres *1 tests: BACKENDAI_TEST_POSTGRES_URL*"])


def test_in_ci_the_test_fails(run):
    result = run(ci="true")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*needs postgres: BACKENDAI_TEST_POSTGRES_URL*"])
    result.stdout.no_fnmatch_line("*it ran*")


def test_where_something_simpler_stands_in_the_end_of_the_run_says_so(run, pytester):
    pytester.makeconftest(PREFERENCE)

    result = run(ci="", test=STORY)

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["*tested with something simpler*", "postgres *1 tests: BACKENDAI_TEST_*"]
    )


def test_in_ci_nothing_simpler_stands_in(run, pytester):
    pytester.makeconftest(PREFERENCE)

    result = run(ci="true", test=STORY)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*needs postgres: BACKENDAI_TEST_POSTGRES_URL*"])
