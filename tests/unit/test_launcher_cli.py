"""The command line: refusals come before anything is touched."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from backendai_hub.cli import main


@pytest.fixture
def run():
    runner = CliRunner()
    return lambda *argv: runner.invoke(main, [str(word) for word in argv])


def test_attach_needs_to_know_the_hub(run, tmp_path):
    result = run("up", "--attach", "--data-dir", tmp_path / "d")

    assert result.exit_code == 2
    assert "--hub-api-url" in result.output
    assert not (tmp_path / "d").exists()


def test_a_misspelt_setting_of_the_launcher_is_an_error(run, tmp_path):
    config = tmp_path / "backendai_config.py"
    config.write_text("c.Launcher.prot = 9000\n")

    result = run("up", "--data-dir", tmp_path / "d", "--config", config)

    assert result.exit_code == 1
    assert "c.Launcher.prot" in result.output
    assert "did you mean port?" in result.output
    assert not (tmp_path / "d").exists()


def test_a_setting_with_a_wrong_value_is_an_error(run, tmp_path):
    config = tmp_path / "backendai_config.py"
    config.write_text("c.Launcher.runtime = 'dokcer'\n")

    result = run("up", "--data-dir", tmp_path / "d", "--config", config)

    assert result.exit_code == 1
    assert "dokcer" in result.output


def test_a_configuration_that_does_not_run_is_an_error_naming_it(run, tmp_path):
    config = tmp_path / "backendai_config.py"
    config.write_text("c.Launcher.port = 1 +\n")

    result = run("up", "--data-dir", tmp_path / "d", "--config", config)

    assert result.exit_code == 1
    assert str(config) in result.output


def test_status_of_nothing(run, tmp_path):
    result = run("status", "--json", "--data-dir", tmp_path / "d")

    found = json.loads(result.output)
    assert result.exit_code == 3
    assert found["running"] is False
    assert {process["pid"] for process in found["processes"]} == {None}


def test_stopping_nothing_is_fine(run, tmp_path):
    result = run("down", "--data-dir", tmp_path / "d")

    assert result.exit_code == 0
    assert "nothing was running" in result.output


def test_the_doctor_answers_programs_too(run, tmp_path):
    result = run("doctor", "--json", "--data-dir", tmp_path / "d")

    findings = json.loads(result.output)
    assert {"subject", "severity", "text", "remedy"} == set(findings[0])


def test_a_command_of_the_launcher_does_not_import_what_only_the_platform_needs():
    """It would take each of them four times as long."""
    heavy = {"aiohttp", "alembic", "jupyterhub", "numpy", "sqlalchemy", "tornado"}
    told = subprocess.run(
        [
            *(sys.executable, "-c"),
            "import sys, backendai_hub.cli, backendai_hub.launcher.verbs;"
            " print(*sys.modules)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    imported = told.stdout.split()
    assert "backendai_hub.launcher.up" in imported
    assert heavy.intersection(imported) == set()
