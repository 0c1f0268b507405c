"""The platform's own certificate authority: identities for mutual TLS.

An identity is a DNS name below ``backendai.internal`` in the certificate's subject
alternative names; addresses do not matter. Keys are P-256.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from backendai_hub.core.errors import InvalidRequestError

AGENT_SUFFIX = ".agent.backendai.internal"
AGENT_DAYS = 90


class Authority:
    """Signs what agents ask for."""

    def __init__(self, key_pem: bytes, certificate_pem: bytes) -> None:
        key = serialization.load_pem_private_key(key_pem, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError("the authority's key must be an elliptic-curve key")
        self._key = key
        self._certificate = x509.load_pem_x509_certificate(certificate_pem)
        self.certificate_pem = certificate_pem.decode("ascii")

    def sign_agent(self, csr_pem: str, agent_id: str, now: datetime) -> str:
        """Sign an agent's request; return the certificate as PEM text.

        Only the key is taken from the request: the name is the agent's id, whatever
        the request says. Raises :class:`InvalidRequestError` for a bad request.
        """
        try:
            csr = x509.load_pem_x509_csr(csr_pem.encode("ascii"))
            valid = csr.is_signature_valid
        except (ValueError, InvalidSignature) as error:
            raise InvalidRequestError("csr: not a PEM certificate request") from error
        key = csr.public_key()
        if not valid or not isinstance(key, ec.EllipticCurvePublicKey):
            raise InvalidRequestError("csr: sign it with its own elliptic-curve key")
        name = f"{agent_id}{AGENT_SUFFIX}"
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, agent_id)])
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._certificate.subject)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(now + timedelta(days=AGENT_DAYS))
            .add_extension(
                x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False
            )
            .add_extension(
                x509.BasicConstraints(ca=False, path_length=None), critical=True
            )
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")
