//! Snapshots that are taken and, some time later, restored.

use std::collections::BTreeMap;

use bytes::BytesMut;
use quenda_frontend::ServiceMode;
use quenda_tree::command::{Command, Origin};
use quenda_tree::{CheckpointSink, MapView, PieceSum, Table, Tree, export};

use super::Sim;
use crate::host::Host;

/// Connections that stand for nobody's: beyond those of clients.
const CONNECTIONS: u64 = 1 << 40;

#[derive(Default)]
struct Rows(BTreeMap<(Table, Vec<u8>), Vec<u8>>);

impl CheckpointSink for Rows {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) {
        self.0.insert((table, key.to_vec()), value.to_vec());
    }

    fn delete(&mut self, _: Table, _: &[u8]) {}
}

fn snapshot(tree: &Tree) -> Result<Vec<u8>, String> {
    let mut rows = Rows::default();
    tree.write_full(&mut rows);
    let mut bytes = Vec::new();
    export(&MapView(&rows.0), &mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

impl Sim {
    /// Takes a snapshot on some member, or restores the one that was taken on some other.
    pub(super) fn save_or_restore(&mut self) {
        let serves = |host: &&Host| {
            let process = host.process();
            process.is_some_and(|process| process.service_mode() == ServiceMode::Serving)
        };
        let serving: Vec<u64> = self
            .hosts
            .values()
            .filter(serves)
            .map(|host| host.id)
            .collect();
        if serving.is_empty() {
            return;
        }
        let member = *self.cx.rng.pick(&serving);
        match self.snapshot.take() {
            Some(bytes) => self.restore(member, &bytes),
            None => self.take_snapshot(member),
        }
    }

    fn take_snapshot(&mut self, member: u64) {
        let Some(process) = self.hosts.get(&member).and_then(Host::process) else {
            return;
        };
        match snapshot(&process.tree) {
            Ok(bytes) => {
                self.cx
                    .say(format_args!("member {member} gives a snapshot"));
                self.snapshot = Some(bytes);
            }
            Err(error) => self
                .cx
                .fail(format!("member {member} gives no snapshot: {error}")),
        }
    }

    /// All pieces at once, and the command that puts them in force; what gets lost is lost.
    fn restore(&mut self, member: u64, bytes: &[u8]) {
        self.restores += 1;
        let restore = self.restores;
        let origin = Origin {
            member,
            connection: CONNECTIONS + restore,
        };
        let mut sum = PieceSum::default();
        let mut commands = BytesMut::new();
        let size = *self.cx.rng.pick(&[200, 3_000, 100_000]);
        for (number, bytes) in (0..).zip(bytes.chunks(size)) {
            sum.add(bytes);
            let piece = Command::AddPiece {
                origin,
                restore,
                number,
                bytes,
            };
            piece.encode(&mut commands);
        }
        let sum = sum.value();
        let last = Command::Restore {
            origin,
            restore,
            sum,
        };
        last.encode(&mut commands);
        self.cx
            .say(format_args!("member {member} is to restore {restore}"));
        self.cx.checks.restore_asked(restore);
        self.trouble(0);
        self.calm_later(0, 3 * crate::schedule::SECOND);
        let boot = self.hosts[&member].boot;
        self.with(member, boot, |host, cx| host.submit(commands, cx));
    }
}
