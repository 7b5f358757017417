"""ZooKeeper's zkServer.sh: the words, lines, files and exit codes of the script in packaging/, beside those of Debian's
genuine one.

    integration/operators/run -k zkserver
"""

import concurrent.futures
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from integration.lib.certificates import Authority
from integration.lib.process import free_port
from integration.lib.quenda_server import QuendaServer, quenda_binary
from integration.lib.zkwire import eventually, four_letter
from integration.zookeeper.genuine import class_path

ROOT = pathlib.Path(__file__).parents[2]
SCRIPT = ROOT / "packaging" / "zkServer.sh"
GENUINE = pathlib.Path("/usr/share/zookeeper/bin/zkServer.sh")
# What Debian's copy of ZooKeeper's zkEnv.sh would do for a folder of one's own.
ENVIRONMENT = """
if [ "$1" = --config ]; then shift; ZOOCFGDIR=$1; shift; fi
ZOOCFG="$ZOOCFGDIR/${ZOOCFG:-zoo.cfg}"
JAVA=java
CLASSPATH="$GENUINE_CLASSES"
SERVER_JVMFLAGS="-Xmx200m $SERVER_JVMFLAGS"
"""


def run(script, *args, **environment):
    path = f"{quenda_binary().parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(["bash", script, *map(str, args)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PATH": path, "USER": "ops", "HOSTNAME": "here", **environment}, check=False)


def ours(*args, **environment):
    return run(SCRIPT, *args, **environment)


def told(done):
    return done.returncode, done.stdout.splitlines()


class Place:
    """A folder with a configuration, and what is started there."""

    def __init__(self, folder, script=SCRIPT, **environment):
        self.folder, self.script = folder, script
        self.environment = {"ZOO_LOG_DIR": str(folder / "logs"), **environment}
        self.port = free_port()
        folder.mkdir(exist_ok=True)
        self.write()

    def write(self, more="", name="zoo.cfg"):
        text = (f"  dataDir = {self.folder}/data  \nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
                f"admin.enableServer=false\ntickTime=2000\n{more}")
        (self.folder / name).write_text(text)

    def run(self, *args, **environment):
        return run(self.script, "--config", self.folder, *args, **{**self.environment, **environment})

    def say(self, *args, **environment):
        """What a word answers, the process' id left out."""
        done = self.run(*args, **environment)
        lines = [line for line in done.stdout.splitlines() if not line.endswith("/bin/java")]
        text = "\n".join(lines).replace(str(self.folder), "DIR").replace(str(self.port), "PORT")
        return args, done.returncode, re.sub(r"process \d+", "process PID", text)

    @property
    def pid_file(self):
        return self.folder / "data" / "zookeeper_server.pid"

    @property
    def pid(self):
        return int(self.pid_file.read_text())

    def serves(self):
        with contextlib.suppress(OSError):
            return "Mode: standalone" in four_letter(self.port, "srvr")
        return False

    def end(self):
        with contextlib.suppress(OSError, ValueError):
            os.kill(self.pid, signal.SIGKILL)


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path / "place")
    yield made
    made.end()


def story(place, **broken):
    """A server's day: what each word says, and which files there are. With `broken` in its environment it ends at once."""
    lines = [place.say("stop"), place.say("status")]
    lines.append(place.say("start"))
    eventually(place.serves, seconds=30, what="a server that serves")
    assert place.pid_file.read_text() == str(place.pid), "digits alone"
    logs = sorted(path.name for path in (place.folder / "logs").iterdir() if path.suffix == ".out")
    lines += [("logs", logs), place.say("start"), place.say("status")]
    first = place.pid
    lines.append(place.say("stop"))
    eventually(lambda: not pathlib.Path(f"/proc/{first}").exists(), seconds=30, what="the end of the server")
    lines += [("pid file", place.pid_file.exists()), place.say("stop")]
    place.pid_file.write_text(str(first))  # as a machine that went down leaves it
    lines.append(place.say("start"))
    eventually(place.serves, seconds=30, what="a server that serves")
    lines.append(place.say("stop"))
    place.write("clientPort=x\n")
    lines.append(place.say("start", **broken))
    return lines


def test_the_words_are_those_of_the_genuine_script(tmp_path):
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    shutil.copy(GENUINE, bin_folder)
    (bin_folder / "zkEnv.sh").write_text(ENVIRONMENT)
    genuine = Place(tmp_path / "genuine", bin_folder / "zkServer.sh", GENUINE_CLASSES=class_path())
    mine = Place(tmp_path / "mine")
    try:
        # A Java machine may take more than the script's second to look at its configuration, but not at its options.
        assert story(mine) == story(genuine, SERVER_JVMFLAGS="-XX:+ThereIsNoSuchOption")
    finally:
        genuine.end()
        mine.end()


