//! What a client is told, and what it makes of it.

use bytes::BytesMut;
use quenda_proto::event::EventType;
use quenda_proto::records::{
    CreateResponse, ExistsResponse, GetChildrenResponse, GetDataResponse, ReplyHeader,
    SetDataResponse, WatcherEvent,
};
use quenda_proto::{XID_EVENT, XID_SET_WATCHES};
use quenda_tree::ChangeKind;

use super::recursive::RecursiveWatch;
use super::{Client, Intent, Kind, Phase, Sent, WatchKind, lose};
use crate::checks::{self, Checks};
use crate::linear::{Action, Outcome};
use crate::schedule::Micros;
use crate::wire::{self, Part, WatchLists};

impl Client {
    /// Bytes have come; what it answers at once is appended to `out`.
    pub fn receive(&mut self, now: Micros, bytes: &[u8], checks: &mut Checks) -> Vec<Intent> {
        let mut intents = Vec::new();
        self.input.extend_from_slice(bytes);
        (self.now, self.heard_at) = (now, now);
        while let Some(frame) = wire::next_frame(&mut self.input) {
            match self.phase {
                Phase::Connecting(_) => self.take_handshake(now, &frame, checks, &mut intents),
                Phase::Live => self.take_frame(now, &frame, checks, &mut intents),
                Phase::Apart(_) => return intents,
            }
        }
        intents
    }

    pub(super) fn take_handshake(
        &mut self,
        now: Micros,
        frame: &[u8],
        checks: &mut Checks,
        intents: &mut Vec<Intent>,
    ) {
        let Some((session, timeout_ms, password)) = wire::read_connect(frame) else {
            return checks.fail(format!("{}: a handshake does not decode", self.who()));
        };
        if session == 0 {
            if self.session == 0 {
                checks.fail(format!("client {}: a new session was refused", self.id));
            }
            if let Err(text) = checks.sessions.told_gone(self.session) {
                checks.fail(text);
            }
            self.forget_session();
            intents.push(Intent::Close);
            return self.parted(now, checks);
        }
        if self.session != 0 && session != self.session {
            checks.fail(format!("{}: resumed as session {session:#x}", self.who()));
        }
        checks.counters.opened += 1;
        checks.counters.resumed += u64::from(self.session != 0);
        let is_new = self.session == 0;
        if let Err(text) = checks.sessions.adopted(session, is_new) {
            checks.fail(text);
        }
        self.session = session;
        self.password = password;
        self.timeout_ms = timeout_ms;
        self.phase = Phase::Live;
        if checks.counters.restores != self.restores {
            self.restores = checks.counters.restores;
            self.forget_work();
        }
        let mut out = BytesMut::new();
        if is_new {
            self.life += 1;
            self.forget_watches();
        }
        self.resyncing = self.has_watches();
        if self.resyncing {
            self.set_watches_again(checks, &mut out);
        }
        self.begin_connection(checks, &mut out);
        self.sent_at = now;
        intents.push(Intent::Send(out));
    }

    /// What every connection starts with: the znodes that this client works on.
    pub(super) fn begin_connection(&mut self, checks: &mut Checks, out: &mut BytesMut) {
        checks.private_start(&self.private_path(), self.private_value + 1);
        if !self.private_ready {
            self.create(checks, out, "/l", 0, false);
            self.create(checks, out, "/guard", 0, false);
            let path = self.private_path();
            self.private_value += 1;
            let xid = self.next_xid();
            let value = self.private_number();
            wire::create(out, xid, &path, &wire::data_of(value, 0), 0);
            let kind = Kind::Create {
                path,
                value,
                is_lock: false,
            };
            self.push(checks, xid, kind, None);
            self.private_ready = true;
        }
    }

    pub(super) fn set_watches_again(&mut self, checks: &mut Checks, out: &mut BytesMut) {
        let of = |kind| {
            let watches = self.watches.keys().filter(|(found, _)| *found == kind);
            watches.map(|(_, path)| path.clone()).collect::<Vec<_>>()
        };
        let recursive = self.recursive.iter();
        let lists = WatchLists {
            data: of(WatchKind::Data),
            exist: of(WatchKind::Exist),
            child: of(WatchKind::Child),
            recursive: recursive.map(|watch| watch.path().into()).collect(),
        };
        wire::set_watches(out, self.last_zxid, lists);
        self.push(checks, XID_SET_WATCHES, Kind::SetWatches, None);
    }

