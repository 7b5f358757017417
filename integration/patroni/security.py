"""A Patroni that proves by a certificate who it is."""

from integration.lib.certificates import Authority, server_tls

IDENTITY = "CN=patroni"


class Security:
    """Certificates in `folder`; `cfg` is for zoo.cfg."""

    says = "over TLS, the tree protected by access lists for a certificate's subject"

    def __init__(self, folder):
        authority = Authority(folder)
        certificate = str(authority.issue("patroni"))
        self.cfg = server_tls(authority)
        self.settings = {
            "use_ssl": True, "verify": True, "cacert": str(authority.certificate), "cert": certificate, "key": certificate,
            "set_acls": {IDENTITY: ["ALL"]},
        }