def test_restart_waits_for_the_end_and_keeps_what_was_written(place):
    assert place.say("start")[1:] == (0, "Starting zookeeper ... STARTED")
    eventually(place.serves, what="a server that serves")
    first = place.pid
    assert place.say("restart")[1:] == (0, "Stopping zookeeper ... STOPPED\nStarting zookeeper ... STARTED")
    assert place.pid != first
    eventually(lambda: not pathlib.Path(f"/proc/{first}").exists(), what="the end of the first server")
    eventually(place.serves, what="a server that serves")
    assert place.say("stop")[1:] == (0, "Stopping zookeeper ... STOPPED")


def test_files_and_flags_can_be_chosen(place, tmp_path):
    place.write(name="other.cfg")
    elsewhere = tmp_path / "run" / "the.pid"
    chosen = {"ZOOPIDFILE": str(elsewhere), "ZOOCFG": "missing.cfg"}
    assert place.run("start", "other.cfg", "--max-client-cnxns", "3", **chosen).returncode == 0
    try:
        eventually(place.serves, what="a server that serves")
        assert "maxClientCnxns=3" in four_letter(place.port, "conf") and not place.pid_file.exists()
    finally:
        assert place.run("stop", place.folder / "other.cfg", **chosen).returncode == 0
    assert not elsewhere.exists()
    done = place.run("print-cmd", SERVER_JVMFLAGS="-Xmx1g")
    log = f"{place.folder}/logs/zookeeper-ops-server-here.out"
    assert done.stdout == f'"{quenda_binary()}" "serve" "--config" "{place.folder}/zoo.cfg" > "{log}" 2>&1 < /dev/null\n'
    assert done.stderr == f"Using config: {place.folder}/zoo.cfg\n"


def test_a_file_beside_the_configuration_is_sourced(place):
    (place.folder / "java.env").write_text('SERVER_JVMFLAGS="-Xmx1g -DmaxCnxns=77 -Dzookeeper.maxCnxns=77"\n')
    assert place.run("start").returncode == 0
    eventually(place.serves, what="a server that serves")
    page = four_letter(place.port, "envi")
    assert page
    environment = pathlib.Path(f"/proc/{place.pid}/environ").read_bytes().split(b"\0")
    assert b"SERVER_JVMFLAGS=-Xmx1g -DmaxCnxns=77 -Dzookeeper.maxCnxns=77" in environment
    assert f"ZOO_LOG_DIR={place.folder}/logs".encode() in environment
    assert place.run("stop").returncode == 0


def test_the_id_of_another_process_is_no_server(place):
    place.pid_file.parent.mkdir()
    with subprocess.Popen(["sleep", "60"]) as other:
        place.pid_file.write_text(str(other.pid))
        assert place.say("stop")[1:] == (0, "Stopping zookeeper ... STOPPED")
        assert other.poll() is None
        place.pid_file.write_text(str(other.pid))
        assert place.say("start")[1:] == (0, "Starting zookeeper ... STARTED")
        assert place.pid != other.pid
        place.run("stop")
        # These would be the script's own group, and every process.
        for text in ("0", "-1", "", "x"):
            place.pid_file.write_text(text)
            assert place.say("stop")[1:] == (0, "Stopping zookeeper ... STOPPED")
        assert other.poll() is None
        other.kill()


def test_of_two_starts_at_once_one_is_told_so(place):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: place.say("start")[1:], range(2)))
    assert (0, "Starting zookeeper ... STARTED") in done, done
    done.remove((0, "Starting zookeeper ... STARTED"))
    # The second one may come when the first has written its PID file.
    said = ("another start is under way.", "already running as process PID.")
    assert done in [[(1, f"Starting zookeeper ... {text}")] for text in said]
    eventually(place.serves, what="a server that serves")
    assert pathlib.Path(f"/proc/{place.pid}/comm").read_text().strip() == "quenda"
    assert place.say("stop")[1:] == (0, "Stopping zookeeper ... STOPPED")
    assert not place.serves()


