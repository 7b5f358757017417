//! Random traffic of several connections, with writes that take random time: what every client may rely on.

mod driver;

use std::collections::BTreeMap;

use driver::{Member, Random, Reply, requests::*};
use quenda_proto::event::EventType;
use quenda_proto::records::{GetDataResponse, SetDataResponse};

const PATHS: [&str; 3] = ["/a", "/b", "/c"];

/// What a client asked for and is not answered.
#[derive(Clone, Copy)]
enum Asked {
    Get { path: usize, watch: bool },
    Set { path: usize },
    Ping,
    Sync,
}

#[derive(Default)]
struct Client {
    id: u64,
    asked: Vec<(i32, Asked)>,
    next_xid: i32,
    last_zxid: i64,
    /// Newest version of each path that the client has seen, by reply of any kind.
    versions: BTreeMap<usize, i32>,
    /// Version that a watch was left on.
    watched: BTreeMap<usize, i32>,
    answered: usize,
    events: usize,
}

impl Client {
    fn ask(&mut self, random: &mut Random) -> Vec<u8> {
        self.next_xid += 1;
        let xid = self.next_xid;
        let path = random.below(PATHS.len());
        let (asked, frame) = match random.below(10) {
            0..5 => {
                let watch = random.below(3) == 0;
                (Asked::Get { path, watch }, get(xid, PATHS[path], watch))
            }
            5..8 => (Asked::Set { path }, set(xid, PATHS[path], b"x")),
            8 => (Asked::Ping, ping(xid)),
            _ => (Asked::Sync, sync(xid, PATHS[path])),
        };
        let xid = match asked {
            Asked::Ping => -2,
            Asked::Get { .. } | Asked::Set { .. } | Asked::Sync => xid,
        };
        self.asked.push((xid, asked));
        frame
    }

    fn take(&mut self, reply: &Reply) {
        assert!(reply.zxid >= self.last_zxid, "the zxid goes back");
        self.last_zxid = reply.zxid;
        if reply.is_event() {
            return self.take_event(reply);
        }
        assert_eq!(reply.err, 0);
        let (xid, asked) = self.asked.remove(0);
        assert_eq!(reply.xid, xid, "out of order");
        self.answered += 1;
        match asked {
            Asked::Get { path, watch } => {
                let response: GetDataResponse<'_> = reply.decode();
                self.see(path, response.stat.version, false);
                assert!(response.stat.mzxid <= reply.zxid);
                if watch {
                    self.watched.insert(path, response.stat.version);
                }
            }
            Asked::Set { path } => {
                let response: SetDataResponse = reply.decode();
                assert_eq!(response.stat.mzxid, reply.zxid);
                self.see(path, response.stat.version, true);
            }
            Asked::Ping | Asked::Sync => {}
        }
    }

    /// A read shows what the client knows or something newer; its own write something newer.
    fn see(&mut self, path: usize, version: i32, newer: bool) {
        let known = self.versions.entry(path).or_default();
        assert!(version > *known || (version == *known && !newer));
        *known = version;
        if let Some(watched) = self.watched.get(&path) {
            assert_eq!(version, *watched, "new state before its event");
        }
    }

    fn take_event(&mut self, reply: &Reply) {
        let (kind, path, zxid) = reply.event();
        assert_eq!(kind, EventType::NodeDataChanged);
        assert!(zxid > 0);
        let path = PATHS.iter().position(|known| *known == path);
        let path = path.expect("a path of ours");
        assert!(self.watched.remove(&path).is_some(), "nobody watches");
        self.events += 1;
    }
}

#[test]
fn replies_are_in_order_and_no_client_goes_back_in_time() {
    let mut random = Random::from_environment();
    for _ in 0..20 {
        let mut member = Member::default();
        let setup = member.client();
        for path in PATHS {
            member.ok(setup, &create(1, path));
        }
        let mut clients: Vec<Client> = (0..5)
            .map(|_| Client {
                id: member.client(),
                ..Client::default()
            })
            .collect();
        for _ in 0..1_000 {
            let index = random.below(clients.len());
            let client = &mut clients[index];
            match random.below(4) {
                0 => member.apply(),
                1 => member
                    .replies(client.id)
                    .iter()
                    .for_each(|reply| client.take(reply)),
                _ => {
                    let frames: Vec<u8> = (0..=random.below(4))
                        .flat_map(|_| client.ask(&mut random))
                        .collect();
                    // In two pieces, so that frames are cut anywhere.
                    let (first, second) = frames.split_at(random.below(frames.len()));
                    member.send(client.id, first);
                    member.send(client.id, second);
                }
            }
        }
        member.apply();
        for client in &mut clients {
            for reply in member.replies(client.id) {
                client.take(&reply);
            }
            assert!(client.asked.is_empty(), "never answered");
            assert_eq!(member.connection(client.id).queued(), 0);
            assert!(client.answered > 100 && client.events > 5);
        }
        let left: usize = clients.iter().map(|client| client.watched.len()).sum();
        assert_eq!(member.watch_count(), left);
    }
}
