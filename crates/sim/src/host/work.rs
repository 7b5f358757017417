//! What the member asks for.

use bytes::Bytes;
use quenda_consensus::LogEntry;
use quenda_frontend::{CloseReason, Connection};
use quenda_node::{Service, Work};

use super::{Cx, Fetching, Host, State, is_alone, sync_mode};
use crate::delivery::Delivery;
use crate::event::Event;
use crate::schedule::MS;

impl Host {
    /// Does what the member asks for, until there is nothing more.
    pub fn drive(&mut self, cx: &mut Cx) {
        let now = cx.schedule.now();
        let (now_ms, time_ms) = (self.clock.monotonic_ms(now), self.clock.wall_ms(now));
        loop {
            let Some(process) = self.process_mut() else {
                return;
            };
            if process.installing.is_some() {
                break;
            }
            let Some(work) = process.member.drive(time_ms, now_ms) else {
                break;
            };
            self.note_leadership(cx);
            self.work(work, cx);
            if cx.checks.violation().is_some() {
                return;
            }
        }
        self.note_leadership(cx);
        self.follow_service(cx);
        self.serve_woken(cx);
        self.write_log(cx);
        self.begin_install(cx);
    }

    pub(super) fn note_leadership(&mut self, cx: &mut Cx) {
        let (id, now) = (self.id, cx.schedule.now());
        let Some(term) = self.leads() else {
            return;
        };
        let Some(process) = self.process_mut() else {
            return;
        };
        if process.led_term == term {
            return;
        }
        process.led_term = term;
        cx.say(format_args!("member {id} leads term {term}"));
        match cx.checks.sessions.leads(term, id, now) {
            Ok(is_new) => cx.checks.counters.leaders += u64::from(is_new),
            Err(text) => cx.fail(text),
        }
    }

    pub(super) fn follow_service(&mut self, cx: &mut Cx) {
        let id = self.id;
        let Some(process) = self.process_mut() else {
            return;
        };
        let service = process.member.service();
        let before = std::mem::replace(&mut process.service, service);
        if before == service {
            return;
        }
        cx.say(format_args!("member {id}: {before:?} -> {service:?}"));
        if service == Service::Alarmed {
            cx.fail(format!("member {id} is alarmed"));
        }
        if before == Service::Serving {
            self.close_where(CloseReason::NotServing, |_| true, cx);
        }
    }

    pub(super) fn work(&mut self, work: Work, cx: &mut Cx) {
        let (id, now) = (self.id, cx.schedule.now());
        if let Some(era) = work.abandoned {
            cx.say(format_args!(
                "member {id} abandons what is in flight: era {era}"
            ));
            self.close_where(CloseReason::Member, Connection::in_flight, cx);
        }
        let Some(process) = self.process_mut() else {
            return;
        };
        if let Some(install) = work.install {
            cx.say(format_args!(
                "member {id} is to install {}",
                install.image.index
            ));
            process.installing = Some(install);
        }
        if let Some((number, batch)) = work.persist {
            for entry in &batch.entries {
                cx.checks
                    .sessions
                    .appended(id, entry.index, entry.term, now);
            }
            process.log_queue.push((number, batch));
        }
        for outgoing in work.outgoing {
            self.send(outgoing.to, outgoing.frame, cx);
        }
        if !work.committed.is_empty() {
            self.apply(&work.committed, cx);
        }
        self.pass_barriers(&work.barriers, cx);
        let Some(process) = self.process_mut() else {
            return;
        };
        if let Some(request) = work.snapshot_wanted {
            cx.say(format_args!(
                "member {id} is to make an image for {}",
                request.to
            ));
            process.snapshot_wanted = Some(request);
        }
        if let Some(fetch) = work.fetch {
            cx.say(format_args!(
                "member {id} fetches {} from {}",
                fetch.index, fetch.from
            ));
            let pieces = *cx.rng.pick(&[2, 8, 60]);
            process.fetching = Some(Fetching {
                fetch,
                pieces,
                patience: 60,
            });
            let event = Event::Fetched(id, self.boot);
            cx.schedule.after(cx.rng.between(MS, 20 * MS), event);
        }
        self.offer_image(cx);
    }

