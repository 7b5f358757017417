"""`quenda shell` at a terminal: line editing, completion, history, colours, events, the state in the prompt."""

import re

import pytest
from integration.lib.quenda_server import QuendaServer, quenda_binary
from integration.lib.terminal import Terminal
from integration.lib.zkwire import Conn


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with QuendaServer(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def shell(server, tmp_path):
    """Starts shells; each has the prompt `[zk: SERVERS(STATE) N] `."""
    started = []

    def start(*options, env=None, servers=None, program=None, **terminal):
        home = {"HOME": str(tmp_path), "TERM": "xterm-256color", **(env or {})}
        command = [program] if program else [quenda_binary(), "shell"]
        command += ["-server", servers or server.hosts, *options]
        started.append(Terminal(command, env=home, **terminal))
        return started[-1]

    yield start
    for terminal in started:
        terminal.close()


def prompt(count, state="CONNECTED"):
    return rf"^\[zk: \S+\({state}\) {count}\]"


@pytest.fixture(scope="module")
def tree(server):
    """Some znodes whose names begin alike."""
    with Conn(server.port) as conn:
        for path in ("/fruit", "/fruit/apple", "/fruit/apricot", "/fruit/two words", "/fruit/apple/seed"):
            conn.create(path)


@pytest.mark.usefixtures("tree")
def test_commands_and_paths_are_completed(shell):
    terminal = shell()
    terminal.wait_for(prompt(0))
    terminal.keys("getAc", "Tab", "/fr", "Tab", "/ap", "Tab")
    terminal.wait_for(prompt(0) + r" getAcl /fruit/ap$")
    terminal.keys("Tab")
    terminal.wait_for(r"^apple +apricot$")
    terminal.keys("r", "Tab", "Enter")
    terminal.wait_for(prompt(0) + r" getAcl /fruit/apricot\n'world,'anyone\n: cdrwa\n" + prompt(1)[1:])
    terminal.keys("ls /fruit/t", "Tab", "Enter")
    terminal.wait_for(prompt(1) + r' ls "/fruit/two words"\n\[\]\n')
    terminal.keys("get -", "Tab", "Tab")
    terminal.wait_for(r"^-s +-w +-b +-x$")
    terminal.keys("C-c", "help setq", "Tab", "Enter")
    terminal.wait_for(r"^setquota -n\|-b\|-N\|-B val path$")


def test_history_outlives_the_shell_and_keeps_no_secrets(shell, tmp_path):
    first = shell()
    first.wait_for(prompt(0))
    first.line("create /remembered x")
    first.wait_for("^Created /remembered$")
    first.line("addauth digest user:password")
    first.wait_for(prompt(2))
    first.keys("Up")
    first.wait_for(prompt(2) + " create /remembered x$")
    first.keys("C-c")
    first.wait_for(prompt(2) + "$")
    first.keys("C-d")
    first.wait_for("^exit code 0$")
    second = shell()
    second.wait_for(prompt(0))
    second.keys("C-r", "rememb")
    second.wait_for("create /remembered x$")
    second.keys("Enter")
    second.wait_for("^Node already exists: /remembered$")
    second.line("history")
    second.wait_for("^0 - create /remembered x\n1 - history$")
    second.line("redo 0")
    second.wait_for("redo 0\n^Node already exists: /remembered\n" + prompt(3)[1:] + "$")
    second.keys("C-d")
    second.wait_for("^exit code 1$")
    kept = tmp_path / ".local" / "state" / "quenda" / "shell_history"
    assert "password" not in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0


def test_colours_and_how_to_have_none(shell):
    coloured = shell()
    screen = coloured.wait_for(r"CONNECTED\) 0\]", colours=True)
    assert "\x1b[32m[zk: " in screen, screen
    plain = shell(env={"NO_COLOR": "1"})
    screen = plain.wait_for(prompt(0), colours=True)
    plain.line("ls /")
    screen = plain.wait_for(r"^\[.*zookeeper", colours=True)
    assert "\x1b[3" not in screen, screen
    always = shell("--color", "never")
    screen = always.wait_for(prompt(0), colours=True)
    assert "\x1b[3" not in screen, screen


def test_events_are_printed_above_the_line_that_is_typed(shell, server):
    with Conn(server.port) as other:
        other.create("/watched", b"old")
        terminal = shell(width=70)
        terminal.wait_for(prompt(0))
        terminal.line("get -w /watched")
        terminal.wait_for("^old$")
        # So long that it goes on in a second row, with the cursor in the middle of it.
        terminal.keys("create /long-" + "x" * 50 + " tail", "Left", "Left", "Left", "Left", "Left")
        terminal.wait_for("tail$")
        other.set("/watched", b"new")
        terminal.wait_for(r"^WATCHER::\nWatchedEvent state:SyncConnected type:NodeDataChanged path:/watched")
        terminal.keys("y")
        screen = terminal.wait_for(prompt(1) + " create /long-x{50}y? ?y? ?tail$")
        assert screen.count("create /long") == 1, screen
        terminal.keys("Enter")
        terminal.wait_for("^Created /long-")


def test_what_is_in_znodes_does_not_steer_the_terminal(shell, server):
    with Conn(server.port) as other:
        other.create("/evil", b"\x1b]0;pwned\x07\x1b[2J\rend")
    terminal = shell()
    terminal.wait_for(prompt(0))
    terminal.line("get /evil")
    terminal.wait_for(prompt(0) + r" get /evil\n\\u001b\]0;pwned\\u0007\\u001b\[2J\\u000dend$")
    assert "pwned" not in terminal.tmux("display-message", "-p", "#{pane_title}")


def test_the_prompt_tells_when_the_server_goes_and_comes(shell, tmp_path):
    with QuendaServer(tmp_path / "fleeting") as fleeting:
        terminal = shell(servers=fleeting.hosts)
        terminal.wait_for(prompt(0))
        terminal.line("create -e /mine x")
        terminal.wait_for("^Created /mine$")
        terminal.keys("get /mi")
        terminal.wait_for(prompt(1) + " get /mi$")
        fleeting.kill9()
        # Without a key being pressed.
        terminal.wait_for("WatchedEvent state:Disconnected.*\n" + prompt(1, "CONNECTING")[1:] + " ?get /mi$")
        terminal.keys("C-c")
        terminal.line("get /mine")
        terminal.wait_for("^KeeperErrorCode = ConnectionLoss for /mine\n.*Check the servers")
        fleeting.start()
        # Once when it started, and now.
        terminal.wait_for(r"WatchedEvent state:Disconnected(.*\n)*.*state:SyncConnected(.*\n)*" + prompt(2)[1:])
        terminal.line("get /mine")
        terminal.wait_for(prompt(2) + " *get /mine\nx\n")  # the session has lived on
        terminal.line("close")
        terminal.wait_for("WatchedEvent state:Closed.*\n" + prompt(4, "CLOSED")[1:])
        terminal.line("ls /")
        terminal.wait_for("^Not connected$")
        terminal.line("connect")
        terminal.wait_for(prompt(6))
        terminal.line("get /mine")
        terminal.wait_for("^Node does not exist: /mine$")


def test_ctrl_c_ends_a_line_or_a_command_and_never_the_shell(shell, tmp_path):
    with QuendaServer(tmp_path / "fleeting") as fleeting:
        terminal = shell("--quiet", servers=fleeting.hosts)
        terminal.wait_for(prompt(0))
        terminal.keys("ls /zook", "C-c")
        terminal.line("ls /")
        terminal.wait_for(prompt(0) + r" ls /\n\[zookeeper\]\n")
        fleeting.process.send_signal(19)  # SIGSTOP: it answers nothing more
        try:
            terminal.line("get /zookeeper/config")
            terminal.wait_for(prompt(1) + " get /zookeeper/config$")
            terminal.keys("C-c")
            terminal.wait_for(r"^(\^C)?Interrupted\n" + prompt(2)[1:])
        finally:
            fleeting.process.send_signal(18)
        terminal.line("ls /")
        terminal.wait_for(prompt(2) + r" ls /\n\[zookeeper\]\n")
        terminal.line("quit")
        terminal.wait_for("^exit code 0$")


def test_pasted_text_may_hold_several_lines(shell, server):
    terminal = shell()
    terminal.wait_for(prompt(0))
    terminal.keys("create /pasted x\rget /pasted\r")
    terminal.wait_for(r"^Created /pasted\n(.*\n)*x\n" + prompt(2)[1:])
    with Conn(server.port) as other:
        assert other.exists("/pasted")


def test_under_zkclis_name_it_greets_as_zkcli(shell, tmp_path):
    link = tmp_path / "zkCli.sh"
    link.symlink_to(quenda_binary().resolve())
    terminal = shell(program=link)
    screen = terminal.wait_for(prompt(0))
    assert re.search(r"^Connecting to \S+\n", screen), screen
    assert "Welcome to ZooKeeper!\nJLine support is enabled\n" in screen, screen
    terminal.line("tree /")
    terminal.wait_for("^Command not found: Command not found tree$")
    terminal.line("quit")
    terminal.wait_for("^exit code 127$")
