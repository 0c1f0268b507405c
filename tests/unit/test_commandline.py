"""The command line before it asks anybody: what it reads, keeps and prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from backendai_hub.cli import main
from backendai_hub.commandline.access import NotLoggedInError, Setting
from backendai_hub.commandline.bulk import number_names
from backendai_hub.commandline.fields import gather_fields, make_options, read_text
from backendai_hub.commandline.output import Output, show_plain, show_value
from backendai_hub.commandline.profiles import Profile, ProfilesError, ProfileStore
from backendai_hub.core.fields import (
    Document,
    Flag,
    Hosts,
    Networks,
    Number,
    Numbers,
    Reference,
    Slots,
    Words,
    defaults_of,
    fields_of,
)
from backendai_hub.core.nouns import NOUNS, Verb
from tests.commandline import CommandLine


def walk(group, context, words=()):
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        yield (*words, name), command
        if isinstance(command, click.Group):
            yield from walk(command, context, (*words, name))


COMMANDS = dict(walk(main, click.Context(main)))


# --- what there is ----------------------------------------------------------------


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(words):
    result = CliRunner().invoke(main, [*words, "--help"])

    assert result.exit_code == 0, result.output
    command = COMMANDS[words]
    assert (command.help or "").strip().endswith("."), "a sentence"
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, (words, parameter.name)


def find_group(noun):
    kind, _, policy = noun.name.partition("-policy")
    words = ("policy", kind) if noun.name.endswith("-policy") else (noun.name,)
    assert not policy
    return ("admin", *words)


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.name)
def test_every_noun_has_every_verb_and_every_field(noun):
    group = find_group(noun)
    verbs = {words[-1] for words in COMMANDS if words[:-1] == group}
    wanted = {"list", "info", "update", "bulk"}
    if Verb.CREATE in noun.verbs:
        wanted |= {"add", "bulk-add"}
    if Verb.PURGE in noun.verbs:
        wanted |= {"purge"}
    assert wanted <= verbs

    update = {p.name for p in COMMANDS[(*group, "update")].params}
    changeable = {n for n, f in fields_of(noun.shown).items() if not f.once}
    assert changeable <= update
    if Verb.CREATE in noun.verbs:
        add = COMMANDS[(*group, "add")]
        assert set(fields_of(noun.shown)) <= {p.name for p in add.params}
        needed = {p.name for p in add.params if p.required}
        without_default = set(fields_of(noun.shown)) - set(defaults_of(noun.shown))
        assert needed == without_default - (
            {"user"} if noun.name == "keypair" else set()
        )


def test_no_option_takes_a_secret():
    """Others on the machine see the words of a command."""
    for words, command in COMMANDS.items():
        for parameter in command.params:
            spelled = " ".join(parameter.opts)
            if any(word in spelled for word in ("secret", "password", "token")):
                is_file = parameter.make_metavar(click.Context(command)) == "FILE"
                is_flag = isinstance(parameter, click.Option) and parameter.is_flag
                assert is_file or is_flag, (words, spelled)


def test_help_comes_at_once_and_without_what_only_asking_needs():
    code = (
        "import sys, backendai_hub.cli as c\n"
        "try: c.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'aiohttp', 'rich', 'sqlalchemy', 'jupyterhub', 'numpy', 'tornado'}\n"
        "sys.exit(' '.join(heavy & set(sys.modules)) or 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "Administer people" in done.stdout


def test_where_only_the_command_line_is_installed_the_platforms_commands_say_so(
    tmp_path,
):
    code = (
        "import sys\n"
        "for n in ('sqlalchemy', 'traitlets', 'cryptography'): sys.modules[n] = None\n"
        "import backendai_hub.cli as c\n"
        "c.main()\n"
    )

    def run(*words):
        argv = [sys.executable, "-c", code, *words]
        environ = {**os.environ, **CommandLine(tmp_path).environ}
        return subprocess.run(
            argv, check=False, capture_output=True, text=True, env=environ
        )

    up = run("up")
    assert up.returncode == 1
    assert "which is not installed; 'pip install backendai-hub[hub]'" in up.stderr
    who = run("whoami")
    assert who.returncode == 4, who.stderr
    assert run("admin", "domain", "add", "--help").returncode == 0


# --- fields -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "text", "meaning"),
    [
        (Slots(), "cpu=8, mem=32g", {"cpu": "8", "mem": "32g"}),
        (Slots(), "", {}),
        (Hosts(), "nfs=a+b", {"nfs": ["a", "b"]}),
        (Words(), "a, b,,", ["a", "b"]),
        (Words(), "", []),
        (Networks(), "10.0.0.0/8", ["10.0.0.0/8"]),
        (Numbers(), "1000,1001", [1000, 1001]),
        (Number(), "7", 7),
        (Number(optional=True), "none", None),
        (Reference(noun="project", optional=True), "none", None),
        (Reference(noun="project"), "none", "none"),
        (Document(form=dict), '{"a": [1]}', {"a": [1]}),
        (Document(form=dict, optional=True), "none", None),
        (Flag(), "Yes", True),
        (Flag(), "0", False),
    ],
)
def test_a_field_is_read_as_it_is_written(kind, text, meaning):
    assert read_text(kind, text) == meaning


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        (Slots(), "cpu", "such as cpu=8"),
        (Slots(), "cpu=1,cpu=2", "twice"),
        (Slots(), "=1", "NAME=VALUE"),
        (Number(), "seven", "whole number"),
        (Flag(), "perhaps", "neither yes nor no"),
        (Document(form=dict), "{", "no JSON"),
    ],
)
def test_what_cannot_be_read_is_told(kind, text, words):
    with pytest.raises(ValueError, match=words):
        read_text(kind, text)


def test_documents_and_texts_come_from_files(tmp_path):
    file = tmp_path / "options.json"
    file.write_text('{"pending_timeout": 60}')

    found = read_text(Document(form=dict), f"@{file}")

    assert found == {"pending_timeout": 60}
    with pytest.raises(ValueError, match="gone"):
        read_text(Document(form=dict), f"@{tmp_path / 'gone'}")


def test_options_given_several_times_are_put_together():
    found = gather_fields(
        {
            "slots": ({"cpu": "1"}, {"mem": "1g"}),
            "words": (["a"], ["b", "c"]),
            "left_out": None,
            "many_left_out": (),
            "flag": False,
        }
    )

    assert found == {
        "slots": {"cpu": "1", "mem": "1g"},
        "words": ["a", "b", "c"],
        "flag": False,
    }
    with pytest.raises(click.UsageError, match="twice"):
        gather_fields({"slots": ({"cpu": "1"}, {"cpu": "2"})})


def test_what_is_not_named_is_not_changed():
    for noun in NOUNS:
        command = COMMANDS[(*find_group(noun), "update")]
        given = command.make_context("update", ["it"]).params
        named = {o.name for o in make_options(noun, change=True)}
        assert gather_fields({n: given[n] for n in named}) == {}, noun.name


def test_numbered_names_are_equally_long():
    assert number_names("s", 10, 1)[::9] == ["s01", "s10"]
    assert number_names("s", 3, 99) == ["s099", "s100", "s101"]


# --- what is printed --------------------------------------------------------------


@pytest.mark.parametrize(
    "hostile",
    ["\x1b[2J", "a\rb", "\x9b31m", "\x07", "a\u202etxt", "a\u200bb", "\x1b]0;x\x07"],
)
def test_what_a_server_says_cannot_steer_the_terminal(hostile):
    shown = show_plain(f"{hostile}[bold]")

    assert shown.isprintable()
    assert shown.endswith("[bold]"), "and is no markup"
    assert show_plain("größe 日本 ok") == "größe 日本 ok"


def test_values_are_written_as_people_do():
    assert show_value({"cpu": "8", "mem": None}) == "cpu=8 mem="
    assert show_value(["a\tb", "c"]) == r"a\tb,c"
    assert show_value(None) == ""
    assert (show_value(True), show_value(False)) == ("yes", "no")
    assert show_value(0) == "0"


def test_tables_fit_terminals_and_keep_to_the_text(capsys):
    output = Output()
    output.is_terminal = True

    output.show_list([{"name": "a[red]", "n": 1}, {"name": "\x1b[1mb"}], ["name", "n"])

    shown = capsys.readouterr().out
    assert "a[red]" in shown
    assert "\x1b[1mb" not in shown
    assert r"\x1b[1mb" in shown


def test_programs_get_lines_without_a_head_or_json(capsys):
    Output().show_list([{"name": "a\nb", "n": [1, 2]}], ["name", "n"])
    assert capsys.readouterr().out == "a\\nb\t1,2\n"
    Output(as_json=True).show_list([{"name": "a"}], ["name"])
    assert json.loads(capsys.readouterr().out) == [{"name": "a"}]
    Output().show_list([], ["name"])
    assert capsys.readouterr().out == ""


# --- logins -----------------------------------------------------------------------


@pytest.fixture
def store(tmp_path):
    return ProfileStore(tmp_path / "config" / "credentials.json")


def test_secrets_are_in_the_file_and_nowhere_else(store):
    profile = Profile(url="https://hub", access_key="AKIA", secret_key="hush")
    store.save("default", profile)

    assert "hush" not in repr(profile)
    assert "hush" not in repr(Setting(store, environ={}).find(None, None))
    assert store.find(None) == profile
    assert [p.name for p in store.path.parent.iterdir()] == ["credentials.json"]


def test_a_file_that_others_read_or_that_is_none_is_refused(store):
    store.save("default", Profile(url="https://hub", token="t"))
    store.path.chmod(0o640)
    with pytest.raises(ProfilesError, match="chmod 600"):
        store.read()
    store.path.chmod(0o600)
    store.path.write_text("{")
    with pytest.raises(ProfilesError, match="log in again"):
        store.read()


def test_forgetting_the_login_in_use_falls_back_on_the_only_other(store):
    for name in ("a", "b", "c"):
        store.save(name, Profile(url=f"https://{name}"))
    store.remove("c")
    assert store.find(None) is None, "which of two it is has to be said"
    store.use("a")
    store.remove("a")
    assert store.find(None) == Profile(url="https://b")


KEYS = {
    "BACKENDAI_ENDPOINT": "https://env",
    "BACKENDAI_ACCESS_KEY": "a",
    "BACKENDAI_SECRET_KEY": "s",
}
SESSION = {"BACKENDAI_API_URL": "https://in", "JUPYTERHUB_API_TOKEN": "t"}


def test_what_is_named_comes_before_what_is_around(store):
    def url(profile=None, **environ):
        return Setting(store, environ=environ).find(profile, None).url

    with pytest.raises(NotLoggedInError):
        url()
    assert url(**SESSION) == "https://in"
    store.save("other", Profile(url="https://other"))
    store.save("usual", Profile(url="https://usual"))
    assert url(**SESSION) == "https://usual"
    assert url(BACKENDAI_PROFILE="other") == "https://other"
    assert url(**SESSION, **KEYS) == "https://env"
    assert url("other", **KEYS) == "https://other"
    with pytest.raises(NotLoggedInError, match="other, usual"):
        url("third")


def test_half_a_keypair_is_no_login(store):
    environ = {**KEYS, "BACKENDAI_SECRET_KEY": ""}

    with pytest.raises(NotLoggedInError):
        Setting(store, environ=environ).find(None, None)


# --- usage ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("login",), "--url"),
        (("login", "--url=x", "--secret-stdin"), "--access-key"),
        (("login", "--url=x", "--token-stdin", "--access-key=a"), "not with both"),
        (("login", "--url=https://a:b@hub"), "no name or password"),
        (("admin", "project", "add", "vision"), "--domain"),
        (("admin", "domain", "add", "a", "--slots", "cpu"), "cpu=8"),
        (("admin", "domain", "list", "--order", "shoe"), "-created_at"),
        (("completion", "tcsh"), "bash"),
    ],
)
def test_a_wrong_command_line_ends_with_2_and_a_hint(words, told, tmp_path):
    done = CommandLine(tmp_path).run(*words)

    assert done.code == 2
    assert told in done.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_told_how_to_complete(shell, tmp_path):
    done = CommandLine(tmp_path).run("completion", shell)

    assert done.code == 0
    assert "_BACKENDAI_COMPLETE" in done.out


def complete(*words):
    *before, last = words
    shell = ShellComplete(main, {}, "backendai", "_BACKENDAI_COMPLETE")
    return [item.value for item in shell.get_completions(list(before), last)]


def test_commands_choices_and_fields_are_completed(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert complete("admin", "re") == ["registry", "reservation", "resource-group"]
    assert complete("admin", "user", "add", "--role", "su") == ["superadmin"]
    assert "domain=" in complete("admin", "project", "list", "--filter", "do")
    assert complete("admin", "project", "add", "x", "--domain", "") == [], "not known"
    ProfileStore(tmp_path / "backendai" / "credentials.json").save(
        "work", Profile(url="https://hub")
    )
    assert complete("whoami", "--profile", "w") == ["work"]