def test_another_command_of_the_program_is_no_server(place):
    place.pid_file.parent.mkdir()
    words = [quenda_binary(), "shell", "-server", "127.0.0.1:1"]
    silent = {name: subprocess.DEVNULL for name in ("stdout", "stderr")}
    with subprocess.Popen(words, stdin=subprocess.PIPE, **silent) as shell:
        place.pid_file.write_text(str(shell.pid))
        assert place.say("stop")[1:] == (0, "Stopping zookeeper ... STOPPED")
        assert shell.poll() is None
        shell.kill()


def test_a_server_that_has_ended_and_that_nobody_waits_for_does_not_run(place):
    place.pid_file.parent.mkdir()
    ended = subprocess.Popen([quenda_binary(), "serve", "--config", place.folder / "none"], stderr=subprocess.DEVNULL)
    status = pathlib.Path(f"/proc/{ended.pid}/status")
    eventually(lambda: "State:\tZ" in status.read_text(), what="an end that is not waited for")
    place.pid_file.write_text(str(ended.pid))
    assert place.say("stop")[1:] == (0, "Stopping zookeeper ... STOPPED")
    place.pid_file.write_text(str(ended.pid))
    assert place.say("start")[1:] == (0, "Starting zookeeper ... STARTED")
    assert place.say("stop")[1:] == (0, "Stopping zookeeper ... STOPPED")
    ended.wait()


def test_a_value_may_go_on_in_the_next_line(place):
    place.write(f"dataDir={place.folder}/\\\n    split\n# no comment does \\\n")
    assert place.say("start")[1:] == (0, "Starting zookeeper ... STARTED")
    assert (place.folder / "split" / "zookeeper_server.pid").exists()
    assert place.say("stop")[1:] == (0, "Stopping zookeeper ... STOPPED")


def test_a_start_without_a_file_says_why(place):
    del place.environment["ZOO_LOG_DIR"]
    done = place.run("start", place.folder / "none.cfg")
    assert (done.returncode, done.stdout) == (1, "Starting zookeeper ... FAILED TO START\n")
    assert f"{place.folder}/none.cfg: No such file or directory" in done.stderr


def test_without_a_place_for_logs_they_lie_beside_the_data(tmp_path):
    folder = tmp_path / "with blanks"
    place = Place(folder)
    del place.environment["ZOO_LOG_DIR"]
    try:
        assert place.say("start")[1:] == (0, "Starting zookeeper ... STARTED")
        eventually(place.serves, what="a server that serves")
        assert (folder / "data" / "zookeeper-ops-server-here.out").read_text()
        assert place.say("stop")[1:] == (0, "Stopping zookeeper ... STOPPED")
    finally:
        place.end()


def test_in_the_foreground_the_server_takes_the_place_of_the_script(place):
    path = f"{quenda_binary().parent}{os.pathsep}{os.environ['PATH']}"
    words = ["bash", SCRIPT, "--config", place.folder, "start-foreground"]
    environment = {**os.environ, **place.environment, "PATH": path}
    with subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        eventually(place.serves, what="a server that serves")
        assert pathlib.Path(f"/proc/{process.pid}/comm").read_text().strip() == "quenda"
        process.terminate()
        assert process.wait(30) == 0
    place.write("clientPort=x\n")
    for noexec in ("", "yes"):
        done = place.run("start-foreground", ZOO_NOEXEC=noexec)
        assert done.returncode == 2 and done.stderr.endswith("Invalid config, exiting abnormally\n")
    done = place.run("start")
    assert done.returncode == 1 and "clientPort: x is not a port" in done.stderr and not place.pid_file.exists()


def test_a_volume_that_is_not_mounted_stops_the_start(place):
    done = place.run("start", ZOO_DATADIR_AUTOCREATE_DISABLE="1")
    assert told(done) == (1, [f"ZooKeeper data directory is missing at {place.folder}/data fix the path or run initialize"])
    assert not (place.folder / "data").exists()
    (place.folder / "data").mkdir()
    assert place.say("start", ZOO_DATADIR_AUTOCREATE_DISABLE="1")[1:] == (0, "Starting zookeeper ... STARTED")
    assert place.run("stop").returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a server as another user")
