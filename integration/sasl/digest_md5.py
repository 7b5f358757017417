"""The client's side of DIGEST-MD5 at the level of tokens, so that a test can bend it."""

import hashlib
import re

REALM = "zk-sasl-md5"
URI = "zookeeper/zk-sasl-md5"
CNONCE = "Y25vbmNlIG9mIHRoZSBjbGllbnQ="
CHALLENGE = re.compile(rb'realm="zk-sasl-md5",nonce="([A-Za-z0-9+/]{40})",charset=utf-8,algorithm=md5-sess')


def nonce_of(challenge):
    match = CHALLENGE.fullmatch(challenge)
    assert match, challenge
    return match[1].decode()


def _md5(*pieces):
    return hashlib.md5(b":".join(pieces)).digest()


def _narrow(text):
    """What ISO 8859-1 can write is hashed in it."""
    try:
        return text.encode("iso-8859-1")
    except UnicodeEncodeError:
        return text.encode()


def _proof(method, user, password, nonce, authzid):
    secret = _md5(_narrow(user), REALM.encode(), _narrow(password))
    known = [nonce.encode(), CNONCE.encode(), *([] if authzid is None else [authzid.encode()])]
    a1 = _md5(secret, *known).hex()
    a2 = _md5(method, URI.encode()).hex()
    return _md5(a1.encode(), nonce.encode(), b"00000001", CNONCE.encode(), b"auth", a2.encode()).hex()


def answer(challenge, user, password, authzid=None, **instead):
    """The token for a challenge; `instead` replaces the text of single directives (None leaves one out)."""
    nonce = nonce_of(challenge)
    directives = {
        "charset": "utf-8",
        "username": f'"{user}"',
        "realm": f'"{REALM}"',
        "nonce": f'"{nonce}"',
        "nc": "00000001",
        "cnonce": f'"{CNONCE}"',
        "digest_uri": f'"{URI}"',
        "maxbuf": "65536",
        "response": _proof(b"AUTHENTICATE", user, password, nonce, authzid),
        "qop": "auth",
        "authzid": None if authzid is None else f'"{authzid}"',
        **instead,
    }
    texts = [f"{name.replace('_', '-')}={value}" for name, value in directives.items() if value is not None]
    return ",".join(texts).encode()


def confirmation(challenge, user, password, authzid=None):
    """What a server answers that knows the password."""
    return b"rspauth=" + _proof(b"", user, password, nonce_of(challenge), authzid).encode()
