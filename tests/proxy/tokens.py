"""An authorization server without a network: a key, its key set in a file, and tokens
that it signs (RS256)."""

import base64
import json
import subprocess
import time

ISSUER = "https://issuer.example"


def _encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _openssl(*arguments, given=b""):
    return subprocess.run(["openssl", *arguments], input=given, check=True,
                          capture_output=True).stdout


class Authority:
    def __init__(self, place):
        self.key = str(place / "key.pem")
        self.keys = str(place / "keys.json")
        _openssl("genrsa", "-out", self.key, "2048")
        modulus = _openssl("rsa", "-in", self.key, "-noout", "-modulus")
        number = bytes.fromhex(modulus.decode().strip().split("=")[1])
        with open(self.keys, "w", encoding="utf-8") as file:
            json.dump({"keys": [{"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig",
                                 "n": _encode(number), "e": "AQAB"}]}, file)

    def options(self):
        return ("--issuer", ISSUER, "--jwks-file", self.keys)

    def token(self, subject, audience):
        head = {"alg": "RS256", "typ": "at+jwt", "kid": "1"}
        now = int(time.time())
        claims = {"iss": ISSUER, "sub": subject, "aud": audience, "iat": now,
                  "exp": now + 600, "client_id": "test", "jti": subject}
        signed = ".".join(_encode(json.dumps(part).encode()) for part in (head, claims))
        signature = _openssl("dgst", "-sha256", "-sign", self.key, given=signed.encode())
        return f"{signed}.{_encode(signature)}"