    pub(super) fn take_frame(
        &mut self,
        now: Micros,
        frame: &[u8],
        checks: &mut Checks,
        intents: &mut Vec<Intent>,
    ) {
        let Some((header, body)) = wire::read_reply(frame) else {
            return checks.fail(format!("{}: a reply does not decode", self.who()));
        };
        if header.xid == XID_EVENT {
            return self.take_event(header.zxid, body, checks);
        }
        let Some(sent) = self.outstanding.pop_front() else {
            return checks.fail(format!("{}: a reply to nothing: {header:?}", self.who()));
        };
        if header.xid != sent.xid {
            return checks.fail(format!(
                "{}: the reply to {} came before that to {} ({:?})",
                self.who(),
                header.xid,
                sent.xid,
                sent.kind
            ));
        }
        self.check_zxid(&header, &sent, checks);
        self.take_reply(now, &header, body, sent, checks, intents);
    }

    pub(super) fn check_zxid(&mut self, header: &ReplyHeader, sent: &Sent, checks: &mut Checks) {
        let zxid = header.zxid;
        if zxid <= 0 {
            return;
        }
        if zxid < self.last_zxid {
            checks.fail(format!(
                "{}: was at zxid {:#x}, the reply to {:?} is of {zxid:#x}",
                self.who(),
                self.last_zxid,
                sent.kind
            ));
        }
        self.last_zxid = zxid;
        self.reply_zxid = zxid;
        if self.resyncing {
            return;
        }
        for ((kind, path), since) in &self.watches {
            let missed = match kind {
                WatchKind::Data | WatchKind::Exist => {
                    checks.change_between(path, *since, zxid).map(|(at, _)| at)
                }
                WatchKind::Child => checks.child_change_between(path, *since, zxid),
            };
            if let Some(missed) = missed {
                let text = format!(
                    "{}: a reply shows zxid {zxid:#x}, but the {kind:?} watch on {path} of {since:#x} has not told of {missed:#x}",
                    self.who()
                );
                return checks.fail(text);
            }
        }
        if let Some(watch) = &self.recursive
            && let Some(missed) = watch.missed(zxid, checks)
        {
            checks.fail(format!(
                "{}: a reply shows zxid {zxid:#x}, but the recursive watch on {} has not told of {missed:x?}",
                self.who(),
                watch.path()
            ));
        }
    }

    /// The watches that setWatches has left, as of the zxid of its reply: nothing has happened to them
    /// that it had to tell.
    fn check_watches_left(&self, zxid: i64, checks: &mut Checks) {
        for ((kind, path), since) in &self.watches {
            let missed = match kind {
                WatchKind::Data => checks.change_between(path, *since, zxid).map(|(at, _)| at),
                WatchKind::Child => checks.child_change_between(path, *since, zxid),
                // It only looks whether the znode is there.
                WatchKind::Exist => checks.change_at(path, zxid).and_then(|(at, made)| {
                    (made != ChangeKind::Deleted && at > *since).then_some(at)
                }),
            };
            if let Some(missed) = missed {
                let text = format!(
                    "{}: set again at zxid {zxid:#x}, the {kind:?} watch on {path} of {since:#x} has not told of {missed:#x}",
                    self.who()
                );
                return checks.fail(text);
            }
        }
    }

    pub(super) fn take_event(&mut self, zxid: i64, body: &[u8], checks: &mut Checks) {
        checks.counters.events += 1;
        let event: Option<WatcherEvent<'_>> = wire::read(body);
        let Some((path, kind)) = event.and_then(|event| {
            let kind = EventType::from_code(event.kind)?;
            Some((event.path?.into_owned(), kind))
        }) else {
            return checks.fail(format!("{}: an event does not decode", self.who()));
        };
        if zxid != -1 && zxid <= self.reply_zxid {
            checks.fail(format!(
                "{}: {kind:?} of {path} with zxid {zxid:#x} came behind a reply of {:#x}",
                self.who(),
                self.reply_zxid
            ));
        }
        let kinds: &[WatchKind] = match kind {
            EventType::NodeChildrenChanged => &[WatchKind::Child],
            EventType::NodeCreated | EventType::NodeDataChanged => {
                &[WatchKind::Data, WatchKind::Exist]
            }
            EventType::NodeDeleted => &[WatchKind::Data, WatchKind::Exist, WatchKind::Child],
        };
        let mut expected = self.take_recursive(zxid, &path, kind, checks);
        for kind in kinds {
            let Some(since) = self.watches.remove(&(*kind, path.clone())) else {
                continue;
            };
            expected = true;
            if zxid == -1 || self.resyncing {
                continue;
            }
            let first = match kind {
                WatchKind::Data | WatchKind::Exist => checks
                    .change_between(&path, since, i64::MAX)
                    .map(|(at, _)| at),
                WatchKind::Child => checks.child_change_between(&path, since, i64::MAX),
            };
            if first != Some(zxid) {
                checks.fail(format!(
                    "{}: the {kind:?} watch on {path} of {since:#x} told of {zxid:x?}, the first change is {first:x?}",
                    self.who()
                ));
            }
        }
        if !expected {
            checks.fail(format!(
                "{}: {kind:?} of {path} (zxid {zxid:#x}) comes without a watch",
                self.who()
            ));
        }
    }

