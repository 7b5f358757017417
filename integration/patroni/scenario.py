"""What Patroni promises, step by step, while the service that it keeps its state in is disturbed."""

import json
import time

import psycopg

from integration.lib.program import wait_until
from integration.lib.scenario import Scenario, step
from integration.patroni.cluster import HOME, LONG, RETRY_TIMEOUT, SCOPE
from integration.patroni.security import IDENTITY


class PatroniScenario(Scenario):
    def __init__(self, stage, cluster, writer):
        self.stage, self.cluster, self.writer = stage, cluster, writer

    def node(self, name):
        """Data and Stat of a node of the cluster; None when there is none."""
        def look(conn):
            return conn.get(f"{HOME}/{name}") if conn.exists(f"{HOME}/{name}") else None
        return self.stage.look(look)

    def lease(self):
        """What changes as soon as anybody else leads, or as soon as the same one leads anew."""
        data, stat = self.node("leader")
        primary = next(member for member in self.cluster if member.name == data.decode())
        return data, stat.czxid, primary.status()["timeline"], [member.postmaster() for member in self.cluster]

    def undisturbed(self, trouble):
        """`trouble()` may cost neither the leadership nor a server nor more than a short pause of the writer."""
        self.cluster.wait_settled()
        self.writer.wait_for_more()
        before, began = self.lease(), time.monotonic()
        sessions = [self.node(f"members/{member.name}")[1].ephemeral_owner for member in self.cluster]
        trouble()
        self.stage.wait_connected(sessions)
        over = time.time() + 1.0
        for member in self.cluster:
            wait_until(lambda member=member: member.status().get("dcs_last_seen", 0) > over, LONG, f"{member}'s next look")
        self.writer.wait_for_more()
        pause = self.writer.longest_pause_since(began)
        after = self.lease()
        assert before == after, f"leader, its node, timeline, postmasters: {before} became {after}"
        assert pause < RETRY_TIMEOUT, f"no row was acknowledged for {pause:.1f} s"
        return f"timeline {after[2]}, longest pause of the writer {pause:.2f} s"

    @step("two members bootstrap: a primary and a synchronous replica that streams")
    def bootstrap(self):
        for member in self.cluster:
            member.start()
        primary = self.cluster.wait_settled()
        listed = json.loads(self.cluster.ctl("list", "-f", "json"))
        roles = {row["Member"]: (row["Role"], row["State"]) for row in listed}
        assert roles == {primary.name: ("Leader", "running"),
                         self.cluster.other(primary).name: ("Sync Standby", "streaming")}, roles

    @step("the tree has what Patroni documents: leader and members as ephemerals, the system's identifier")
    def tree(self):
        primary = self.cluster.primary()
        data, leader = self.node("leader")
        assert data.decode() == primary.name and leader.ephemeral_owner, (data, leader)
        for member in self.cluster:
            state = json.loads(self.node(f"members/{member.name}")[0])
            assert state["state"] == "running" and str(member.port) in state["conn_url"], state
        owner = self.node(f"members/{primary.name}")[1].ephemeral_owner
        assert owner == leader.ephemeral_owner, "leader and member are of one session"
        identifier = primary.ask("select system_identifier::text from pg_control_system()")[0]
        assert self.node("initialize")[0].decode() == identifier
        if self.stage.secured:
            self.protected("leader", "members", "config")

    def protected(self, *names):
        """All of it is Patroni's own."""
        for name in names:
            entries, _ = self.stage.look(lambda conn, name=name: conn.get_acl(f"{HOME}/{name}"))
            assert entries == [(31, "x509", IDENTITY)], (name, entries)

    @step("rows written to the primary are on the replica")
    def replicate(self):
        self.writer.wait_for_more()
        acknowledged = list(self.writer.acknowledged)
        for member in self.cluster:
            assert self.writer.missing(member, acknowledged) == 0, member

    @step("patronictl edit-config changes both servers")
    def edit_config(self):
        self.cluster.ctl("edit-config", SCOPE, "--quiet", "--force", "--pg", "work_mem=7MB")
        assert json.loads(self.node("config")[0])["postgresql"]["parameters"]["work_mem"] == "7MB"
        for member in self.cluster:
            wait_until(lambda member=member: member.ask("show work_mem")[0] == "7MB", LONG, f"work_mem of {member}")

    @step("kill -9 of the coordination service's leader: no failover")
    def coordination_fails_over(self):
        return self.undisturbed(self.coordination_loses_one)

    def coordination_loses_one(self):
        self.stage.servers.lose()
        self.writer.wait_for_more()
        self.stage.servers.regain()

    @step("a restart of every member of the coordination service in turn: no failover", bounded=False)
    def coordination_rolls(self):
        return self.undisturbed(self.stage.servers.restart_each)

    @step("patronictl switchover: the replica is primary on the next timeline, and nothing is lost", bounded=False)
    def switchover(self):
        old = self.cluster.wait_settled()
        new, timeline = self.cluster.other(old), old.status()["timeline"]
        self.cluster.ctl("switchover", SCOPE, "--leader", old.name, "--candidate", new.name, "--force")
        self.promoted(new, timeline + 1)
        assert self.cluster.wait_settled() is new
        history = json.loads(self.node("history")[0])
        assert history[-1][0] == timeline and history[-1][-1] == new.name, history

    @step("kill -9 of the primary's PostgreSQL and Patroni: the other one is promoted and has every row")
    def failover(self):
        old = self.cluster.wait_settled()
        timeline, began = old.status()["timeline"], time.monotonic()
        self.writer.wait_for_more()
        old.kill9()
        self.promoted(self.cluster.other(old), timeline + 1)
        took = time.monotonic() - began
        old.start()
        return f"promoted and written to after {took:.1f} s"

    @step("the old primary comes back as the replica")
    def rejoin(self):
        old = self.cluster.other(self.cluster.primary())
        assert self.cluster.wait_settled() is not old
        assert old.ask("select pg_is_in_recovery()")[0]

    def promoted(self, member, timeline):
        acknowledged = list(self.writer.acknowledged)
        wait_until(lambda: self.cluster.primary() is member, LONG, f"{member} as primary")
        assert self.writer.missing(member, acknowledged) == 0, "acknowledged rows are lost"
        assert member.status()["timeline"] == timeline, member.status()
        self.writer.wait_for_more()

    @step("paused: PostgreSQL goes on without Patroni, which takes it over again; resumed")
    def pause(self):
        primary = self.cluster.wait_settled()
        before = primary.postmaster(), primary.status()["timeline"]
        self.cluster.ctl("pause", SCOPE, "--wait")
        assert all(member.status()["pause"] for member in self.cluster)
        primary.stop()
        self.writer.wait_for_more()
        primary.start()
        assert self.cluster.wait_settled() is primary
        self.cluster.ctl("resume", SCOPE, "--wait")
        assert not any(member.status().get("pause") for member in self.cluster)
        assert before == (primary.postmaster(), primary.status()["timeline"]), "PostgreSQL was restarted"

    @step("no majority of the coordination service: the primary turns read-only, and accepts rows again afterwards")
    def outage(self):
        primary = self.cluster.wait_settled()
        self.writer.wait_for_more()
        with self.stage.servers.outage():
            wait_until(lambda: self.read_only(primary), LONG, f"{primary} read-only")
            try:
                primary.ask("insert into numbers values (-1) returning number")
                raise AssertionError("a row was accepted without a leader")
            except psycopg.errors.ReadOnlySqlTransaction:
                pass
            acknowledged = list(self.writer.acknowledged)
        again = wait_until(self.cluster.primary, LONG, "a primary")
        assert self.writer.missing(again, acknowledged) == 0, "acknowledged rows are lost"
        self.writer.wait_for_more()
        self.cluster.wait_settled()
        return f"{primary} before, {again} afterwards"

    @staticmethod
    def read_only(member):
        try:
            return member.ask("select pg_is_in_recovery()")[0]
        except psycopg.OperationalError:
            return False  # it restarts

    @step("patronictl reinit builds the replica anew", bounded=False)
    def reinit(self):
        primary = self.cluster.wait_settled()
        replica = self.cluster.other(primary)
        before = replica.postmaster()
        self.cluster.ctl("reinit", SCOPE, replica.name, "--force", "--wait")
        assert self.cluster.wait_settled() is primary
        assert replica.postmaster() != before

    @step("every acknowledged row is on both servers")
    def nothing_lost(self):
        self.cluster.wait_settled()
        acknowledged = list(self.writer.acknowledged)
        for member in self.cluster:
            assert self.writer.missing(member, acknowledged) == 0, member
        return f"{len(acknowledged)} rows"

    @step("the ephemerals of a stopped cluster end with its sessions, and patronictl removes the rest", bounded=False)
    def remove(self):
        for member in self.cluster:
            member.stop()
        # Patroni does not close its session.
        wait_until(lambda: self.stage.look(lambda conn: conn.children(f"{HOME}/members")) == [], LONG, "no members")
        assert self.node("leader") is None
        self.cluster.ctl("remove", SCOPE, say=f"{SCOPE}\nYes I am aware\n")
        assert self.stage.look(lambda conn: conn.exists(HOME)) is None
