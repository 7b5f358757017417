//! The handshake: checks in the order that clients rely on, then the log opens or resumes the session.

use quenda_proto::connect::{Handshake, PASSWORD_LEN, encode_response};
use quenda_proto::frame::OpenFrame;
use quenda_proto::records::ConnectRequest;
use quenda_proto::{ErrorCode, Op};
use quenda_tree::command::Command;
use quenda_tree::{Applied, SessionEffect};

use crate::connection::{CloseReason, Connection, Phase};
use crate::gates::Newcomer;
use crate::local_sessions::LocalSessions;
use crate::observe::Answered;
use crate::request::meter;
use crate::world::{Proposals, ServiceMode, World};

/// A handshake that waits for the log.
#[derive(Debug)]
pub(crate) struct Handshaking {
    /// The read-only byte of the answer, which carries one if the request did.
    read_only: Option<bool>,
}

impl Connection {
    pub(crate) fn take_handshake(
        &mut self,
        payload: &[u8],
        world: &World<'_>,
        proposals: &mut Proposals,
    ) {
        if world.service == ServiceMode::NotServing {
            return self.close(CloseReason::NotServing);
        }
        let Ok(handshake) = Handshake::decode(payload) else {
            return self.close(CloseReason::Handshake);
        };
        world.meter.session_asked(handshake.request.session_id != 0);
        let newcomer = match handshake.request.session_id {
            0 if world.service == ServiceMode::ReadOnly || world.local_sessions.is_some() => {
                Newcomer::OpensLocally
            }
            0 => Newcomer::Opens,
            _ => Newcomer::Resumes,
        };
        let admission = world.gates.admission;
        if admission.is_some_and(|admission| !admission.admit(newcomer, world.now_ms)) {
            return self.close(CloseReason::SessionThrottled);
        }
        let read_only = world.service == ServiceMode::ReadOnly;
        if read_only && handshake.read_only != Some(true) {
            return self.close(CloseReason::ReadOnly);
        }
        let request = &handshake.request;
        let applied = world.tree.last_zxid();
        if request.last_zxid_seen > applied {
            let seen = request.last_zxid_seen;
            return self.close(CloseReason::ClientAhead { seen, applied });
        }
        self.timeout_ms = self.settings.negotiate_timeout(request.time_out);
        self.last_touch_ms = world.now_ms;
        let handshaking = Handshaking {
            read_only: handshake.read_only.map(|_| read_only),
        };
        if read_only {
            return self.open_read_only(&handshaking, request, world, proposals);
        }
        if let Some(sessions) = world.local_sessions
            && let Some(settled) = self.take_local(request, sessions, world, proposals)
        {
            return match settled {
                true => {
                    let is_new = request.session_id == 0;
                    let zxid = world.tree.last_zxid();
                    self.establish(&handshaking, is_new.then_some(zxid), world);
                }
                false => self.await_settlement(handshaking, proposals),
            };
        }
        let Some(command) = self.session_command(request, world) else {
            return self.refuse(&handshaking);
        };
        proposals.push(&command);
        self.phase = Phase::Handshaking(handshaking);
    }

