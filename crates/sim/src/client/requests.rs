//! What a client asks for.

use bytes::BytesMut;
use quenda_proto::XID_PING;

use super::{Client, Kind, REGISTERS, Sent};
use crate::checks::Checks;
use crate::schedule::{MS, Micros};
use crate::wire::{self, Part};

impl Client {
    pub(super) fn next_xid(&mut self) -> i32 {
        self.xid += 1;
        self.xid
    }

    pub(super) fn value(&mut self) -> u32 {
        self.next_value += 1;
        (self.id as u32 + 1) << 20 | self.next_value
    }

    pub(super) fn private_path(&self) -> String {
        format!("/p{}-{}", self.id, self.life)
    }

    /// Values of private znodes lie in a range of their own.
    pub(super) fn private_number(&self) -> u32 {
        self.private_value
    }

    pub(super) fn push(
        &mut self,
        checks: &mut Checks,
        xid: i32,
        kind: Kind,
        fresh: Option<(u64, i64)>,
    ) {
        let call = checks.instant();
        let floor = checks.floor();
        let fresh = match &kind {
            Kind::Get { .. } | Kind::Exists { .. } | Kind::Children { .. }
                if self.habits.linearizable =>
            {
                fresh.or(Some((call, floor)))
            }
            _ => fresh,
        };
        self.outstanding.push_back(Sent {
            xid,
            kind,
            at: self.now,
            call,
            floor,
            fresh,
        });
    }

    pub(super) fn create(
        &mut self,
        checks: &mut Checks,
        out: &mut BytesMut,
        path: &str,
        flags: i32,
        is_lock: bool,
    ) {
        let xid = self.next_xid();
        let (value, data) = match path.starts_with("/r") || path.starts_with("/e") {
            true => {
                let value = self.value();
                (
                    value,
                    wire::data_of(value, self.rng.below(self.habits.padding + 1) as usize),
                )
            }
            false => (0, Vec::new()),
        };
        wire::create(out, xid, path, &data, flags);
        let kind = Kind::Create {
            path: path.into(),
            value,
            is_lock,
        };
        self.push(checks, xid, kind, None);
    }

    pub(super) fn set(
        &mut self,
        checks: &mut Checks,
        out: &mut BytesMut,
        path: String,
        expected: i32,
    ) {
        let xid = self.next_xid();
        let value = self.value();
        let padding = self.rng.below(self.habits.padding + 1) as usize;
        wire::set(out, xid, &path, &wire::data_of(value, padding), expected);
        let kind = Kind::Set {
            path,
            value,
            expected,
        };
        self.push(checks, xid, kind, None);
    }

    pub(super) fn set_private(&mut self, checks: &mut Checks, out: &mut BytesMut) {
        let xid = self.next_xid();
        self.private_value += 1;
        let value = self.private_number();
        let path = self.private_path();
        wire::set(out, xid, &path, &wire::data_of(value, 0), -1);
        let kind = Kind::Set {
            path,
            value,
            expected: -1,
        };
        self.push(checks, xid, kind, None);
    }

    pub(super) fn delete(
        &mut self,
        checks: &mut Checks,
        out: &mut BytesMut,
        path: String,
        expected: i32,
    ) {
        let xid = self.next_xid();
        wire::delete(out, xid, &path, expected);
        self.push(checks, xid, Kind::Delete { path, expected }, None);
    }

    pub(super) fn get(
        &mut self,
        checks: &mut Checks,
        out: &mut BytesMut,
        path: String,
        watch: bool,
    ) {
        let xid = self.next_xid();
        wire::get(out, xid, &path, watch);
        self.push(checks, xid, Kind::Get { path, watch }, None);
    }

    /// Adds the recursive watch of this client, once more if it is there.
    pub(super) fn add_watch(&mut self, checks: &mut Checks, out: &mut BytesMut) {
        if let Some(path) = self.habits.watches_below {
            let xid = self.next_xid();
            wire::add_recursive_watch(out, xid, path);
            self.push(checks, xid, Kind::AddWatch, None);
        }
    }

    pub(super) fn exists(
        &mut self,
        checks: &mut Checks,
        out: &mut BytesMut,
        path: String,
        watch: bool,
    ) {
        let xid = self.next_xid();
        wire::exists(out, xid, &path, watch);
        self.push(checks, xid, Kind::Exists { path, watch }, None);
    }

    pub(super) fn synced_get(&mut self, checks: &mut Checks, out: &mut BytesMut, path: String) {
        let xid = self.next_xid();
        wire::sync(out, xid, &path);
        self.push(checks, xid, Kind::Sync, None);
        let sync = self.outstanding.back().map(|sent| (sent.call, sent.floor));
        let xid = self.next_xid();
        wire::get(out, xid, &path, false);
        self.push(checks, xid, Kind::Get { path, watch: false }, sync);
    }

