//! Clients and their connections.

use super::Sim;
use crate::client::Intent;
use crate::event::Event;
use crate::host::State;
use crate::network::{ClientLink, Item, Pipe};
use crate::schedule::MS;

impl Sim {
    pub(super) fn look(&mut self, id: usize) {
        let now = self.cx.schedule.now();
        self.check_progress(now);
        let intents = self.clients[id].look(now, &mut self.cx.checks);
        self.fulfil(id, intents);
        let pause = self.clients[id].pause();
        self.cx.schedule.after(pause, Event::Look(id));
    }

    pub(super) fn fulfil(&mut self, id: usize, intents: Vec<Intent>) {
        for intent in intents {
            match intent {
                Intent::Connect(member) => {
                    let number = self.cx.net.number();
                    let link = ClientLink {
                        client: id,
                        member,
                        boot: 0,
                        to_member: Pipe::default(),
                        to_client: Pipe::default(),
                    };
                    self.cx.net.links.insert(number, link);
                    self.links[id] = Some(number);
                    self.cx
                        .say(format_args!("client {id} dials {member}: {number}"));
                    self.cx.push_link(number, true, Item::Open);
                }
                Intent::Send(bytes) => {
                    if let Some(link) = self.links[id] {
                        self.cx.push_link(link, true, Item::Bytes(bytes));
                    }
                }
                Intent::Close => {
                    if let Some(link) = self.links[id].take() {
                        self.cx.push_link(link, true, Item::Close);
                    }
                }
                Intent::Abandon => self.links[id] = None,
            }
        }
    }

    pub(super) fn pipe(&mut self, number: u64, to_member: bool) {
        let now = self.cx.schedule.now();
        let Some(link) = self.cx.net.links.get_mut(&number) else {
            return;
        };
        let (client, member) = (link.client, link.member);
        let host = self.hosts.get(&member);
        let paused = host.map_or(0, |host| host.paused_until);
        if self.cx.net.clients_blocked.contains(&(client, member)) {
            self.cx
                .schedule
                .after(25 * MS, Event::Pipe(number, to_member));
            return;
        }
        if to_member && paused > now {
            self.cx.schedule.at(paused, Event::Pipe(number, to_member));
            return;
        }
        let pipe = if to_member {
            &mut link.to_member
        } else {
            &mut link.to_client
        };
        let Some((_, item)) = pipe.queue.pop_front() else {
            pipe.pumping = false;
            return;
        };
        match pipe.queue.front() {
            Some((at, _)) => self.cx.schedule.at(*at, Event::Pipe(number, to_member)),
            None => pipe.pumping = false,
        }
        match to_member {
            true => self.arrive_at_member(number, client, member, item),
            false => self.arrive_at_client(number, client, item),
        }
    }

    pub(super) fn arrive_at_member(&mut self, number: u64, client: usize, member: u64, item: Item) {
        let Some(host) = self.hosts.get_mut(&member) else {
            return;
        };
        if let State::Down { powered } = host.state {
            if powered {
                self.cx.push_link(number, false, Item::Close);
            }
            return;
        }
        let boot = host.boot;
        let known = self.cx.net.links.get(&number).map_or(0, |link| link.boot);
        match item {
            Item::Open => {
                let taken = host.accept(number, client, &mut self.cx);
                if let Some(link) = self.cx.net.links.get_mut(&number) {
                    link.boot = boot;
                }
                let answer = if taken { Item::Open } else { Item::Close };
                self.cx.push_link(number, false, answer);
            }
            Item::Bytes(bytes) if known == boot => host.client_bytes(number, &bytes, &mut self.cx),
            Item::Bytes(_) => self.cx.push_link(number, false, Item::Close),
            Item::Close => {
                host.client_gone(number);
                self.cx.net.links.remove(&number);
            }
        }
    }

    pub(super) fn arrive_at_client(&mut self, number: u64, id: usize, item: Item) {
        let now = self.cx.schedule.now();
        if matches!(item, Item::Close) {
            self.cx.net.links.remove(&number);
        }
        if self.links[id] != Some(number) {
            return;
        }
        let client = &mut self.clients[id];
        match item {
            Item::Open => {
                let hello = client.connected(now);
                self.cx.push_link(number, true, Item::Bytes(hello));
            }
            Item::Bytes(bytes) => {
                let intents = client.receive(now, &bytes, &mut self.cx.checks);
                self.fulfil(id, intents);
            }
            Item::Close => {
                client.parted(now, &mut self.cx.checks);
                self.links[id] = None;
                self.cx.say(format_args!("client {id} loses {number}"));
            }
        }
    }
}
