"""The data directory: what is made, for whom, and never a second time."""

import os
import stat
from datetime import UTC, datetime

import msgspec
import pytest
from cryptography import x509
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives import serialization

from backendai_hub.launcher.admin import make_password, prepare_first_admin
from backendai_hub.launcher.files import create_private, write_private
from backendai_hub.launcher.folder import DataFolder
from backendai_hub.launcher.keys import create_missing_keys
from backendai_hub.launcher.state import State, load_state, save_state

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path):
    made = DataFolder(tmp_path / "data")
    made.create()
    return made


def read_everything(folder):
    return {path.name: path.read_bytes() for path in folder.keys.iterdir()}


def test_nobody_else_can_enter_the_data_directory(folder):
    paths = [folder.root, *(path for path in folder.root.iterdir() if path.is_dir())]

    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o700}


def test_a_data_directory_that_stood_open_is_closed(tmp_path):
    root = tmp_path / "data"
    root.mkdir(mode=0o755)

    DataFolder(root).create()

    assert stat.S_IMODE(root.stat().st_mode) == 0o700


def test_every_key_is_readable_by_its_owner_only(folder):
    create_missing_keys(folder, now=NOW)

    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.keys.iterdir()} == {
        0o600
    }


def test_keys_are_made_once(folder):
    assert create_missing_keys(folder, now=NOW)
    first = read_everything(folder)

    assert create_missing_keys(folder, now=NOW) == []
    assert read_everything(folder) == first


def test_a_missing_key_is_made_without_touching_the_others(folder):
    create_missing_keys(folder, now=NOW)
    before = read_everything(folder)
    folder.key("router.token").unlink()

    assert create_missing_keys(folder, now=NOW) == ["router.token"]
    after = read_everything(folder)
    assert after.pop("router.token") != before.pop("router.token")
    assert after == before


def test_a_lost_certificate_is_made_again_for_the_same_key(folder):
    create_missing_keys(folder, now=NOW)
    key = folder.key("hub.key").read_bytes()
    folder.key("hub.crt").unlink()

    assert create_missing_keys(folder, now=NOW) == ["hub.crt"]
    assert folder.key("hub.key").read_bytes() == key


def test_nothing_is_left_lying_about(folder):
    create_missing_keys(folder, now=NOW)

    assert [path for path in folder.keys.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("stem", "name"),
    [("hub", "hub.backendai.internal"), ("router", "router.backendai.internal")],
)
def test_identities_are_signed_by_the_authority(folder, stem, name):
    create_missing_keys(folder, now=NOW)

    authority = x509.load_pem_x509_certificate(folder.key("ca.crt").read_bytes())
    identity = x509.load_pem_x509_certificate(folder.key(f"{stem}.crt").read_bytes())
    identity.verify_directly_issued_by(authority)
    names = identity.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert names.value.get_values_for_type(x509.DNSName) == [name]
    assert identity.not_valid_before_utc < NOW < identity.not_valid_after_utc


def test_certificate_and_key_belong_together(folder):
    create_missing_keys(folder, now=NOW)

    for stem in ("ca", "hub", "router"):
        certificate = x509.load_pem_x509_certificate(
            folder.key(f"{stem}.crt").read_bytes()
        )
        key = serialization.load_pem_private_key(
            folder.key(f"{stem}.key").read_bytes(), password=None
        )
        assert certificate.public_key() == key.public_key()


def test_the_database_key_encrypts(folder):
    create_missing_keys(folder, now=NOW)
    fernet = Fernet(folder.key("database.key").read_bytes().strip())

    assert fernet.decrypt(fernet.encrypt(b"secret")) == b"secret"


def test_an_existing_file_is_never_overwritten(tmp_path):
    path = tmp_path / "token"

    assert create_private(path, b"first")
    assert not create_private(path, b"second")
    assert path.read_bytes() == b"first"


def test_replacing_a_file_keeps_it_private(tmp_path):
    path = tmp_path / "state"
    previous = os.umask(0)
    try:
        write_private(path, b"one")
        write_private(path, b"two")
    finally:
        os.umask(previous)

    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_state_is_remembered(folder):
    assert load_state(folder) == State()

    save_state(folder, State(public=8001, hub=12345))

    assert load_state(folder) == State(public=8001, hub=12345)


def test_the_first_password_is_stored_as_a_hash_only(folder):
    password = prepare_first_admin(folder, State(admin="root"))

    stored = folder.key("first-admin.json").read_bytes()
    assert password.encode() not in stored
    account = msgspec.json.decode(stored)
    assert account["name"] == "root"
    assert account["password_hash"].startswith("$argon2id$")


def test_a_password_that_was_shown_is_not_made_again(folder):
    prepare_first_admin(folder, State())
    stored = folder.key("first-admin.json").read_bytes()

    assert prepare_first_admin(folder, State(password_shown=True)) is None
    assert folder.key("first-admin.json").read_bytes() == stored


def test_passwords_differ_and_can_be_typed():
    passwords = {make_password() for _ in range(100)}

    assert len(passwords) == 100
    assert {len(password) for password in passwords} == {19}
    assert not set("".join(passwords)) & set("l1o0IO")
