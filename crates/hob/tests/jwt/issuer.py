#!/usr/bin/env python3
"""An issuer of tokens on PyJWT, which shares no line with hob.

    issuer.py install                        into target/pyjwt, from PyPI; says why it could not
    issuer.py serve                          answers lines of standard input, each a JSON object, with lines

    {"do": "keys"}                           its public keys, a stranger's, and its secret, as a JSON Web Key Set
    {"do": "sign", "alg": "ES256", "kid": "es", "claims": {...}, "header": {...}}
    {"do": "confuse", "kid": "rs", "form": "pem", "claims": {...}}
                                             signed by HMAC, with a public key as the secret
"""

import base64
import hashlib
import hmac
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "h3"))
import client  # noqa: E402

PACKAGES = ["PyJWT==2.15.1", "cryptography==50.0.2"]
VENV = HERE.parents[3] / "target" / "pyjwt"


class Issuer:
    """Keys of each kind, by their names."""

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

        def pair():
            return rsa.generate_private_key(public_exponent=65537, key_size=2048)

        self.keys = {
            "es": ec.generate_private_key(ec.SECP256R1()),
            "es384": ec.generate_private_key(ec.SECP384R1()),
            "rs": pair(),
            "ed": ed25519.Ed25519PrivateKey.generate(),
            "stranger": ec.generate_private_key(ec.SECP256R1()),
        }
        self.secret = hashlib.sha256(b"a secret of both").digest() * 2

    def answer(self, asked: dict) -> str:
        return getattr(self, asked.pop("do"))(**asked)

    def keys_as_set(self) -> list:
        from jwt.algorithms import ECAlgorithm, HMACAlgorithm, OKPAlgorithm, RSAAlgorithm

        kinds = {"es": ECAlgorithm, "es384": ECAlgorithm, "rs": RSAAlgorithm, "ed": OKPAlgorithm, "stranger": ECAlgorithm}
        made = []
        for kid, kind in kinds.items():
            made.append({**kind.to_jwk(self.keys[kid].public_key(), as_dict=True), "kid": kid})
        made.append({**HMACAlgorithm.to_jwk(self.secret, as_dict=True), "kid": "secret"})
        for key in made:
            key.pop("key_ops", None)
        return made

    def sign(self, alg: str, kid: str, claims: dict, header: dict) -> str:
        import jwt

        key = self.secret if kid == "secret" else self.keys.get(kid)
        headers = {"kid": kid, **header}
        if alg == "none":
            key = None
        if headers.get("kid") is None:
            headers.pop("kid", None)
        return jwt.encode(claims, key, algorithm=alg, headers=headers)

    def confuse(self, kid: str, form: str, claims: dict) -> str:
        """PyJWT refuses to make this one."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        encodings = {"pem": Encoding.PEM, "der": Encoding.DER}
        public = self.keys[kid].public_key()
        if form == "n":
            number = public.public_numbers().n
            secret = number.to_bytes((number.bit_length() + 7) // 8, "big")
        else:
            secret = public.public_bytes(encodings[form], PublicFormat.SubjectPublicKeyInfo)

        def part(value: bytes) -> str:
            return base64.urlsafe_b64encode(value).rstrip(b"=").decode()

        header = {"alg": "HS256", "typ": "JWT", "kid": kid}
        signed = ".".join(part(json.dumps(value).encode()) for value in (header, claims))
        return f"{signed}.{part(hmac.digest(secret, signed.encode(), 'sha256'))}"


def serve() -> None:
    issuer = Issuer()
    for line in sys.stdin:
        asked = json.loads(line)
        answer = json.dumps(issuer.keys_as_set()) if asked["do"] == "keys" else issuer.answer(asked)
        print(answer, flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["install"]:
        sys.exit(client.install(VENV, PACKAGES) or None)
    serve()
