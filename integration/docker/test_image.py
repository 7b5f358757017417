"""One member: what the image makes of variables, mounts, users and commands."""

import textwrap

import pytest
from container import docker

DEFAULTS = """\
    dataDir=/data
    dataLogDir=/datalog
    tickTime=2000
    initLimit=5
    syncLimit=2
    autopurge.snapRetainCount=3
    autopurge.purgeInterval=0
    maxClientCnxns=60
    standaloneEnabled=true
    admin.enableServer=true
    server.1=localhost:2888:3888;2181"""


def text(lines):
    return textwrap.dedent(lines)


def options(**variables):
    return [part for name, value in variables.items() for part in ("--env", f"{name}={value}")]


def prepare(image, volume, script):
    """Runs a shell script as root on a volume, before any member has it."""
    alone = ("--rm", "--network", "none", "--entrypoint", "sh")
    docker("run", *alone, "--volume", f"{volume}:/data", image, "-c", script)


def test_with_nothing_set_it_stands_alone_as_an_unprivileged_process(run, port, client):
    member = run(port=port).wait_healthy()
    assert member.read("/conf/zoo.cfg") == text(DEFAULTS)
    assert member.read("/data/myid") == "1"
    assert member.mode() == "standalone"
    process = dict(line.split(":\t", 1) for line in member.read("/proc/1/status").splitlines() if ":\t" in line)
    assert process["Name"] == "quenda", "the server is process 1, so that signals reach it"
    assert process["Uid"].split() == ["1000"] * 4
    assert process["Gid"].split() == ["1000"] * 4
    assert int(process["CapEff"], 16) == 0
    assert process["NoNewPrivs"] == "1"

    zk = client(port)
    zk.create("/kept", b"before the stop")
    session = zk.client_id
    assert member.stop() < 10, "SIGTERM reaches the server"
    member.start().wait_healthy()
    assert zk.retry(zk.get, "/kept")[0] == b"before the stop"
    assert zk.client_id == session, "the session outlives the restart"


def test_every_variable_finds_its_key(run):
    variables = options(
        ZOO_TICK_TIME=1000,
        ZOO_INIT_LIMIT=7,
        ZOO_SYNC_LIMIT=4,
        ZOO_MAX_CLIENT_CNXNS=11,
        ZOO_AUTOPURGE_PURGEINTERVAL=2,
        ZOO_AUTOPURGE_SNAPRETAINCOUNT=5,
        ZOO_STANDALONE_ENABLED="true",
        ZOO_ADMINSERVER_ENABLED="false",
        ZOO_4LW_COMMANDS_WHITELIST="*",
        ZOO_MY_ID=7,
        ZOO_DATA_DIR="/srv/state",
        ZOO_DATA_LOG_DIR="/srv/log",
        ZOO_CONF_DIR="/conf",
        ZOO_SERVERS="server.7=localhost:2888:3888;2199",
        ZOO_CFG_EXTRA="maxSessionTimeout=5000\nmaxCnxns=9",
    )
    member = run(*variables).wait_healthy()
    assert member.read("/conf/zoo.cfg") == text("""\
        dataDir=/srv/state
        dataLogDir=/srv/log
        tickTime=1000
        initLimit=7
        syncLimit=4
        autopurge.snapRetainCount=5
        autopurge.purgeInterval=2
        maxClientCnxns=11
        standaloneEnabled=true
        admin.enableServer=false
        server.7=localhost:2888:3888;2199
        4lw.commands.whitelist=*
        maxSessionTimeout=5000
        maxCnxns=9""")
    assert member.read("/srv/state/myid") == "7"
    # What probes in the field look like.
    assert member.execute("sh", "-c", "echo ruok | nc localhost 2199") == "imok"
    conf = member.execute("sh", "-c", "echo conf | nc localhost 2199").splitlines()
    assert {"clientPort=2199", "maxClientCnxns=11", "maxSessionTimeout=5000"} <= set(conf)


def test_one_id_alone_is_enough(run):
    member = run(*options(ZOO_MY_ID=5)).wait_healthy()
    assert member.read("/conf/zoo.cfg").endswith("\nserver.5=localhost:2888:3888;2181")


def test_java_flags_reach_the_server(run, port, client):
    run(*options(JVMFLAGS="-Xmx1g -Djute.maxbuffer=3000000"), port=port).wait_healthy()
    client(port).create("/large", b"x" * 2_000_000)


def test_a_mounted_configuration_wins(run, image, tmp_path, volume):
    prepare(image, volume, "echo 9 >/data/myid")
    mounted = tmp_path / "zoo.cfg"
    mounted.write_text("dataDir=/data\ndataLogDir=/datalog\nclientPort : 2190\n")
    mounts = ("--volume", f"{mounted}:/conf/zoo.cfg:ro", "--volume", f"{volume}:/data")
    member = run(*mounts, *options(ZOO_MY_ID=3, ZOO_TICK_TIME=1234)).wait_healthy()
    assert member.read("/conf/zoo.cfg") + "\n" == mounted.read_text()
    assert member.read("/data/myid") == "9"
    assert "/data/myid says 9, so ZOO_MY_ID=3 has no effect" in member.logs()
    assert "Client port found: 2190." in member.execute("zkServer.sh", "status")


