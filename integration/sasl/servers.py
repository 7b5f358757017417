"""Servers whose users stand in a JAAS file."""

from integration.lib.target import build_server

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
USERS = {"bob": "bobsecret", "ann": "ann's \\secret", "super": "supersecret", "zo\u00eb": "cl\u00e9", "\u0391": "\u03b1", "a b": "x y"}
SUPER_DIGEST = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="  # super:test
CFG = {
    "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
    "superUser": "ann",
    "DigestAuthenticationProvider.superDigest": SUPER_DIGEST,
}


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def jaas(users, section="Server", module=MODULE):
    options = "".join(f"\n    {quoted('user_' + user)}={quoted(password)}" for user, password in users.items())
    return f"{section} {{\n    {module} required{options};\n}};\n"


JAAS = jaas(USERS)


def prepared(folder, text, cfg, **options):
    """One that is not started. `text` None: no JAAS file; a value None in `cfg` takes a key away."""
    folder.mkdir(parents=True, exist_ok=True)
    cfg = {**CFG, **cfg}
    if text is not None:
        path = folder / "jaas.conf"
        path.write_text(text)
        path.chmod(0o600)
        cfg["java.security.auth.login.config"] = str(path)
    return build_server(folder, {key: value for key, value in cfg.items() if value is not None}, heap="200m", **options)


def server(folder, text=JAAS, cfg=None):
    return prepared(folder, text, cfg or {})
