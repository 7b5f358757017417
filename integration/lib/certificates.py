"""An authority and certificates signed by it, made by openssl. For tests: the keys are short-lived and unprotected."""

import pathlib
import subprocess

DAYS = "2"


class Authority:
    """`certificate` is the PEM file with which its signatures are checked."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.certificate = self.folder / "authority.pem"
        self._key = self.folder / "authority.key"
        self._openssl("req", "-x509", *self._new_key(self._key), "-out", self.certificate, "-days", DAYS,
                      "-subj", "/CN=authority")

    def issue(self, name, names="IP:127.0.0.1,DNS:localhost"):
        """A PEM file with the key and the certificate of `CN=name`, at 127.0.0.1 or under other alternative names."""
        key, request, signed = (self.folder / f"{name}.{kind}" for kind in ("key", "csr", "crt"))
        self._openssl("req", *self._new_key(key), "-out", request, "-subj", f"/CN={name}")
        extensions = self.folder / "extensions.cnf"
        extensions.write_text(f"subjectAltName={names}\n")
        self._openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial",
                      "-out", signed, "-days", DAYS, "-extfile", extensions)
        both = self.folder / f"{name}.pem"
        both.write_text(key.read_text() + signed.read_text())
        return both

    @staticmethod
    def _new_key(path):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", path]

    @staticmethod
    def _openssl(*words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def quorum_tls(authority, name="member"):
    """Keys of zoo.cfg with which a member speaks TLS alone with the others."""
    return {
        "sslQuorum": "true",
        "ssl.quorum.keyStore.location": str(authority.issue(name)),
        "ssl.quorum.trustStore.location": str(authority.certificate),
    }


def server_tls(authority):
    """Keys of zoo.cfg with which the client port takes TLS as well, from clients that show a certificate."""
    return {
        "client.portUnification": "true",
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": str(authority.issue("server")),
        "ssl.keyStore.type": "PEM",
        "ssl.trustStore.location": str(authority.certificate),
        "ssl.trustStore.type": "PEM",
        "ssl.clientAuth": "need",
        # ZooKeeper 3.9 alone would speak TLS 1.3 only, and Kafka's client 1.2 only.
        "ssl.enabledProtocols": "TLSv1.2,TLSv1.3",
        "authProvider.x509": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
    }
