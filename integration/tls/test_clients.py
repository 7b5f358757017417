"""kazoo, and the Java client of 3.9.5 with its shell, over TLS."""

import os
import pathlib
import subprocess

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl

from integration.tls.material import PASSWORD, SUBJECT
from integration.zookeeper.genuine import class_path

COMMONS_CLI = "/usr/share/java/commons-cli.jar"


def test_kazoo(server, material):
    client = KazooClient(f"localhost:{server.secure_port}", use_ssl=True, ca=material.path("ca.pem"),
                         certfile=material.path("client.pem"), keyfile=material.path("client.key"))
    client.start(timeout=30)
    try:
        acl = make_acl("x509", SUBJECT, all=True)
        client.create("/kazoo", b"data", acl=[acl])
        assert client.get("/kazoo")[0] == b"data" and client.get_acls("/kazoo")[0] == [acl]
        events = []
        client.get("/kazoo", watch=events.append)
        client.set("/kazoo", b"x" * 500_000)
        assert len(client.get("/kazoo")[0]) == 500_000
        client.delete("/kazoo")
        assert [event.type for event in events] == ["CHANGED"]
    finally:
        client.stop()
        client.close()


def zkcli(server, material, end, *command):
    """What one command of zkCli says, with the client's stores in this format."""
    client = material.path(f"client.{end}")
    if end == "pem":
        client = material.write("client-store.pem", "client.pem", "client.key")
    properties = {
        "zookeeper.client.secure": "true",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        "zookeeper.ssl.keyStore.location": client,
        "zookeeper.ssl.trustStore.location": material.path("ca.pem" if end == "pem" else f"truststore.{end}"),
        "org.slf4j.simpleLogger.defaultLogLevel": "error",
    }
    if end != "pem":  # Java takes a password for the sign that a key in PEM is encrypted
        properties |= {"zookeeper.ssl.keyStore.password": PASSWORD, "zookeeper.ssl.trustStore.password": PASSWORD}
    classes = os.pathsep.join([class_path(), COMMONS_CLI])
    java = ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *(f"-D{key}={value}" for key, value in properties.items())]
    done = subprocess.run([*java, "-cp", classes, "org.apache.zookeeper.ZooKeeperMain", "-server",
                           f"localhost:{server.secure_port}", *command], capture_output=True, text=True, timeout=110, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("end", ["jks", "p12", "pem"])
def test_java_shell(server, material, end):
    assert pathlib.Path(COMMONS_CLI).exists()
    said = zkcli(server, material, end, "whoami")
    assert f"x509: {SUBJECT}" in said and "ip: 127.0.0.1" in said, said
    assert f"Created /java-{end}" in zkcli(server, material, end, "create", f"/java-{end}", "data")
    assert "data" in zkcli(server, material, end, "get", f"/java-{end}").splitlines()
    zkcli(server, material, end, "delete", f"/java-{end}")
