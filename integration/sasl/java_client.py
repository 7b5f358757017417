"""ZooKeeper's own Java client, and its shell, as somebody whom a JAAS file names."""

import functools
import pathlib
import subprocess

from integration.sasl import servers
from integration.zookeeper.genuine import DEFAULT_VERSION, class_path

HERE = pathlib.Path(__file__).resolve().parent
QUICK = ["-Xmx96m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
# Debian's; the release's own jars do not include it.
COMMONS_CLI = "/usr/share/java/commons-cli.jar"


@functools.cache
def compiled(folder):
    done = subprocess.run(["javac", "-cp", class_path(), "-d", folder, HERE / "Client.java"], check=False)
    assert done.returncode == 0
    return folder


def jaas_file(folder, user, password):
    path = pathlib.Path(folder) / f"{user}.conf"
    options = f'username={servers.quoted(user)} password={servers.quoted(password)}'
    path.write_text(f"Client {{\n {servers.MODULE} required {options};\n}};\n")
    return path


def options(jaas):
    """Without FIPS mode the client of 3.9 speaks DIGEST-MD5."""
    if jaas is None:
        return QUICK
    return [*QUICK, f"-Djava.security.auth.login.config={jaas}", "-Dzookeeper.fips-mode=false"]


def client(folder, jaas, server, *arguments):
    """Its lines."""
    classes = f"{compiled(str(folder))}:{class_path()}"
    command = ["java", *options(jaas), "-cp", classes, "Client", server.hosts, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def shell(jaas, server, script):
    """What zkCli says to the lines of a script."""
    main = "org.apache.zookeeper.ZooKeeperMain"
    command = ["java", *options(jaas), "-cp", f"{class_path()}:{COMMONS_CLI}", main, "-server", server.hosts]
    done = subprocess.run(command, input=script, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=110,
                          check=False)
    return done.stdout


VERSION = DEFAULT_VERSION
