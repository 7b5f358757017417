"""A story of changing members, and the configuration files that it leaves on each member: for Quenda and for a genuine
server alike."""

import contextlib
import re

from integration.lib.zkwire import eventually

CFG = {"reconfigEnabled": "true", "skipACL": "yes"}
BASE = "zoo.cfg"


def files(member):
    """Name → text of the configuration files of a member."""
    found = {}
    for path in member.folder.iterdir():
        if path.name.startswith(BASE):
            # A file that is just being written has another name in a moment.
            with contextlib.suppress(FileNotFoundError):
                found[path.name] = path.read_text()
    return found


def newest(member):
    """The dynamic file that the static one points to."""
    lines = files(member).get(BASE, "").splitlines()
    name = lines[-1].rsplit("/", 1)[-1] if lines and lines[-1].startswith("dynamicConfigFile=") else None
    return name if name in files(member) else None


def wait_for_lines(members, ids):
    def told(member):
        name = newest(member)
        text = files(member)[name] if name else ""
        return {int(number) for number in re.findall(r"^server\.(\d+)=", text, re.MULTILINE)} == ids

    eventually(lambda: all(told(member) for member in members), seconds=60, what=f"files that name {ids}")


def tell(ensemble, title, lines):
    """What every member's files say, the same on every run: ports by name, versions by their order."""
    versions = sorted({name for member in ensemble for name in files(member) if ".dynamic." in name},
                      key=lambda name: int(name.rsplit(".", 1)[-1], 16))
    substitutes = {str(ensemble.folder): "FOLDER"}
    substitutes.update({name: f"{BASE}.dynamic.V{index}" for index, name in enumerate(versions, 1)})
    for member in ensemble:
        substitutes[f":{member.quorum_port}:{member.election_port}:"] = f":Q{member.number}:E{member.number}:"
        substitutes[f":{member.port}"] = f":C{member.number}"
    lines.append(f"== {title}")
    for member in ensemble:
        for name, text in sorted(files(member).items()):
            if name == BASE:
                # A hash table orders them there, and its defaults of the harness differ.
                text = "\n".join([*sorted(text.splitlines()[:-1]), text.splitlines()[-1]])
            if name.endswith(".bak"):
                text = "as it was" if "server.1=" in text else text
            for old, new in substitutes.items():
                name, text = name.replace(old, new), text.replace(old, new)
            lines.append(f"-- member {member.number}: {name}")
            lines += text.splitlines()


def story(ensemble):
    """Runs it on three members that serve, with CFG; the lines of the golden."""
    lines = []
    wait_for_lines(ensemble, {1, 2, 3})
    tell(ensemble, "three members", lines)
    extra = ensemble.add(4)
    extra.spawn()
    with ensemble[1].connect() as conn:
        eventually(lambda: added(conn, extra), seconds=60, what="member 4 joins")
        wait_for_lines(ensemble, {1, 2, 3, 4})
        tell(ensemble, "a fourth one is added", lines)
        leader = ensemble.wait_leader().number
        gone = next(number for number in (2, 3) if number != leader)
        conn.reconfig(None, str(gone), None)
    left = [member for member in ensemble if member.number != gone]
    wait_for_lines(left, {1, 2, 3, 4} - {gone})
    return lines, gone, left


def added(conn, member):
    from integration.lib.zkwire import ZkError

    try:
        conn.reconfig(f"server.{member.number}={member.line()}", None, None)
        return True
    except ZkError:
        return False