    /// Whether the recursive watch has to do with an event; what setWatches makes up is none of its.
    fn take_recursive(
        &mut self,
        zxid: i64,
        path: &str,
        kind: EventType,
        checks: &mut Checks,
    ) -> bool {
        let who = self.who();
        let change = match kind {
            EventType::NodeCreated => ChangeKind::Created,
            EventType::NodeDeleted => ChangeKind::Deleted,
            EventType::NodeDataChanged => ChangeKind::DataChanged,
            EventType::NodeChildrenChanged => return false,
        };
        match &mut self.recursive {
            Some(watch) if zxid != -1 && watch.covers(path) => {
                if let Err(text) = watch.take(&(zxid, path.into(), change), checks) {
                    checks.fail(format!("{who}: {text}"));
                }
                true
            }
            _ => false,
        }
    }

    pub(super) fn watch(&mut self, kind: WatchKind, path: &str, zxid: i64) {
        let since = self.watches.entry((kind, path.into()));
        since.or_insert(zxid);
    }

    pub(super) fn take_reply(
        &mut self,
        now: Micros,
        header: &ReplyHeader,
        body: &[u8],
        sent: Sent,
        checks: &mut Checks,
        intents: &mut Vec<Intent>,
    ) {
        let who = self.who();
        let (zxid, code) = (header.zxid, header.err);
        let ret = checks.instant();
        if sent.kind.is_write() {
            if code == -112 {
                // The session ended; the server closes the connection behind this.
                lose(&sent, checks);
                return;
            }
            // The end of a local session takes no zxid.
            let is_told =
                !matches!(sent.kind, Kind::Close) || !checks.sessions.is_local(self.session);
            if code != -1 && code != -118 && is_told {
                checks.acknowledged(&who, zxid, sent.floor);
                self.written_at = now;
            }
        }
        match &sent.kind {
            Kind::Create {
                path,
                value,
                is_lock,
            } => {
                let created: Option<CreateResponse<'_>> = wire::read(body);
                let name = created
                    .and_then(|created| created.path)
                    .map(|name| name.into_owned());
                if code == 0 {
                    let Some(name) = name else {
                        return checks.fail(format!("{who}: create does not decode"));
                    };
                    checks.expect_change(&who, &name, zxid, ChangeKind::Created);
                    if *is_lock {
                        self.lock = Some((name, zxid));
                        self.holds = false;
                    }
                }
                if let Some(outcome) = checks::outcome(code, 0) {
                    let action = Action::Create(*value, outcome);
                    checks.record(path, sent.call, Some(ret), action);
                }
                self.versions.insert(path.clone(), 0);
            }
            Kind::Set {
                path,
                value,
                expected,
            } => {
                let mut version = 0;
                if code == 0 {
                    let Some(answer) = wire::read::<SetDataResponse>(body) else {
                        return checks.fail(format!("{who}: setData does not decode"));
                    };
                    version = answer.stat.version;
                    if answer.stat.mzxid != zxid {
                        checks.fail(format!(
                            "{who}: setData shows mzxid {:#x}",
                            answer.stat.mzxid
                        ));
                    }
                    checks.expect_change(&who, path, zxid, ChangeKind::DataChanged);
                    self.versions.insert(path.clone(), version);
                } else {
                    self.versions.remove(path);
                }
                if let Some(outcome) = checks::outcome(code, version) {
                    let action = Action::Set(*value, *expected, outcome);
                    checks.record(path, sent.call, Some(ret), action);
                }
            }
            Kind::Delete { path, expected } => {
                if code == 0 {
                    checks.expect_change(&who, path, zxid, ChangeKind::Deleted);
                }
                if let Some(outcome) = checks::outcome(code, 0) {
                    let action = Action::Delete(*expected, outcome);
                    checks.record(path, sent.call, Some(ret), action);
                }
                self.versions.remove(path);
            }
            Kind::Multi { parts } => {
                self.take_multi(&who, parts, body, code, zxid, &sent, ret, checks)
            }
            Kind::Get { path, watch } => {
                let answer: Option<GetDataResponse<'_>> = wire::read(body);
                let seen = match (code, answer) {
                    (0, Some(answer)) => {
                        let value = answer
                            .data
                            .and_then(wire::value_of)
                            .filter(|value| *value != 0);
                        Some((value, answer.stat))
                    }
                    (-101, _) => None,
                    _ => return checks.fail(format!("{who}: getData of {path} gives {code}")),
                };
                if path != "/guard" && path != wire::CONFIG_PATH {
                    let shown = seen.map(|(value, stat)| (value, stat.mzxid));
                    checks.saw(&who, path, zxid, shown);
                }
                if let Some((call, floor)) = sent.fresh {
                    self.check_fresh(&who, path, zxid, floor, checks);
                    let state = seen.map(|(value, stat)| (value.unwrap_or(0), stat.version));
                    checks.record(path, call, Some(ret), Action::Read(state));
                }
                match seen {
                    Some((_, stat)) => {
                        self.versions.insert(path.clone(), stat.version);
                        if *watch {
                            self.watch(WatchKind::Data, path, zxid);
                        }
                    }
                    None => {
                        self.versions.remove(path);
                    }
                }
            }
            Kind::Exists { path, watch } => {
                let answer: Option<ExistsResponse> = wire::read(body);
                let seen = match (code, answer) {
                    (0, Some(answer)) => Some(answer.stat),
                    (-101, _) => None,
                    _ => return checks.fail(format!("{who}: exists of {path} gives {code}")),
                };
                checks.saw(&who, path, zxid, seen.map(|stat| (None, stat.mzxid)));
                if let Some((_, floor)) = sent.fresh {
                    self.check_fresh(&who, path, zxid, floor, checks);
                }
                if *watch {
                    let kind = match seen {
                        Some(_) => WatchKind::Data,
                        None => WatchKind::Exist,
                    };
                    self.watch(kind, path, zxid);
                }
            }
            Kind::Children { path, watch } => {
                let answer: Option<GetChildrenResponse<'_>> = wire::read(body);
                if let Some((_, floor)) = sent.fresh {
                    self.check_fresh(&who, path, zxid, floor, checks);
                }
                if code == 0
                    && let Some(answer) = answer
                {
                    checks.counters.reads += 1;
                    if *watch {
                        self.watch(WatchKind::Child, path, zxid);
                    }
                    let mut names: Vec<String> = answer
                        .children
                        .unwrap_or_default()
                        .into_iter()
                        .flatten()
                        .map(|name| name.into_owned())
                        .collect();
                    names.sort_by_key(|name| name.rsplit('-').next().map(str::to_string));
                    if path == "/l"
                        && let Some((mine, _)) = &self.lock
                    {
                        let first = names.first().map(|name| format!("/l/{name}"));
                        self.holds = first.as_ref() == Some(mine);
                        if !names.iter().any(|name| format!("/l/{name}") == *mine) {
                            checks.fail(format!("{who}: its ephemeral {mine} is gone, it lives"));
                        }
                    }
                }
            }
            Kind::Reconfig => {
                checks.counters.reconfigs += u64::from(code == 0);
            }
            Kind::SetWatches => {
                if code != 0 {
                    checks.fail(format!("{who}: setWatches gives {code}"));
                }
                self.resyncing = false;
                self.check_watches_left(zxid, checks);
                for since in self.watches.values_mut() {
                    *since = zxid;
                }
                if let Some(watch) = &mut self.recursive {
                    watch.set(zxid, checks);
                }
            }
            Kind::AddWatch => {
                if code != 0 {
                    checks.fail(format!("{who}: addWatch gives {code}"));
                }
                let path = self.habits.watches_below;
                if let (None, Some(path)) = (&self.recursive, path) {
                    self.recursive = Some(RecursiveWatch::new(path));
                }
                if let Some(watch) = &mut self.recursive {
                    watch.set(zxid, checks);
                }
            }
            Kind::Sync | Kind::Ping => {
                if code != 0 {
                    checks.fail(format!("{who}: {:?} gives {code}", sent.kind));
                }
            }
            Kind::Close => {
                self.forget_session();
                intents.push(Intent::Close);
                self.parted(now, checks);
            }
        }
    }

