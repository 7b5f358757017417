"""What a client library does when members come and go, for raw connections."""

from integration.lib.zkwire import Closed, Refused, eventually


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
