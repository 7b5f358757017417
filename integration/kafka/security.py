"""Brokers that prove who they are: by a certificate, and by SASL."""

from integration.lib.certificates import Authority, server_tls

LOGIN_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
USER, PASSWORD = "broker", "of the tree"


class Security:
    """Keys and certificates in `folder`; `cfg` is for zoo.cfg."""

    says = "over TLS with certificates and SASL, the tree protected by access lists"
    identities = {("x509", "CN=broker"), ("sasl", USER)}

    def __init__(self, folder):
        authority = Authority(folder)
        self._stores = {"keystore": authority.issue("broker"), "truststore": authority.certificate}
        users = folder / "server.jaas"
        users.write_text(f'Server {{ {LOGIN_MODULE} required user_{USER}="{PASSWORD}"; }};\n')
        self.cfg = {
            **server_tls(authority),
            "authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
            "java.security.auth.login.config": str(users),
        }
        self._login = folder / "client.jaas"
        self._login.write_text(f'Client {{ {LOGIN_MODULE} required username="{USER}" password="{PASSWORD}"; }};\n')
        self.tool_settings = folder / "tls.properties"
        self.tool_settings.write_text("".join(f"{key}={value}\n" for key, value in self.settings().items()))

    def settings(self):
        """Of every program of Kafka that speaks with the service itself."""
        stores = {}
        for kind, path in self._stores.items():
            stores |= {f"zookeeper.ssl.{kind}.location": path, f"zookeeper.ssl.{kind}.type": "PEM"}
        return {
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
            "zookeeper.set.acl": "true",
            **stores,
        }

    @property
    def java_options(self):
        return [f"-Djava.security.auth.login.config={self._login}"]
