"""What a client library does when members come and go, for raw connections."""

import json

from integration.lib.target import IS_QUENDA
from integration.lib.zkwire import Closed, Refused, eventually, four_letter


def numbers(ensemble):
    return [member.number for member in ensemble]


def resumed(ensemble, conn, members=None, seconds=20.0):
    """Goes on with the session of `conn` at whichever member takes it."""

    def attempt():
        for member in members or ensemble:
            try:
                return member.take_over(conn)
            except Refused:
                raise AssertionError(f"session {conn.session:#x} is gone") from None
            except (Closed, OSError):
                continue
        return None

    return eventually(attempt, seconds, f"session {conn.session:#x} resumes")


def written(members, path, data, seconds=20.0):
    """The Stat of one acknowledged set through whichever member takes it."""

    def attempt():
        for member in members:
            try:
                with member.connect(wait=5.0) as conn:
                    return conn.set(path, data)
            except (Closed, Refused, OSError):
                continue
        return None

    return eventually(attempt, seconds, f"a write to {path}")


def wait_until_voting(ensemble, wanted):
    """Until the leader says that just these vote: a member that was empty does when it has been fed. A ZooKeeper
    that takes writes votes."""

    def voters():
        leader = ensemble.leader()
        return json.loads(four_letter(leader.port, "qsta", host=leader.host))["membership"]["voters"]

    if IS_QUENDA:
        eventually(lambda: voters() == wanted, 30, f"voters {wanted}")