    pub(super) fn send(&mut self, to: u64, frame: Bytes, cx: &mut Cx) {
        let (id, now) = (self.id, cx.schedule.now());
        let weather = &cx.net.weather;
        let (low, high) = weather.delay;
        let (loss, doubled, breaks) = (weather.loss, weather.doubled, weather.breaks);
        let datagrams = weather.datagrams;
        let at = now + cx.rng.between(low, high);
        cx.trace.note_bytes(&frame);
        if datagrams {
            let boot = cx.plan.any_boot();
            if !cx.net.is_open(id, to) || cx.rng.per_myriad(loss) {
                return;
            }
            if cx.rng.per_myriad(doubled) {
                let later = at + cx.rng.between(0, 50 * MS);
                cx.schedule
                    .at(later, Event::Datagram(id, to, boot, frame.clone()));
            }
            cx.schedule.at(at, Event::Datagram(id, to, boot, frame));
            return;
        }
        if cx.rng.per_myriad(breaks) {
            cx.say(format_args!("connection {id} -> {to} breaks"));
            if let Some(link) = cx.net.peers.get_mut(&(id, to)) {
                link.connection = 0;
                link.queue.clear();
            }
        }
        if !cx.net.enqueue(id, to, at, frame) {
            if let Some(process) = self.process_mut() {
                process.member.unreachable(to);
            }
            return;
        }
        let link = cx.net.peers.entry((id, to)).or_default();
        if !link.pumping {
            link.pumping = true;
            cx.schedule.at(at, Event::Pump(id, to));
        }
    }

    pub(super) fn apply(&mut self, committed: &[LogEntry], cx: &mut Cx) {
        let now = cx.schedule.now();
        let (now_ms, time_ms) = (self.clock.monotonic_ms(now), self.clock.wall_ms(now));
        let id = self.id;
        let State::Running(process) = &mut self.state else {
            return;
        };
        let process = &mut **process;
        for entry in committed {
            let service = process.service_mode();
            let mut delivery = Delivery {
                connections: &mut process.connections,
                by_session: &mut process.by_session,
                watches: &process.watches,
                session_ids: &process.session_ids,
                local: process.local.as_ref(),
                woken: &mut process.woken,
                service,
                sync: sync_mode(&cx.plan, process.alone),
                now_ms,
                time_ms,
                is_new: cx.checks.is_new(entry.index),
                entry: (entry.index, entry.term),
                now,
                touched: Vec::new(),
                closed: Vec::new(),
                opened: Vec::new(),
                checks: &mut cx.checks,
            };
            let applied = process.applier.apply(
                &mut process.tree,
                entry,
                &mut delivery,
                &mut process.effects,
            );
            let (mut touched, closed) = (delivery.touched, delivery.closed);
            touched.sort_unstable();
            touched.dedup();
            match applied {
                Ok(changes) => {
                    if changes && let Err(error) = process.member.apply_membership(entry) {
                        cx.say(format_args!(
                            "member {id}: membership without effect: {error}"
                        ));
                    }
                    if changes {
                        process.alone = is_alone(id, &process.member.membership());
                    }
                }
                Err(error) => return cx.fail(format!("member {id}: {error}")),
            }
            let tree = &process.tree;
            cx.checks
                .applied(id, entry.index, entry.term, tree, &touched, &closed);
        }
        if let Some(last) = committed.last() {
            process
                .member
                .applied(last.index, &process.effects, &process.tree, now_ms);
            process.effects.clear();
        }
        self.serve_woken(cx);
    }

    pub(super) fn pass_barriers(&mut self, barriers: &[u64], cx: &mut Cx) {
        let now = cx.schedule.now();
        let (now_ms, time_ms) = (self.clock.monotonic_ms(now), self.clock.wall_ms(now));
        let Some(process) = self.process_mut() else {
            return;
        };
        for link in barriers {
            let Some(mut served) = process.connections.remove(link) else {
                continue;
            };
            let world = process.world(now_ms, time_ms, cx);
            served.connection.complete_sync(&world);
            process.connections.insert(*link, served);
            process.woken.insert(*link);
        }
        self.serve_woken(cx);
    }
}
