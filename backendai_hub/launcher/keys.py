"""Keys, certificates and tokens: made once, never made again.

One certificate authority signs the identities of the hub service, the router and
the agents. An identity is a DNS name inside ``backendai.internal``, a domain that
never resolves: addresses do not matter, names do.
"""

from __future__ import annotations

import base64
import secrets
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from backendai_hub.launcher.files import create_private
from backendai_hub.launcher.folder import DataFolder

HUB_NAME: Final = "hub.backendai.internal"
ROUTER_NAME: Final = "router.backendai.internal"

_TOKENS: Final = (
    "proxy.token",
    "router.token",
    "service.token",
    "spawner.token",
    "launcher.token",
    "enroll.token",
)
_AUTHORITY_YEARS: Final = 20
_IDENTITY_YEARS: Final = 10
_SKEW: Final = timedelta(days=1)
"""Certificates begin a day early: clocks of new machines are often behind."""


def create_missing_keys(folder: DataFolder, *, now: datetime) -> list[str]:
    """Make every key that does not exist yet and return the names of those made."""
    made = [name for name in _TOKENS if _create_token(folder, name)]
    if create_private(folder.key("cookie.secret"), secrets.token_hex(32).encode()):
        made.append("cookie.secret")
    fernet = base64.urlsafe_b64encode(secrets.token_bytes(32))
    if create_private(folder.key("database.key"), fernet + b"\n"):
        made.append("database.key")
    made += _create_authority(folder, now)
    made += _create_identity(folder, "hub", HUB_NAME, now)
    made += _create_identity(folder, "router", ROUTER_NAME, now)
    return made


def _create_token(folder: DataFolder, name: str) -> bool:
    return create_private(folder.key(name), secrets.token_hex(32).encode() + b"\n")


def _create_authority(folder: DataFolder, now: datetime) -> list[str]:
    if folder.key("ca.crt").exists():
        return []
    key = _create_or_read_key(folder, "ca")
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "backendai-hub"),
            x509.NameAttribute(
                NameOID.COMMON_NAME, f"authority {secrets.token_hex(4)}"
            ),
        ]
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + timedelta(days=365 * _AUTHORITY_YEARS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    return ["ca.crt"] if create_private(folder.key("ca.crt"), pem) else []


def _create_identity(
    folder: DataFolder, stem: str, name: str, now: datetime
) -> list[str]:
    if folder.key(f"{stem}.crt").exists():
        return []
    authority = x509.load_pem_x509_certificate(folder.key("ca.crt").read_bytes())
    key = _create_or_read_key(folder, stem)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + timedelta(days=365 * _IDENTITY_YEARS))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage(
                [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
            ),
            critical=False,
        )
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
        )
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(
                _create_or_read_key(folder, "ca").public_key()
            ),
            critical=False,
        )
        .sign(_create_or_read_key(folder, "ca"), hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    return [f"{stem}.crt"] if create_private(folder.key(f"{stem}.crt"), pem) else []


def _create_or_read_key(folder: DataFolder, stem: str) -> ec.EllipticCurvePrivateKey:
    path = folder.key(f"{stem}.key")
    if not path.exists():
        fresh = ec.generate_private_key(ec.SECP256R1())
        create_private(
            path,
            fresh.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{path} does not hold an elliptic-curve key")
    return key


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
