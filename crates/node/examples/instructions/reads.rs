//! Reads, from the bytes of the request to those of the reply.

use crate::frames;
use crate::machine::{ClientId, Cluster};
use crate::work::{Work, nothing, work};

/// Bytes of a reply's length and header.
const HEADER: usize = 20;
const STAT: usize = 68;

/// A client of a member, and what it asks for.
struct Reader {
    cluster: Cluster,
    client: ClientId,
    request: Vec<u8>,
    /// Bytes of the answer.
    answer: usize,
}

impl Reader {
    fn new(request: Vec<u8>, answer: usize) -> Reader {
        let mut cluster = Cluster::of(1);
        let client = cluster.client(0);
        let mut ask = |frame: Vec<u8>| cluster.ask(0, client, &frame);
        ask(frames::create(1, "/kilobyte", &[7; 1024], 0));
        ask(frames::create(2, "/large", &[7; 65_536], 0));
        ask(frames::create(3, "/parent", b"", 0));
        for child in 0..100 {
            ask(frames::create(
                4,
                &format!("/parent/child-{child:010}"),
                b"",
                0,
            ));
        }
        Reader {
            cluster,
            client,
            request,
            answer,
        }
    }

    /// The request again and again, each when the one before is answered.
    fn one_by_one(&mut self, operations: usize) {
        let machine = &mut self.cluster.machines[0];
        for _ in 0..operations {
            machine.receive(self.client, &self.request);
            assert_eq!(machine.take_output(self.client), self.answer);
        }
    }

    /// The same, where the request is a batch of this many.
    fn batches(&mut self, operations: usize) {
        self.one_by_one(operations / BATCH);
    }
}

/// Requests that come in one piece.
const BATCH: usize = 128;

pub fn all() -> Vec<Work> {
    vec![
        work(
            "ping",
            1000,
            || Reader::new(frames::ping(), HEADER),
            nothing,
            Reader::one_by_one,
        ),
        work(
            "exists",
            1000,
            || Reader::new(frames::exists(9, "/kilobyte"), HEADER + STAT),
            nothing,
            Reader::one_by_one,
        ),
        work(
            "get 1 KB",
            1000,
            || Reader::new(frames::get(9, "/kilobyte", false), HEADER + 4 + 1024 + STAT),
            nothing,
            Reader::one_by_one,
        ),
        work(
            "get 1 KB, 128 in a batch",
            10 * BATCH,
            || {
                let request = frames::get(9, "/kilobyte", false).repeat(BATCH);
                Reader::new(request, BATCH * (HEADER + 4 + 1024 + STAT))
            },
            nothing,
            Reader::batches,
        ),
        work(
            "get 64 KB",
            100,
            || Reader::new(frames::get(9, "/large", false), HEADER + 4 + 65_536 + STAT),
            nothing,
            Reader::one_by_one,
        ),
        work(
            "getChildren2, 100 children",
            100,
            || {
                let request = frames::children(9, "/parent");
                Reader::new(request, HEADER + 4 + 100 * (4 + 16) + STAT)
            },
            nothing,
            Reader::one_by_one,
        ),
        work(
            "get with a new watch",
            1000,
            Watcher::new,
            Watcher::ready,
            Watcher::watch,
        ),
    ]
}

/// A client that leaves watches on many znodes.
struct Watcher {
    reader: Reader,
    requests: Vec<Vec<u8>>,
}

impl Watcher {
    fn new() -> Watcher {
        let mut reader = Reader::new(Vec::new(), 0);
        for znode in 0..1000 {
            let frame = frames::create(5, &format!("/watched-{znode}"), b"", 0);
            reader.cluster.ask(0, reader.client, &frame);
        }
        let request = |znode| frames::get(9, &format!("/watched-{znode}"), true);
        Watcher {
            reader,
            requests: (0..1000).map(request).collect(),
        }
    }

    /// A client that has none.
    fn ready(&mut self, _: usize) {
        self.reader.client = self.reader.cluster.client(0);
    }

    fn watch(&mut self, operations: usize) {
        let machine = &mut self.reader.cluster.machines[0];
        for request in &self.requests[..operations] {
            machine.receive(self.reader.client, request);
            assert_eq!(machine.take_output(self.reader.client), HEADER + 4 + STAT);
        }
    }
}
