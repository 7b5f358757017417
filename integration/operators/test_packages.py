"""The Debian package: what is in it, that its man pages and completions work, and its life from installation to purge in
a copy of this machine."""

import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.dont_write_bytecode = True

from integration.lib.process import free_port  # noqa: E402
from integration.lib.quenda_server import quenda_binary  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]
INSTALLED = pathlib.Path(__file__).with_name("installed")
NOT_POSSIBLE = 77


def output(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, timeout=300,
                          **options).stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The package of the program under test, and its contents unpacked."""
    folder = tmp_path_factory.mktemp("deb")
    target = quenda_binary().resolve().parents[1]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    path = output(ROOT / "packaging" / "build-deb", "--fast", "--output", folder, env=environment).splitlines()[-1]
    output("dpkg-deb", "-x", path, folder / "contents")
    return pathlib.Path(path)


@pytest.fixture(scope="module")
def contents(package):
    return package.parent / "contents"


def test_the_package_says_what_it_is_and_holds_what_it_should(package, contents):
    fields = dict(line.split(": ", 1) for line in output("dpkg-deb", "-f", package).splitlines() if ": " in line)
    assert fields["Package"] == "quenda" and fields["Section"] == "net"
    assert "adduser" in fields["Depends"] and "libc6" in fields["Depends"]
    control = output("dpkg-deb", "--info", package, "conffiles").split()
    assert control == ["/etc/quenda/zoo.cfg", "/etc/default/quenda", "/etc/logrotate.d/quenda"]
    found = {str(path.relative_to(contents)) for path in contents.rglob("*") if path.is_file()}
    for wanted in ("usr/bin/quenda", "usr/bin/zkCli.sh", "usr/bin/zkServer.sh", "usr/lib/systemd/system/quenda.service",
                   "usr/share/man/man1/quenda-serve.1.gz",
                   "usr/share/bash-completion/completions/quenda", "usr/share/zsh/vendor-completions/_quenda",
                   "usr/share/fish/vendor_completions.d/quenda.fish", "usr/share/doc/quenda/operating.md",
                   "usr/share/doc/quenda/monitoring/rules.yml", "usr/share/doc/quenda/copyright",
                   "usr/share/doc/quenda/changelog.Debian.gz"):
        assert wanted in found, sorted(found)
    assert (contents / "etc/quenda/zoo.cfg").stat().st_mode & 0o777 == 0o640
    # What is packed is the program that was tested.
    assert output(contents / "usr/bin/quenda", "--version") == output(quenda_binary(), "--version")


def test_every_command_has_a_man_page_that_renders_without_warnings(contents, tmp_path):
    pages = sorted((contents / "usr/share/man/man1").glob("*.1.gz"))
    commands = re.findall(r"^  ([a-z-]+) ", output(quenda_binary(), "--help"), re.MULTILINE)
    assert {"serve", "status", "check-config"} <= set(commands)
    names = {page.name.removesuffix(".1.gz") for page in pages}
    assert {f"quenda-{name}" for name in commands if name != "help"} <= names and "quenda" in names
    assert not [name for name in names if name.endswith(("-man", "-completions"))]
    version = output(quenda_binary(), "--version").strip()
    for page in pages:
        plain = tmp_path / page.name.removesuffix(".gz")
        plain.write_bytes(gzip.decompress(page.read_bytes()))
        done = subprocess.run(["man", "--warnings", "-l", plain], capture_output=True, text=True, check=True,
                              env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MANROFFSEQ": ""})
        assert not done.stderr, f"{page.name}: {done.stderr}"
        assert "NAME" in done.stdout and "SYNOPSIS" in done.stdout, page.name
        assert done.stdout.rstrip().splitlines()[-1].strip().startswith(f"{version} "), page.name


def test_completions_complete(contents):
    script = contents / "usr/share/bash-completion/completions/quenda"
    program = f"""
        source {script}
        COMP_WORDS=(quenda check) COMP_CWORD=1
        complete -p quenda >/dev/null
        _quenda quenda check quenda
        echo "${{COMPREPLY[@]}}"
        COMP_WORDS=(quenda check-config --j) COMP_CWORD=2 COMPREPLY=()
        _quenda quenda --j check-config
        echo "${{COMPREPLY[@]}}"
    """
    assert output("bash", "--norc", "-c", program).splitlines() == ["check-config", "--json"]
    for shell, path in (("zsh", "usr/share/zsh/vendor-completions/_quenda"),
                        ("fish", "usr/share/fish/vendor_completions.d/quenda.fish")):
        if shutil.which(shell):
            output(shell, "-n", contents / path)


def test_the_unit_is_sound(contents, tmp_path):
    unit = contents / "usr/lib/systemd/system/quenda.service"
    text = unit.read_text()
    for line in ("SuccessExitStatus=143", "User=quenda", "NoNewPrivileges=yes", "ProtectSystem=strict"):
        assert f"\n{line}\n" in text
    copy = tmp_path / "quenda.service"
    copy.write_text(text.replace("/usr/bin/quenda", str(quenda_binary())))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    exposure = output("systemd-analyze", "security", "--offline=true", "--threshold=25", copy)
    assert "Overall exposure level" in exposure


LIFE = """
    exec 2>&1
    dpkg -i /mnt/*.deb
    echo "== installed"
    getent passwd quenda | cut -d: -f6,7
    stat -c '%U:%G %a %n' /etc/quenda /etc/quenda/zoo.cfg /var/lib/quenda /var/log/quenda
    quenda check-config /etc/quenda/zoo.cfg
    sed -i 's/^#audit.enable/audit.enable/' /etc/quenda/zoo.cfg
    line="$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/quenda.service)"
    QUENDA_OPTS="--client-port PORT"
    export ZOO_LOG_DIR=/var/log/quenda
    runuser -u quenda -- sh -c "exec ${line/\\$QUENDA_OPTS/$QUENDA_OPTS}" >/tmp/server.log 2>&1 &
    server=$!
    for _ in $(seq 300); do
        ! grep -q 'listens on' /tmp/server.log || break
        kill -0 $server
        sleep 0.1
    done
    cat /tmp/server.log
    quenda status --servers 127.0.0.1:PORT
    echo "== logrotate"
    logrotate --force --state /tmp/state /etc/logrotate.d/quenda
    ls /var/log/quenda
    kill -TERM "$(pgrep -P $server || echo $server)"
    status=0; wait $server || status=$?
    echo "== ended with $status"
    stat -c '%U %n' /var/log/quenda/zookeeper_audit.log
    sed -i 's/^maxClientCnxns=.*/maxClientCnxns=7/' /etc/quenda/zoo.cfg
    dpkg --force-confold -i /mnt/*.deb
    grep maxClientCnxns /etc/quenda/zoo.cfg
    dpkg -r quenda
    echo "== removed"
    ls -d /etc/quenda/zoo.cfg /var/lib/quenda
    dpkg -P quenda
    echo "== purged"
    ls -d /var/lib/quenda /var/log/quenda /etc/quenda /usr/bin/quenda || true
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_life_from_installation_to_purge(package):
    script = LIFE.replace("PORT", str(free_port()))
    done = subprocess.run([INSTALLED, package.parent, script], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode == NOT_POSSIBLE:
        pytest.skip(f"this system makes no copies of its root: {done.stderr}")
    text = done.stdout
    assert done.returncode == 0, text + done.stderr
    assert "/var/lib/quenda:/usr/sbin/nologin" in text
    for line in ("root:quenda 770 /etc/quenda", "root:quenda 640 /etc/quenda/zoo.cfg",
                 "quenda:quenda 750 /var/lib/quenda", "quenda:quenda 750 /var/log/quenda",
                 "/etc/quenda/zoo.cfg: clean: the server starts with it, and everything counts",
                 "quenda /var/log/quenda/zookeeper_audit.log", "maxClientCnxns=7"):
        assert line in text, text
    assert "healthy: 1 of 1 voters answer" in text
    assert "== logrotate\nzookeeper_audit.log.1\n" in text, text
    assert "== ended with 0" in text or "== ended with 143" in text, text
    assert "the running server was not restarted" in text
    removed, purged = text.split("== removed")[1].split("== purged")
    assert "/etc/quenda/zoo.cfg\n/var/lib/quenda\n" in removed, "configuration and data stay"
    assert "the data in /var/lib/quenda stays" in removed
    there = [line for line in purged.splitlines() if line.startswith("/")]
    assert there == ["/var/lib/quenda"], purged
    assert not pathlib.Path("/var/lib/quenda").exists() or shutil.which("quenda") == "/usr/bin/quenda", "here nothing changed"