def test_a_volume_of_roots_is_made_the_users(run, image, volume):
    prepare(image, volume, "mkdir /data/sub && touch /data/sub/file && chown -R 0:0 /data && chmod 700 /data")
    member = run("--volume", f"{volume}:/data").wait_healthy()
    owners = member.execute("stat", "--format", "%u:%g", "/data", "/data/sub", "/data/sub/file", "/data/myid")
    assert owners.split() == ["1000:1000"] * 4


def test_without_root_without_capabilities_on_a_read_only_root(run, volume, log_volume):
    hardened = (
        "--user",
        "1000:1000",
        "--read-only",
        "--cap-drop",
        "ALL",
        "--security-opt",
        "no-new-privileges",
        "--volume",
        f"{volume}:/data",
        "--volume",
        f"{log_volume}:/datalog",
    )
    member = run(*hardened, *options(ZOO_TICK_TIME=1500)).wait_healthy()
    assert "tickTime=1500" in member.read("/data/zoo.cfg").splitlines()
    member.stop()
    other = run(*hardened, *options(ZOO_TICK_TIME=2500)).wait_healthy()
    assert "tickTime=2500" in other.read("/data/zoo.cfg").splitlines(), "variables of another container count at once"


def test_a_lost_log_volume_is_noticed(run, volume):
    """Who keeps /data alone loses acknowledged writes with the container; that must not go unseen."""
    run("--volume", f"{volume}:/data").wait_healthy().stop()
    other = run("--volume", f"{volume}:/data")
    assert other.wait_exit() == 3
    assert "the log directory of the store in /data is not /datalog" in other.logs()


def test_any_other_user_on_directories_of_its_own(run, tmp_path):
    data, log = tmp_path / "data", tmp_path / "log"
    data.mkdir(mode=0o777)
    log.mkdir(mode=0o777)
    for folder in (tmp_path, data, log):
        folder.chmod(0o777)
    run("--user", "4321:4321", "--volume", f"{data}:/data", "--volume", f"{log}:/datalog").wait_healthy()
    assert (data / "myid").stat().st_uid == 4321


def test_a_user_that_may_not_write_is_told_so(run):
    member = run("--user", "4321:4321")
    assert member.wait_exit() == 3
    assert "user 4321 cannot write to /data" in member.logs()


def test_a_wrong_configuration_ends_it_with_2(run):
    member = run(*options(ZOO_TICK_TIME="often"))
    assert member.wait_exit() == 2
    assert "Invalid config, exiting abnormally" in member.logs()


@pytest.mark.parametrize("command", [("quenda", "serve"), ("zkServer.sh", "start-foreground"), ("zkServer.sh", "start"), ("--log", "debug")])
def test_ways_to_start_it(run, command):
    assert run(command=command).wait_healthy().mode() == "standalone"


def test_flags_overrule_the_file(run):
    member = run(command=("--max-client-cnxns", "3")).wait_healthy()
    assert "maxClientCnxns=3" in member.execute("sh", "-c", "echo conf | nc localhost 2181").splitlines()


def test_other_commands_are_run_as_they_are(image):
    def output(*command):
        return docker("run", "--rm", "--network", "none", image, *command)

    assert output("quenda", "--version").startswith("quenda ")
    assert output("zkServer.sh", "version").startswith("quenda ")
    assert output("sh", "-c", "id -u; ls /data") == "0"


def test_status_fails_when_nothing_serves(run):
    idle = run(command=("sleep", "60"))
    idle.execute("sh", "-c", "echo dataDir=/data >/conf/zoo.cfg; echo clientPort=2181 >>/conf/zoo.cfg")
    report = docker("exec", idle.name, "sh", "-c", "zkServer.sh status; echo ended with $?")
    assert report.splitlines()[-2:] == [
        "Error contacting service. It is probably not running.",
        "ended with 1",
    ]


@pytest.mark.parametrize(
    ("configuration", "found"),
    [
        ("clientPort=2191", "2191 localhost"),
        ("  clientPort : 2191  \nclientPort 2192\nclientPortAddress=127.0.0.2", "2192 127.0.0.2"),
        ("server.1=a:1:2;2191\nserver.3=b:1:2:participant;2192", "2192 localhost"),
        ("server.3=b:1:2;0.0.0.0:2192;2281", "2192 localhost"),
        ("server.3=b:1:2;[::1]:2192", "2192 ::1"),
        ("server.33=b:1:2;2191\ndynamicConfigFile=/tmp/dynamic", "2193 127.0.0.3"),
    ],
)
def test_status_finds_the_client_port(run, configuration, found):
    idle = run(command=("sleep", "60"))
    script = """
        echo 3 >/data/myid
        echo 'server.3=b:1:2;127.0.0.3:2193' >/tmp/dynamic
        printf 'dataDir=/data\n%s\n' "$1" >/conf/zoo.cfg
        zkServer.sh status | sed -n 's/Client port found: \\(.*\\). Client address: \\(.*\\). Client SSL.*/\\1 \\2/p'
    """
    assert idle.execute("sh", "-c", script, "sh", configuration) == found


def test_ports_and_volumes_of_the_zookeeper_image(image):
    template = "{{range $key, $_ := .Config.FIELD}}{{$key}} {{end}}"

    def config(field):
        return docker("image", "inspect", "--format", template.replace("FIELD", field), image)

    assert config("ExposedPorts").split() == ["2181/tcp", "2888/tcp", "3888/tcp", "8080/tcp"]
    assert config("Volumes").split() == ["/data", "/datalog", "/logs"]
