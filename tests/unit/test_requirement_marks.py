"""Needs that are not met: skipped with a reason here, a failure in CI."""

import pytest

pytest_plugins = ["pytester"]

TEST = """
import pytest

@pytest.mark.postgres
def test_with_a_database():
    raise AssertionError("it ran")
"""


@pytest.fixture
def run(pytester, monkeypatch):
    monkeypatch.delenv("BACKENDAI_TEST_POSTGRES_URL", raising=False)
    pytester.makeini("[pytest]\nmarkers = postgres: needs PostgreSQL\n")
    pytester.makepyfile(TEST)

    def run(ci):
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