    pub(super) fn check_fresh(
        &self,
        who: &str,
        path: &str,
        zxid: i64,
        floor: i64,
        checks: &mut Checks,
    ) {
        checks.counters.synced_reads += 1;
        if zxid < floor {
            checks.fail(format!(
                "{who}: a linearizable read of {path} is of zxid {zxid:#x}, but {floor:#x} was answered before it was asked"
            ));
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one reply")]
    pub(super) fn take_multi(
        &mut self,
        who: &str,
        parts: &[Part],
        body: &[u8],
        code: i32,
        zxid: i64,
        sent: &Sent,
        ret: u64,
        checks: &mut Checks,
    ) {
        let failed = code != 0 || body.first_chunk::<4>() == Some(&[0xFF; 4]);
        if failed {
            return;
        }
        for part in parts {
            let Part::Set {
                path,
                data,
                expected,
            } = part
            else {
                continue;
            };
            checks.expect_change(who, path, zxid, ChangeKind::DataChanged);
            if path == "/guard" {
                continue;
            }
            // The version is not read: the change itself was compared above.
            let value = wire::value_of(data).unwrap_or(0);
            let action = Action::Set(value, *expected, Outcome::Done(expected + 1));
            checks.record(path, sent.call, Some(ret), action);
            self.versions.insert(path.clone(), expected + 1);
        }
    }
}
