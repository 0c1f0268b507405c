"""What registries say, read without any of them."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.registries.address import find_origin, read_address
from backendai_hub.registries.answers import find_next
from backendai_hub.registries.challenges import (
    Challenge,
    choose_challenge,
    is_safe_realm,
    read_challenges,
)
from backendai_hub.registries.client import RegistryClient
from backendai_hub.registries.identity import Credentials, Token, read_token
from backendai_hub.registries.manifests import ImageConfig, Manifest, Platform
from backendai_hub.registries.names import is_digest, is_repository, is_tag

DIGEST = f"sha256:{'0' * 64}"
OCI = "application/vnd.oci.image"


def entry(architecture, variant="", *, os="linux", digit="0", **changes):
    return {
        "mediaType": f"{OCI}.manifest.v1+json",
        "digest": f"sha256:{digit * 64}",
        "size": 1,
        "platform": {"architecture": architecture, "os": os, "variant": variant},
        **changes,
    }


def read_index(*entries):
    index = {"schemaVersion": 2, "manifests": entries}
    return msgspec.convert(index, Manifest).choose()


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("lab", True),
        ("team/deep/lab-1.0_a__b", True),
        ("a" * 255, True),
        ("a" * 256, False),
        ("Team/lab", False),
        ("team//lab", False),
        ("/lab", False),
        ("lab/", False),
        ("a..b", False),
        ("a/../b", False),
        ("lab%2f", False),
        ("läb", False),
        ("", False),
    ],
)
def test_a_repository_s_name_follows_the_grammar(name, good):
    assert is_repository(name) is good


def test_tags_and_digests_cannot_be_taken_for_each_other():
    assert is_tag("v1.0_x-2")
    assert is_tag("a" * 128)
    assert not is_tag("a" * 129)
    assert not is_tag(DIGEST)
    assert is_digest(DIGEST)
    assert is_digest(f"sha512:{'a' * 128}")
    assert not is_digest(DIGEST.upper())
    assert not is_digest(f"md5:{'0' * 32}")
    assert not is_digest(DIGEST[:-1])


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("https://registry.example", "https://registry.example"),
        ("https://registry.example:443/", "https://registry.example"),
        ("http://127.0.0.1:5000", "http://127.0.0.1:5000"),
        ("http://[::1]:5000", "http://[::1]:5000"),
        ("HTTPS://Registry.Example", "https://registry.example"),
        ("https://docker.io", "https://registry-1.docker.io"),
    ],
)
def test_a_registry_s_address_is_a_scheme_and_a_host(url, read):
    assert str(read_address(url)) == read


@pytest.mark.parametrize(
    "url",
    [
        "registry.example",
        "ftp://registry.example",
        "https://robot:sesame@registry.example",
        "https://registry.example/path",
        "https://registry.example?x=1",
        "https://registry.example#x",
        "https://registry.example:port",
        "https://registry.example\n",
        "https://",
        "",
    ],
)
def test_other_addresses_are_refused_without_repeating_them(url):
    with pytest.raises(InvalidRequestError) as refused:
        read_address(url)

    assert "sesame" not in str(refused.value)


def test_challenges_are_read_from_one_header_or_several():
    both = [
        Challenge("basic", realm="a, b"),
        Challenge(
            "bearer",
            realm="https://auth.example/token",
            service="s",
            scopes=("repository:a:pull,push", "repository:b:pull"),
        ),
    ]
    basic = 'Basic realm="a, b"'
    bearer = (
        'Bearer realm="https://auth.example/token",service=s,'
        ' scope="repository:a:pull,push repository:b:pull"'
    )

    assert read_challenges([basic, bearer]) == both
    assert read_challenges([f"{basic}, {bearer}"]) == both
    assert read_challenges(['Basic realm="with \\"quotes\\""']) == [
        Challenge("basic", realm='with "quotes"')
    ]
    assert read_challenges(["", "=", 'realm="x"', '"', ","]) == []


def test_a_token_is_preferred_to_sending_the_password_each_time():
    bearer = Challenge("bearer", realm="https://auth.example")
    basic = Challenge("basic", realm="x")

    assert choose_challenge([basic, bearer]) == bearer
    assert choose_challenge([basic, Challenge("bearer")]) == basic
    assert choose_challenge([Challenge("negotiate"), basic]) == basic
    assert choose_challenge([Challenge("negotiate")]) is None


@pytest.mark.parametrize(
    ("realm", "registry", "safe"),
    [
        ("https://auth.example/token", "https://registry.example", True),
        ("https://auth.example/token", "http://registry.example", True),
        ("http://registry.example:81/token", "http://registry.example", True),
        ("http://auth.example/token", "http://registry.example", False),
        ("http://registry.example/token", "https://registry.example", False),
        ("ftp://registry.example/token", "http://registry.example", False),
        ("https://me@auth.example/token", "https://registry.example", False),
        ("//auth.example/token", "https://registry.example", False),
        ("", "https://registry.example", False),
    ],
)
def test_the_password_goes_over_https_or_where_it_goes_anyway(realm, registry, safe):
    origin = find_origin(registry)
    assert origin is not None
    assert is_safe_realm(realm, origin) is safe


def test_a_token_server_may_use_either_name_and_is_believed_for_an_hour_at_most():
    assert read_token(b'{"token": "a"}', now=100.0) == Token("a", 154.0)
    assert read_token(b'{"access_token": "b", "expires_in": 300}', now=0.0) == Token(
        "b", 270.0
    )
    assert read_token(b'{"token": "a", "expires_in": 1e9}', now=0.0) == Token(
        "a", 3240.0
    )


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b'{"token": ""}', b'{"token": "a\\r\\nb"}', b"<html>"]
)
def test_what_is_no_token_is_none(body):
    assert read_token(body, now=0.0) is None


def test_nothing_that_can_be_printed_shows_a_secret():
    credentials = Credentials("robot", "sesame")
    client = RegistryClient(
        "https://registry.example", username="robot", password="sesame"
    )

    for shown in (credentials, Token("sesame", 1.0), client, vars(client)):
        assert "sesame" not in repr(shown)
    assert credentials.redact(f"{credentials.basic} sesame") == "Basic … …"


@pytest.mark.parametrize("name", ["a:b", "a\nb"])
def test_a_user_name_that_no_header_can_hold_is_refused(name):
    with pytest.raises(InvalidRequestError):
        Credentials(name, "sesame")


@pytest.mark.parametrize(
    ("links", "query"),
    [
        (['</v2/_catalog?last=a%2Fb&n=100>; rel="next"'], "last=a%2Fb&n=100"),
        (["<?page=1>; rel=prev, <?page=3>; rel=next"], "page=3"),
        (["<?page=1>; rel=prev", '<?page=3> ; title="x"; rel="next"'], "page=3"),
        (['<https://elsewhere.example/?n=1>; rel="next"'], "n=1"),
        (["<?page=1>; rel=prev"], None),
        (['<?page=1>; rel="nextish"'], None),
        (["rel=next"], None),
        ([], None),
    ],
)
def test_the_next_page_is_the_link_that_says_so(links, query):
    assert find_next(links) == query


@pytest.mark.parametrize(
    ("platform", "machine"),
    [
        (Platform("amd64"), "x86_64"),
        (Platform("arm64", variant="v8"), "aarch64"),
        (Platform("arm", variant="v7"), "armv7l"),
        (Platform("arm", variant="v6"), "armv6l"),
        (Platform("arm"), "armv7l"),
        (Platform("386"), "i686"),
        (Platform("riscv64"), "riscv64"),
    ],
)
def test_architectures_are_named_as_machines_name_themselves(platform, machine):
    assert platform.machine() == machine


def test_an_index_gives_each_machine_the_variant_that_asks_least_of_it():
    chosen = read_index(
        entry("amd64", "v3", digit="3"), entry("amd64", digit="1"), entry("arm64", "v8")
    )

    assert {name: found.digest[-1] for name, found in chosen.items()} == {
        "x86_64": "1",
        "aarch64": "0",
    }


@pytest.mark.parametrize(
    "other",
    [
        entry("unknown", os="unknown"),
        entry("unknown"),
        entry("amd64", os="windows"),
        entry("amd64", annotations={"vnd.docker.reference.type": "attestation"}),
        entry("amd64", mediaType=f"{OCI}.index.v1+json"),
        entry("../x"),
        entry("amd64", platform=None),
    ],
)
def test_what_is_no_linux_image_is_left_out_of_an_index(other):
    assert set(read_index(other, entry("arm64"))) == {"aarch64"}


def test_only_images_are_images():
    def manifest(media_type):
        config = {"mediaType": media_type, "digest": DIGEST, "size": 2}
        document = {"schemaVersion": 2, "config": config, "layers": []}
        return msgspec.convert(document, Manifest)

    assert manifest(f"{OCI}.config.v1+json").is_image()
    assert manifest("application/vnd.docker.container.image.v1+json").is_image()
    assert not manifest("application/vnd.cncf.helm.config.v1+json").is_image()
    assert not Manifest(schema_version=1).is_image()


@pytest.mark.parametrize("wrong", [{"size": -1}, {"size": 1 << 60}, {"digest": "x"}])
def test_sizes_and_digests_that_cannot_be_are_refused(wrong):
    with pytest.raises(msgspec.ValidationError):
        read_index(entry("amd64", **wrong))


@pytest.mark.parametrize(
    ("told", "read"),
    [
        ("2026-01-02T03:04:05.123456789Z", datetime(2026, 1, 2, 3, 4, 5, 123457, UTC)),
        ("2026-01-02T03:04:05+09:00", datetime(2026, 1, 1, 18, 4, 5, 0, UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        ("0001-01-01T00:00:00+09:00", None),
        ("yesterday", None),
        (None, None),
    ],
)
def test_when_an_image_was_made_is_a_time_or_not_known(told, read):
    assert ImageConfig(created=told).created_at() == read