def test_what_root_starts_belongs_to_the_owner_of_the_data(place):
    data = place.folder / "data"
    data.mkdir()
    for folder in (place.folder, data):
        os.chown(folder, 65534, 65534)
    for folder in [place.folder, *place.folder.parents][:4]:
        folder.chmod(folder.stat().st_mode | 0o055)
    done = place.run("start")
    assert done.stdout == "Starting zookeeper ... STARTED\n", done.stderr
    assert f"Starting as the user nobody, who owns {data}" in done.stderr
    eventually(place.serves, what="a server that serves")
    status = pathlib.Path(f"/proc/{place.pid}/status").read_text()
    assert re.search(r"^Uid:\s65534\s65534", status, re.MULTILINE)
    assert {path.stat().st_uid for path in data.iterdir() if path != place.pid_file} == {65534}
    assert place.run("stop").returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_who_may_not_stop_the_server_is_told_so(place):
    assert place.say("start")[1:] == (0, "Starting zookeeper ... STARTED")
    eventually(place.serves, what="a server that serves")
    script = shutil.copy(SCRIPT, place.folder)
    for folder in [place.folder, *place.folder.parents][:4]:
        folder.chmod(folder.stat().st_mode | 0o055)
    # Who may write there could take its file away.
    place.pid_file.parent.chmod(0o777)
    words = ["bash", script, "--config", place.folder, "stop"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=place.folder,
                          user=65534, group=65534, extra_groups=[])
    said = f"Stopping zookeeper ... NOT STOPPED: process {place.pid} is another user's."
    assert told(done) == (1, [said]), done.stderr
    assert place.serves()
    assert place.say("stop")[1:] == (0, "Stopping zookeeper ... STOPPED")


def test_what_is_no_word_says_what_is(place):
    done = place.run("begin")
    assert done.returncode == 1 and "{start|start-foreground|stop|version|restart|status|print-cmd}" in done.stderr
    assert place.run("version").stdout.startswith("quenda ")


def test_status_finds_the_port_where_zookeepers_script_looks_for_it(tmp_path):
    with QuendaServer(tmp_path) as server:
        found = f"Client port found: {server.port}. Client address: 127.0.0.1. Client SSL: false."
        done = ours("--config", tmp_path, "status")
        assert told(done) == (0, [found, "Mode: standalone"])
        assert done.stderr == f"Using config: {tmp_path}/zoo.cfg\n"
        # In the own line, and in the dynamic file.
        data = f"dataDir={tmp_path}/data\n"
        line = f"server.3=h:1:2;127.0.0.1:{server.port}\n"
        (tmp_path / "data" / "myid").write_text("3\n")
        (tmp_path / "line.cfg").write_text(data + line)
        assert told(ours("status", tmp_path / "line.cfg")) == (0, [found, "Mode: standalone"])
        (tmp_path / "dynamic.cfg").write_text(f"{data}dynamicConfigFile={tmp_path}/members\n")
        (tmp_path / "members").write_text(line.strip())
        looked = "Client port not found in static config file. Looking in dynamic config file."
        assert told(ours("status", tmp_path / "dynamic.cfg")) == (0, [looked, found, "Mode: standalone"])
    assert told(ours("--config", tmp_path, "status"))[1][-1] == (
        "Error contacting service. It is probably not running.")
    (tmp_path / "nothing.cfg").write_text(data)
    assert told(ours("status", tmp_path / "nothing.cfg")) == (1, [
        looked, "Client port not found. Looking for secureClientPort in the static config.",
        "Unable to find either secure or unsecure client port in any configs. Terminating."])
    (tmp_path / "data" / "myid").unlink()
    assert told(ours("status", tmp_path / "nothing.cfg")) == (1, [
        "myid could not be determined, will not able to locate clientPort in the server configs."])


def test_status_asks_a_member_that_speaks_tls_alone(tmp_path):
    authority = Authority(tmp_path / "ca")
    own, client = authority.issue("server"), authority.issue("client")
    cfg = {"clientPort": None, "clientPortAddress": None, "secureClientPort": str(free_port()),
           "ssl.keyStore.location": str(own), "ssl.trustStore.location": str(authority.certificate)}
    server = QuendaServer(tmp_path, cfg, port=1)
    server.data_dir.mkdir(exist_ok=True)
    server.spawn()
    try:
        asked = f"Client port found: {cfg['secureClientPort']}. Client address: localhost. Client SSL: true."

        def mode(**environment):
            code, lines = told(ours("--config", tmp_path, "status", **environment))
            return code == 0 and lines[-2:] == [asked, "Mode: standalone"]

        eventually(mode, seconds=30, what="the mode, by the server's own certificate")
        flags = (f"-Dzookeeper.client.secure=true -Dzookeeper.ssl.keyStore.location={client} "
                 f"-Dzookeeper.ssl.trustStore.location={authority.certificate}")
        assert mode(CLIENT_JVMFLAGS=flags)
    finally:
        server.kill9()