    /// `None` when the password cannot be one of ours.
    fn session_command(
        &mut self,
        request: &ConnectRequest<'_>,
        world: &World<'_>,
    ) -> Option<Command<'static>> {
        let origin = self.origin();
        let timeout_ms = self.timeout_ms;
        if request.session_id == 0 {
            self.session = self.new_session_id(world);
            return Some(Command::OpenSession {
                origin,
                session: self.session,
                timeout_ms,
            });
        }
        self.session = request.session_id;
        Some(Command::ResumeSession {
            origin,
            session: self.session,
            timeout_ms,
            password: request.passwd?.try_into().ok()?,
        })
    }

    fn new_session_id(&self, world: &World<'_>) -> i64 {
        world
            .session_ids
            .next_behind(world.tree.newest_session(self.member))
    }

    /// A session that this member keeps for itself while it has no quorum, or one that it gave out
    /// before. A session of the cluster cannot be served.
    fn open_read_only(
        &mut self,
        handshaking: &Handshaking,
        request: &ConnectRequest<'_>,
        world: &World<'_>,
        proposals: &mut Proposals,
    ) {
        let password = request.passwd.and_then(|bytes| bytes.try_into().ok());
        let is_ours = |id| password.is_some_and(|bytes| world.tree.is_local_session(id, bytes));
        let kept = world
            .local_sessions
            .and_then(|sessions| self.resume_local(request, sessions, world, proposals));
        if kept.is_some() {
            self.read_only = true;
            return self.establish(handshaking, None, world);
        }
        let session = match request.session_id {
            0 => self.new_session_id(world),
            id if world.tree.session(id).is_some() => return self.close(CloseReason::ReadOnly),
            id if is_ours(id) => id,
            _ => return self.refuse(handshaking),
        };
        self.session = session;
        self.local = true;
        self.read_only = true;
        self.phase = Phase::Established;
        self.stats.established_ms = world.time_ms;
        let password = world.tree.local_session_password(session);
        self.answer_handshake(handshaking, session, self.timeout_ms, &password);
    }

    /// A session that this member keeps for itself, or one that it has. `None`: it is the log's affair. False
    /// if something of an earlier connection may be on its way.
    fn take_local(
        &mut self,
        request: &ConnectRequest<'_>,
        sessions: &dyn LocalSessions,
        world: &World<'_>,
        proposals: &mut Proposals,
    ) -> Option<bool> {
        if request.session_id != 0 {
            return self.resume_local(request, sessions, world, proposals);
        }
        let newest = world.tree.newest_session(self.member);
        self.session = world.session_ids.next_reserved(newest)?;
        self.local = true;
        self.generation = world.tree.local_generation();
        sessions.open(self.session, self.timeout_ms, self.id, world.now_ms);
        Some(true)
    }

    fn resume_local(
        &mut self,
        request: &ConnectRequest<'_>,
        sessions: &dyn LocalSessions,
        world: &World<'_>,
        proposals: &mut Proposals,
    ) -> Option<bool> {
        let session = request.session_id;
        let password = request.passwd.and_then(|bytes| bytes.try_into().ok())?;
        if !world.tree.is_session_password(session, password) {
            return None;
        }
        let takeover = sessions.resume(session, self.timeout_ms, self.id, world.now_ms)?;
        self.session = session;
        self.local = true;
        self.generation = world.tree.local_generation();
        proposals.displaced = takeover.before;
        self.unsettled = takeover.unsettled || takeover.before.is_some();
        Some(!self.unsettled)
    }

    /// Lets an entry go through the log that changes nothing: when it comes back, so has everything that an
    /// earlier connection of the session has sent there, or it never will. No client has this password.
    fn await_settlement(&mut self, handshaking: Handshaking, proposals: &mut Proposals) {
        proposals.push(&Command::ResumeSession {
            origin: self.origin(),
            session: self.session,
            timeout_ms: self.timeout_ms,
            password: [0; PASSWORD_LEN],
        });
        self.phase = Phase::Handshaking(handshaking);
    }

    pub(crate) fn complete_handshake(
        &mut self,
        handshaking: &Handshaking,
        applied: &Applied,
        world: &World<'_>,
    ) {
        if self.local {
            self.unsettled = false;
            return self.establish(handshaking, None, world);
        }
        let session = match applied.session {
            _ if applied.code != ErrorCode::Ok => None,
            SessionEffect::Opened { session } | SessionEffect::Resumed { session, .. } => {
                world.tree.session(session)
            }
            SessionEffect::Refused
            | SessionEffect::Closed { .. }
            | SessionEffect::Restored
            | SessionEffect::None => None,
        };
        let Some(session) = session else {
            return self.refuse(handshaking);
        };
        self.generation = session.generation;
        let is_new = matches!(applied.session, SessionEffect::Opened { .. });
        self.establish(handshaking, is_new.then_some(applied.zxid), world);
    }

    /// The client has its session; a new one was opened at this zxid.
    fn establish(&mut self, handshaking: &Handshaking, opened: Option<i64>, world: &World<'_>) {
        self.phase = Phase::Established;
        self.stats.established_ms = world.time_ms;
        if let Some(zxid) = opened {
            self.stats
                .opened_session(zxid, self.last_touch_ms, world.now_ms);
            meter(world, Op::CreateSession, self.last_touch_ms, 0);
        }
        let answered = Answered {
            op: Op::CreateSession,
            sequential: false,
            bytes_in: 0,
            bytes_out: 0,
            received_ms: self.last_touch_ms,
            now_ms: world.now_ms,
        };
        let settings = &self.settings.observation;
        self.observer.answered(&answered, || &[], settings);
        let password = world.tree.session_password(self.session);
        self.answer_handshake(handshaking, self.session, self.timeout_ms, &password);
    }

    fn refuse(&mut self, handshaking: &Handshaking) {
        self.phase = Phase::Fresh;
        self.answer_handshake(handshaking, 0, 0, &[0; PASSWORD_LEN]);
        self.close(CloseReason::SessionRefused);
    }

    fn answer_handshake(
        &mut self,
        handshaking: &Handshaking,
        session: i64,
        timeout_ms: i32,
        password: &[u8; PASSWORD_LEN],
    ) {
        let frame = OpenFrame::start(&mut self.output);
        let read_only = handshaking.read_only;
        encode_response(&mut self.output, session, timeout_ms, password, read_only);
        frame.finish(&mut self.output);
        self.stats.sent += 1;
    }
}
