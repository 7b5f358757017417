//! Writes, from the bytes of the request through the log to those of the reply.

use crate::frames;
use crate::machine::{ClientId, Cluster};
use crate::work::{Work, nothing, work};

/// Requests that come in one piece.
const BATCH: usize = 128;

/// A client of a member, and what it asks for.
struct Writer {
    cluster: Cluster,
    at: usize,
    client: ClientId,
    requests: Vec<Vec<u8>>,
    /// What has been created so far.
    created: usize,
}

impl Writer {
    /// The client of the only member, or of one of three that does not lead.
    fn of(members: u64) -> Writer {
        let mut cluster = Cluster::of(members);
        let at = cluster.follower();
        let client = cluster.client(at);
        for (path, bytes) in [("/kilobyte", 1024), ("/checked", 0), ("/parent", 0)] {
            cluster.ask(at, client, &frames::create(1, path, &vec![7; bytes], 0));
        }
        Writer {
            cluster,
            at,
            client,
            requests: Vec::new(),
            created: 0,
        }
    }

    fn asking(members: u64, request: Vec<u8>) -> Writer {
        let mut writer = Writer::of(members);
        writer.requests.push(request);
        writer
    }

    fn setting(members: u64, batch: usize) -> Writer {
        let request = frames::set(9, "/kilobyte", &[8; 1024]);
        Writer::asking(members, request.repeat(batch))
    }

    fn ask(&mut self, request: &[u8]) {
        let answer = self.cluster.ask(self.at, self.client, request);
        assert!(answer > 0, "no answer");
    }

    /// The same request again and again, each when the one before is answered.
    fn one_by_one(&mut self, operations: usize) {
        let request = std::mem::take(&mut self.requests[0]);
        for _ in 0..operations {
            self.ask(&request);
        }
        self.requests[0] = request;
    }

    /// The same, where the request is a batch of this many.
    fn batches(&mut self, operations: usize) {
        self.one_by_one(operations / BATCH);
    }

    /// All that was made ready, one by one.
    fn all(&mut self, _: usize) {
        let requests = std::mem::take(&mut self.requests);
        for request in &requests {
            self.ask(request);
        }
    }

    fn names(&mut self, count: usize) -> impl Iterator<Item = String> + use<> {
        let first = self.created;
        self.created += count;
        (first..first + count).map(|number| format!("/parent/node-{number:010}"))
    }

    fn ready_to_create(&mut self, operations: usize) {
        let names = self.names(operations);
        let request = |name: String| frames::create(9, &name, &[7; 100], 0);
        self.requests = names.map(request).collect();
    }

    fn ready_to_create_in_batches(&mut self, operations: usize) {
        self.ready_to_create(operations);
        self.requests = self.requests.chunks(BATCH).map(<[_]>::concat).collect();
    }

    fn ready_to_delete(&mut self, operations: usize) {
        let names: Vec<String> = self.names(operations).collect();
        for name in &names {
            self.ask(&frames::create(9, name, &[7; 100], 0));
        }
        self.requests = names.iter().map(|name| frames::delete(9, name)).collect();
    }

    /// Clients that have said nothing yet.
    fn connect(&mut self, operations: usize) {
        for _ in 0..operations {
            self.client = self.cluster.machines[self.at].accept();
            self.ask(&frames::connect());
        }
    }

    /// Sessions with ten ephemeral znodes each.
    fn ready_to_close(&mut self, operations: usize) {
        for _ in 0..operations {
            self.client = self.cluster.client(self.at);
            for name in self.names(10) {
                self.ask(&frames::create(9, &name, b"", 1));
            }
        }
    }

    fn close(&mut self, operations: usize) {
        for _ in 0..operations {
            self.ask(&frames::close());
            self.client -= 1;
        }
    }

    /// All clients watch one znode.
    fn ready_to_tell(&mut self, operations: usize) {
        while self.client < operations {
            self.client = self.cluster.client(self.at);
        }
        for client in self.client + 1 - operations..=self.client {
            self.cluster
                .ask(self.at, client, &frames::get(9, "/checked", true));
        }
    }

    fn tell(&mut self, operations: usize) {
        let last = self.client;
        self.client = 0;
        self.ask(&frames::set(9, "/checked", b""));
        for client in last + 1 - operations..=last {
            assert!(
                self.cluster.machines[self.at].take_output(client) > 0,
                "no event"
            );
        }
        self.client = last;
    }
}

pub fn all() -> Vec<Work> {
    vec![
        work(
            "set 1 KB",
            500,
            || Writer::setting(1, 1),
            nothing,
            Writer::one_by_one,
        ),
        work(
            "set 1 KB, 128 in a batch",
            10 * BATCH,
            || Writer::setting(1, BATCH),
            nothing,
            Writer::batches,
        ),
        work(
            "create 100 B",
            500,
            || Writer::of(1),
            Writer::ready_to_create,
            Writer::all,
        ),
        work(
            "create 100 B, 128 in a batch",
            10 * BATCH,
            || Writer::of(1),
            Writer::ready_to_create_in_batches,
            Writer::all,
        ),
        work(
            "create 100 B, sequential",
            500,
            || Writer::asking(1, frames::create(9, "/parent/seq-", &[7; 100], 2)),
            nothing,
            Writer::one_by_one,
        ),
        work(
            "delete",
            500,
            || Writer::of(1),
            Writer::ready_to_delete,
            Writer::all,
        ),
        work(
            "multi: check and set 100 B",
            500,
            || {
                Writer::asking(
                    1,
                    frames::check_and_set(9, "/parent", "/checked", &[7; 100]),
                )
            },
            nothing,
            Writer::one_by_one,
        ),
        work("connect", 200, || Writer::of(1), nothing, Writer::connect),
        work(
            "close a session with 10 ephemerals",
            50,
            || Writer::of(1),
            Writer::ready_to_close,
            Writer::close,
        ),
        work(
            "set 1 KB by a follower, three members",
            200,
            || Writer::setting(3, 1),
            nothing,
            Writer::one_by_one,
        ),
        work(
            "set 1 KB by a follower, three members, 128 in a batch",
            5 * BATCH,
            || Writer::setting(3, BATCH),
            nothing,
            Writer::batches,
        ),
        work(
            "one event to 1000 watchers",
            1000,
            || Writer::of(1),
            Writer::ready_to_tell,
            Writer::tell,
        ),
    ]
}