    pub(super) fn swap_registers(&mut self, checks: &mut Checks, out: &mut BytesMut) {
        let mut parts = Vec::new();
        let first = self.rng.below(REGISTERS);
        for offset in 0..2 {
            let path = format!("/r{}", (first + offset) % REGISTERS);
            let Some(version) = self.versions.get(&path).copied() else {
                return;
            };
            let value = self.value();
            parts.push(Part::Set {
                path,
                data: wire::data_of(value, 0),
                expected: version,
            });
        }
        self.multi(checks, out, parts);
    }

    pub(super) fn multi(&mut self, checks: &mut Checks, out: &mut BytesMut, parts: Vec<Part>) {
        let xid = self.next_xid();
        wire::multi(out, xid, &parts);
        self.push(checks, xid, Kind::Multi { parts }, None);
    }

    /// Takes the lock, works under it with its token, gives it back.
    pub(super) fn lock_step(&mut self, checks: &mut Checks, out: &mut BytesMut) {
        match self.lock.clone() {
            None => {
                let waits = |sent: &Sent| matches!(sent.kind, Kind::Create { is_lock: true, .. });
                if !self.outstanding.iter().any(waits) {
                    let path = format!("/l/n{}-", self.id);
                    self.create(checks, out, &path, 3, true);
                }
            }
            Some((path, token)) if self.holds => {
                if self.rng.percent(60) {
                    let parts = vec![
                        Part::Check { path, version: -1 },
                        Part::Set {
                            path: "/guard".into(),
                            data: token.to_be_bytes().to_vec(),
                            expected: -1,
                        },
                    ];
                    self.multi(checks, out, parts);
                } else {
                    self.lock = None;
                    self.holds = false;
                    self.delete(checks, out, path, -1);
                }
            }
            Some(_) => {
                let xid = self.next_xid();
                let watch = self.rng.percent(50);
                wire::children(out, xid, "/l", watch);
                let kind = Kind::Children {
                    path: "/l".into(),
                    watch,
                };
                self.push(checks, xid, kind, None);
            }
        }
    }

    pub(super) fn work(&mut self, now: Micros, checks: &mut Checks, out: &mut BytesMut) {
        let timeout = self.timeout_ms.unsigned_abs() as u64 * MS;
        if self.closing {
            return;
        }
        if now > self.sent_at + timeout / 3 {
            wire::ping(out);
            self.push(checks, XID_PING, Kind::Ping, None);
        }
        if self.stopped || self.outstanding.len() >= self.habits.window {
            return;
        }
        if self.habits.is_admin {
            return self.administrate(checks, out);
        }
        if self.rng.per_myriad(self.habits.closes) {
            let xid = self.next_xid();
            wire::close(out, xid);
            self.push(checks, xid, Kind::Close, None);
            self.closing = true;
            return;
        }
        let count = 1 + self.rng.below(3 + self.habits.window as u64 / 4);
        for _ in 0..count {
            self.one(checks, out);
        }
    }

    pub(super) fn administrate(&mut self, checks: &mut Checks, out: &mut BytesMut) {
        match self.reconfigs.pop_front() {
            Some(wanted) => {
                let xid = self.next_xid();
                wire::reconfig(out, xid, &wanted);
                self.push(checks, xid, Kind::Reconfig, None);
            }
            None if self.rng.percent(30) => self.set_private(checks, out),
            None => {}
        }
    }

    pub(super) fn one(&mut self, checks: &mut Checks, out: &mut BytesMut) {
        if self.rng.percent(2) {
            self.add_watch(checks, out);
        }
        let register = format!("/r{}", self.rng.below(REGISTERS));
        if self.habits.is_reader {
            return match self.rng.below(4) {
                0 => self.get(checks, out, register, true),
                1 => self.get(checks, out, register, false),
                _ => self.synced_get(checks, out, register),
            };
        }
        // Many register writes of unknown fate at a time would make the search for an order long.
        if self.habits.window > 10 && self.rng.percent(75) {
            return self.set_private(checks, out);
        }
        match self.rng.below(100) {
            0..14 => self.set(checks, out, register, -1),
            14..22 => {
                let expected = self.versions.get(&register).copied().unwrap_or(0);
                self.set(checks, out, register, expected);
            }
            22..28 => self.create(checks, out, &register, 0, false),
            28..32 => self.delete(checks, out, register, -1),
            32..42 => self.synced_get(checks, out, register),
            42..54 => self.get(checks, out, register, false),
            54..60 => self.get(checks, out, register, true),
            60..66 => self.exists(checks, out, register, true),
            66..72 => self.swap_registers(checks, out),
            72..80 => self.set_private(checks, out),
            80..86 => {
                let path = format!("/e{}", self.id);
                self.ephemeral = !self.ephemeral;
                if self.ephemeral {
                    self.create(checks, out, &path, 1, false);
                } else {
                    self.delete(checks, out, path, -1);
                }
            }
            86..90 => {
                let other = format!("/e{}", self.rng.below(6));
                self.exists(checks, out, other, true);
            }
            _ => self.lock_step(checks, out),
        }
    }
}
