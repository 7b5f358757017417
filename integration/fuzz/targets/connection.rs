//! A connection fed with any bytes in any pieces, its writes applied: it answers or closes, and never more
//! than its bounds allow waits.
#![no_main]

use std::cell::RefCell;
use std::sync::Arc;

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use quenda_frontend::{
    Connection, ConnectionId, Gates, Growth, NONCE_BYTES, NoMeter, Password, Proposals, Received, SaslUsers, ServiceMode, SessionIds, Settings,
    SyncMode, WatchKinds, WatchTable, Watches, World,
};
use quenda_tree::command::{Batch, Stamp, start_batch};
use quenda_tree::{Changes, Tree};

struct Table(RefCell<WatchTable>);

impl Watches for Table {
    fn add(&self, path: &str, connection: ConnectionId, kinds: WatchKinds) -> bool {
        self.0.borrow_mut().add(path, connection, kinds)
    }
    fn has(&self, path: &str, connection: ConnectionId, kinds: WatchKinds) -> bool {
        self.0.borrow().has(path, connection, kinds)
    }
    fn remove(&self, path: &str, connection: ConnectionId, kinds: WatchKinds) -> bool {
        self.0.borrow_mut().remove(path, connection, kinds)
    }
    fn forget(&self, connection: ConnectionId) {
        self.0.borrow_mut().forget(connection);
    }
}

/// One user, and a nonce that inputs can know.
struct Users;

impl SaslUsers for Users {
    fn nonce(&self) -> [u8; NONCE_BYTES] {
        [0; NONCE_BYTES]
    }
    fn password(&self, user: &str) -> Option<Password> {
        (user == "bob").then(|| Password::new("secret"))
    }
}

/// A handshake, so that most inputs reach the requests behind it.
const CONNECT: &[u8] = b"\0\0\0\x2d\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x27\x10\0\0\0\0\0\0\0\0\0\0\0\x10\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let mut input = BytesMut::new();
    if first & 1 == 0 {
        input.extend_from_slice(CONNECT);
    }
    let mut tree = Tree::new();
    let watches = Table(RefCell::new(WatchTable::new(1, 1000)));
    let ids = SessionIds::new(1, 1).expect("a member");
    let address = [127, 0, 0, 1].into();
    let settings = Arc::new(Settings {
        sasl_enabled: true,
        ..Settings::default()
    });
    let mut connection = Connection::new(ConnectionId(1), 1, address, 0, settings);
    let piece = usize::from(*first).max(1) * 8;
    for chunk in rest.chunks(piece) {
        input.extend_from_slice(chunk);
        if !feed(&mut connection, &mut input, &mut tree, &watches, &ids) {
            break;
        }
    }
    connection.disconnected(&watches);
    assert_eq!(watches.0.borrow().counts().watches(), 0);
});

/// Gives the input to the connection and applies what it proposes, until nothing moves; false at its end.
fn feed(
    connection: &mut Connection,
    input: &mut BytesMut,
    tree: &mut Tree,
    watches: &Table,
    ids: &SessionIds,
) -> bool {
    loop {
        let mut proposals = Proposals::default();
        let received = connection.receive(input, &world(tree, watches, ids), &mut proposals);
        if let Received::Close(_) = received {
            return false;
        }
        let mut entry = BytesMut::new();
        start_batch(0, &mut entry);
        entry.extend_from_slice(&proposals.commands);
        let (mut reply, mut changes) = (BytesMut::new(), Changes::new());
        let stamp = Stamp { term: 2, time_ms: 0 };
        for command in Batch::open(&entry).expect("our own entry") {
            let command = command.expect("our own command");
            reply.clear();
            changes.clear();
            let applied = tree.apply(stamp, &command, &mut reply, &mut changes);
            connection.complete(&applied, &reply, &world(tree, watches, ids));
        }
        assert!(connection.output_len() <= 80 << 20);
        connection.take_output();
        if proposals.count == 0 {
            return connection.wants_close().is_none();
        }
    }
}

fn world<'a>(tree: &'a Tree, watches: &'a Table, ids: &'a SessionIds) -> World<'a> {
    World {
        tree,
        watches,
        session_ids: ids,
        local_sessions: None,
        sasl: Some(&Users),
        service: ServiceMode::Serving,
        growth: Growth::Allowed,
        sync: SyncMode::Marker,
        gates: Gates::default(),
        meter: &NoMeter,
        now_ms: 0,
        time_ms: 0,
    }
}
