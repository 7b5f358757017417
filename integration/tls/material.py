"""Keys, certificates and stores, made anew for each run with OpenSSL and keytool."""

import pathlib
import subprocess

PASSWORD = "apassword"
# Of the client with every awkward kind of attribute, as Java writes it.
SUBJECT = "CN=zk client,OU=My Unit,O=Org\\, Inc,L=City,ST=State,C=US"
OLD_SUBJECT = "1.2.840.113549.1.9.1=#16056140622e63,CN=old"
SELF_SUBJECT = "CN=self"


class Material:
    """A folder with `NAME.pem` and `NAME.key` for each certificate:

    ca, foreign (another one that signs)      server (signed, names localhost and 127.0.0.1)
    client (signed)                           old (signed, of the form without extensions)
    self (by itself, may sign others)         stranger (signed by foreign)
    expired (signed, over)                    plus `other-server`, a second one for the server
    leaf (by itself, may not sign others)     by-leaf, old-by-leaf (signed by leaf all the same)
    alike (sent with many others of one name, none of which leads anywhere)
    """

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.authority("ca", "/O=Tests/CN=ca")
        self.authority("foreign", "/O=Tests/CN=foreign")
        self.authority("self", "/CN=self")
        names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
        self.signed("server", "/CN=localhost", extensions=names)
        self.signed("other-server", "/CN=localhost/O=second", extensions=names)
        self.signed("client", "/C=US/ST=State/L=City/O=Org, Inc/OU=My Unit/CN=zk client", extensions="basicConstraints=CA:FALSE")
        self.signed("old", "/CN=old/emailAddress=a@b.c")
        self.signed("stranger", "/CN=zk client", by="foreign", extensions="basicConstraints=CA:FALSE")
        self.authority("leaf", "/CN=leaf", "-addext", "basicConstraints=critical,CA:FALSE")
        self.signed("by-leaf", "/CN=self", by="leaf", extensions="basicConstraints=CA:FALSE")
        self.signed("old-by-leaf", "/CN=self", by="leaf")
        self.alike("alike")
        self.expired("expired", "/CN=expired")
        self.stores()

    def path(self, name):
        return str(self.folder / name)

    def read(self, *names):
        return b"".join((self.folder / name).read_bytes() for name in names)

    def write(self, name, *parts):
        (self.folder / name).write_bytes(self.read(*parts))
        return self.path(name)

    def openssl(self, *arguments, text=""):
        subprocess.run(["openssl", *arguments], cwd=self.folder, input=text.encode(), check=True, capture_output=True)

    def keytool(self, *arguments):
        subprocess.run(["keytool", "-noprompt", *arguments], cwd=self.folder, check=True, capture_output=True)

    def authority(self, name, subject, *more):
        self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", subject,
                     "-keyout", f"{name}.key", "-out", f"{name}.pem", *more)

    def alike(self, name):
        """As many certificates as a handshake has room for. Each may stand behind each other one."""
        others = [f"{name}-{number}" for number in range(6)]
        for other in others:
            self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                         "-subj", "/CN=alike", "-keyout", f"{other}.key", "-out", f"{other}.pem")
        self.signed(name, "/CN=self", by=others[0], extensions="basicConstraints=CA:FALSE")
        self.write(f"{name}.pem", f"{name}.pem", *[f"{other}.pem" for other in others] * 16)

    def request(self, name, subject):
        self.openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", subject, "-keyout", f"{name}.key", "-out", f"{name}.csr")

    def signed(self, name, subject, by="ca", extensions=None):
        self.request(name, subject)
        command = ["x509", "-req", "-in", f"{name}.csr", "-CA", f"{by}.pem", "-CAkey", f"{by}.key", "-CAcreateserial",
                   "-days", "30", "-out", f"{name}.pem"]
        if extensions:
            (self.folder / "extensions").write_text(extensions + "\n")
            command += ["-extfile", "extensions"]
        self.openssl(*command)

    def expired(self, name, subject):
        self.request(name, subject)
        (self.folder / "database").mkdir()
        (self.folder / "database/index").touch()
        config = ("[ca]\ndefault_ca=it\n[it]\ndatabase=database/index\nnew_certs_dir=database\nrand_serial=yes\n"
                  "default_md=sha256\npolicy=any\nx509_extensions=leaf\n[any]\ncommonName=supplied\n[leaf]\n"
                  "basicConstraints=CA:FALSE\n")
        (self.folder / "ca.cnf").write_text(config)
        self.openssl("ca", "-batch", "-config", "ca.cnf", "-in", f"{name}.csr", "-cert", "ca.pem", "-keyfile", "ca.key",
                     "-notext", "-startdate", "20200101000000Z", "-enddate", "20200201000000Z", "-out", f"{name}.pem")

    def stores(self):
        """keystore.* and truststore.* for the server; client.p12, client.jks and ca.* for Java's client."""
        self.write("keystore.pem", "server.pem", "ca.pem", "server.key")
        self.write("other-keystore.pem", "other-server.pem", "ca.pem", "other-server.key")
        self.openssl("pkcs8", "-topk8", "-v2", "aes-256-cbc", "-in", "server.key", "-passout", f"pass:{PASSWORD}", "-out", "server.enc")
        self.write("keystore-encrypted.pem", "server.pem", "ca.pem", "server.enc")
        self.write("truststore.pem", "ca.pem", "self.pem", "leaf.pem")
        self.write("mismatch.pem", "server.pem", "client.key")
        self.write("expired-keystore.pem", "expired.pem", "expired.key")
        for name, store in (("server", "keystore"), ("client", "client")):
            self.openssl("pkcs12", "-export", "-in", f"{name}.pem", "-inkey", f"{name}.key", "-certfile", "ca.pem", "-name", name,
                         "-passout", f"pass:{PASSWORD}", "-out", f"{store}.p12")
            self.keytool("-importkeystore", "-srckeystore", f"{store}.p12", "-srcstorepass", PASSWORD,
                         "-destkeystore", f"{store}.jks", "-deststoretype", "jks", "-deststorepass", PASSWORD)
        for kind, end in (("jks", "jks"), ("pkcs12", "p12")):
            for alias in ("ca", "self"):
                self.keytool("-importcert", "-alias", alias, "-file", f"{alias}.pem", "-keystore", f"truststore.{end}",
                             "-storetype", kind, "-storepass", PASSWORD)
