"""Configuration files with corners, and what a genuine server makes of them.

    python3 -m integration.operators.config_cases        # captures the golden anew
"""

import pathlib
import subprocess
import tempfile

from integration.zookeeper.genuine import class_path

HERE = pathlib.Path(__file__).parent
GOLDEN = HERE / "golden" / "configs.txt"
THREE = "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n"
LIMITS = "initLimit=10\nsyncLimit=5\n"
BASE = "dataDir=DIR/data\nclientPort=2181\n"

# Name → text; DIR stands for the folder, in which data/myid says 1.
CASES = {
    "least": "dataDir=DIR/data\n",
    "base": BASE,
    "colon-and-blank": "dataDir DIR/data\nclientPort : 2181\ntickTime\t:\t100\n",
    "comments": "# x\n  ! y\n" + BASE + "#tickTime=1\n",
    "continued": "dataDir=\\\n   DIR/\\\n   data\nclientPort=21\\\n81\n",
    "comment-is-not-continued": BASE + "# x \\\ntickTime=100\n",
    "duplicate": BASE + "tickTime=100\ntickTime=200\n",
    "trailing-blanks": "dataDir=DIR/data   \nclientPort=2181 \t\ntickTime=100  \n",
    "escapes": "dataDir=DIR/d\\u0061ta\nclient\\Port=2181\ntickTime=\\100\n",
    "latin-1": BASE.replace("data\n", "d\u00e4ta\n"),
    "bad-escape": BASE + "tickTime=\\u12\n",
    "crlf": BASE.replace("\n", "\r\n") + "tickTime=100\r\n",
    "key-case": BASE + "TickTime=100\n",
    "no-final-newline": BASE + "tickTime=100",
    "empty-value": BASE + "maxClientCnxns=\n",
    "hexadecimal": BASE + "tickTime=0x10\n",
    "plus": BASE + "tickTime=+100\n",
    "too-large": BASE + "tickTime=2147483648\n",
    "no-data": "clientPort=2181\n",
    "tick-0": BASE + "tickTime=0\n",
    "minus-one": BASE + "minSessionTimeout=-1\nmaxSessionTimeout=-1\n",
    "min-over-max": BASE + "minSessionTimeout=9000\nmaxSessionTimeout=8000\n",
    "min-over-default-max": BASE + "tickTime=100\nminSessionTimeout=9000\n",
    "address-without-port": "dataDir=DIR/data\nclientPortAddress=127.0.0.1\n",
    "secure-address-without-port": BASE + "secureClientPortAddress=127.0.0.1\n",
    "algorithm": BASE + "electionAlg=2\n",
    "peer-type": BASE + "peerType=leader\n",
    "boolean": BASE + "reconfigEnabled=yes\n",
    "boolean-case": BASE + "reconfigEnabled=TRUE\n",
    "loose-boolean": BASE + "enforceQuota=yes\n",
    "sync-enabled": BASE + "syncEnabled=1\n",
    "local-sessions": BASE + "localSessionsEnabled=on\n",
    "ssl-quorum-form": BASE + "sslQuorum=maybe\n",
    "limit-form": BASE + "connectToLearnerMasterLimit=x\n",
    "purge-form": BASE + "autopurge.purgeInterval=1d\n",
    "metrics": BASE + "metricsProvider.className=no.such.Provider\n",
    "unknown": BASE + "frobnicate=1\n",
    "one-server": "dataDir=DIR/data\nserver.1=a:1:2;2185\n",
    "one-server-other-id": "dataDir=DIR/data\nserver.2=a:1:2;2185\n",
    "three": BASE + LIMITS + THREE,
    "three-with-clients": "dataDir=DIR/data\n" + LIMITS + THREE.replace("\n", ";2185\n"),
    "two": BASE + LIMITS + "server.1=a:1:2\nserver.2=b:1:2\n",
    "no-init-limit": BASE + "syncLimit=5\n" + THREE,
    "no-sync-limit": BASE + "initLimit=5\n" + THREE,
    "observer": BASE + LIMITS + THREE + "server.4=d:1:2:observer\n",
    "role-case": BASE + LIMITS + THREE.replace("a:1:2", "a:1:2:PARTICIPANT"),
    "role": BASE + LIMITS + THREE.replace("a:1:2", "a:1:2:voter"),
    "observers-alone": BASE + LIMITS + "server.1=a:1:2:observer\n",
    "one-and-observer": BASE + LIMITS + "server.1=a:1:2\nserver.2=b:1:2:observer\n",
    "alone-distributed": BASE + LIMITS + "standaloneEnabled=false\nserver.1=a:1:2\n",
    "none-distributed": BASE + LIMITS + "standaloneEnabled=false\n",
    "same-ports": BASE + LIMITS + THREE.replace("a:1:2", "a:1:1"),
    "two-parts": BASE + LIMITS + THREE.replace("a:1:2", "a:1"),
    "five-parts": BASE + LIMITS + THREE.replace("a:1:2", "a:1:2:participant:x"),
    "ipv6": BASE + LIMITS + THREE.replace("a:1:2", "[::1]:1:2"),
    "server-name": BASE + LIMITS + THREE.replace("server.1", "server.x"),
    "conflicting-client": BASE + LIMITS + THREE.replace("a:1:2", "a:1:2;2185"),
    "agreeing-client": BASE + LIMITS + THREE.replace("a:1:2", "a:1:2;2181"),
    "groups": BASE + LIMITS + THREE + "group.1=1:2:3\nweight.1=2\nweight.2=2\nweight.3=2\n",
    "groups-of-one": BASE + LIMITS + THREE + "group.1=1\ngroup.2=2\ngroup.3=3\n",
    "groups-of-a-single-server": "dataDir=DIR/data\nstandaloneEnabled=true\nserver.1=a:1:2;2185\ngroup.1=1\n",
    "groups-that-count": BASE + LIMITS + THREE + "group.1=1:2:3\nweight.1=5\n",
    "group-missing": BASE + LIMITS + THREE + "group.1=1:2\n",
    "group-twice": BASE + LIMITS + THREE + "group.1=1:2:3\ngroup.2=3\n",
    "group-number": BASE + LIMITS + THREE + "group.1=1:2:x\n",
    "group-name": BASE + LIMITS + THREE + "group.x=1:2:3\n",
    "group-without-dot": BASE + LIMITS + THREE + "group=1:2:3\n",
    "group-of-an-observer": BASE + LIMITS + THREE + "server.4=d:1:2:observer\ngroup.1=1:2:3:4\n",
    "group-and-observer": BASE + LIMITS + THREE + "server.4=d:1:2:observer\ngroup.1=1:2:3\n",
    "weight-alone": BASE + LIMITS + THREE + "weight.1=1\n",
    "weight-number": BASE + LIMITS + THREE + "group.1=1:2:3\nweight.1=x\n",
    "algorithm-3": BASE + "standaloneEnabled=true\nelectionAlg=3\n",
    "algorithm-x": BASE + "standaloneEnabled=true\nelectionAlg=x\n",
    "addresses-disabled": BASE + LIMITS + "multiAddress.enabled=false\n" + THREE.replace("c:1:2", "c:1:2|d:1:2"),
    "addresses-form": BASE + LIMITS + "multiAddress.enabled=no\n" + THREE,
    "addresses-check-form": BASE + LIMITS + "multiAddress.reachabilityCheckEnabled=no\n" + THREE,
    "addresses-time-form": BASE + LIMITS + "multiAddress.reachabilityCheckTimeoutMs=x\n" + THREE,
    "dynamic": BASE + LIMITS + "dynamicConfigFile=DIR/three.dynamic\n",
    "dynamic-and-static": BASE + LIMITS + "dynamicConfigFile=DIR/three.dynamic\n" + THREE,
    "dynamic-version": BASE + LIMITS + "dynamicConfigFile=DIR/version.dynamic\n",
    "dynamic-key": BASE + LIMITS + "dynamicConfigFile=DIR/key.dynamic\n",
    "dynamic-groups": BASE + LIMITS + "dynamicConfigFile=DIR/groups.dynamic\n",
    "dynamic-missing": BASE + LIMITS + "dynamicConfigFile=DIR/none.dynamic\n",
}
DYNAMIC = {"three.dynamic": THREE.strip(), "version.dynamic": THREE + "version=1", "key.dynamic": THREE + "tickTime=1",
           "groups.dynamic": THREE + "group.1=1:2:3"}


def write(folder):
    """Writes all cases; name → path."""
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data" / "myid").write_text("1\n")
    for name, text in DYNAMIC.items():
        (folder / name).write_text(text)
    for name, text in CASES.items():
        (folder / name).write_bytes(text.replace("DIR", str(folder)).encode("iso-8859-1"))
    return {name: folder / name for name in CASES}


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        paths = write(folder)
        text = subprocess.run(
            ["java", "-Xmx200m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", class_path(), HERE / "Configs.java",
             *paths.values()], capture_output=True, text=True, check=True).stdout
        GOLDEN.write_text(text.replace(str(folder), "DIR"))
    print(f"{GOLDEN}: {len(CASES)} files")


if __name__ == "__main__":
    main()
