//! What the task of a client's connection does.

use quenda_frontend::{CloseReason, Connection, Proposals, Received};

use super::{Cx, Host, Inbound};
use crate::network::Item;

impl Host {
    /// Lets a connection take what has come, and sends what comes of it.
    pub(super) fn serve(&mut self, link: u64, cx: &mut Cx) {
        let now = cx.schedule.now();
        let (now_ms, time_ms) = (self.clock.monotonic_ms(now), self.clock.wall_ms(now));
        let id = self.id;
        let Some(process) = self.process_mut() else {
            return;
        };
        loop {
            let Some(mut served) = process.connections.remove(&link) else {
                return;
            };
            let mut proposals = Proposals::default();
            let world = process.world(now_ms, time_ms, cx);
            let received = served
                .connection
                .receive(&mut served.input, &world, &mut proposals);
            if let Some(before) = proposals.displaced
                && let Some(served) = process.connections.get_mut(&before.0)
            {
                served.connection.close(CloseReason::SessionMoved);
                process.woken.insert(before.0);
            }
            let output = served.connection.take_output();
            if !output.is_empty() {
                cx.push_link(link, false, Item::Bytes(output));
            }
            let touched_ms = served.connection.last_touch_ms();
            if let Some(session) = served.connection.session()
                && touched_ms != served.touched_ms
            {
                served.touched_ms = touched_ms;
                match served.connection.is_local() {
                    true => cx.checks.sessions.local(session),
                    false => process.touched.push(session),
                }
                cx.checks.sessions.heard(session, id, now);
            }
            let again = served.connection.must_receive();
            process.connections.insert(link, served);
            let era = process.member.era();
            if !proposals.commands.is_empty() {
                let commands = std::mem::take(&mut proposals.commands);
                process.inbox.push_back(Inbound::Commands(era, commands));
            }
            for _ in 0..proposals.barriers {
                process.inbox.push_back(Inbound::Barrier(era, link));
            }
            if let Received::Close(reason) = received {
                cx.say(format_args!(
                    "member {id} closes connection {link}: {reason}"
                ));
                cx.push_link(link, false, Item::Close);
                process.remove(link);
                return;
            }
            if !again {
                return;
            }
        }
    }

    pub(super) fn serve_woken(&mut self, cx: &mut Cx) {
        while let Some(link) = self
            .process_mut()
            .and_then(|process| process.woken.pop_first())
        {
            self.serve(link, cx);
        }
        self.plan_core(cx);
    }

    pub(super) fn close_where(
        &mut self,
        reason: CloseReason,
        which: impl Fn(&Connection) -> bool,
        cx: &mut Cx,
    ) {
        if let Some(process) = self.process_mut() {
            for (link, served) in &mut process.connections {
                if which(&served.connection) {
                    served.connection.close(reason);
                    process.woken.insert(*link);
                }
            }
        }
        self.serve_woken(cx);
    }
}
