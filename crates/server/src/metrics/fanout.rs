//! Watches that fire: how many with one change, and how long it takes to tell their clients.

use std::time::Duration;

use quenda_proto::event::EventType;

use super::counter::Counter;
use super::histogram::Histogram;
use super::page::{Figures, Page, own};
use super::summary::Summary;

/// Figures of watches that fire.
#[derive(Debug)]
pub struct FanOut {
    created: Summary,
    deleted: Summary,
    changed: Summary,
    children: Summary,
    woken: Histogram,
    took: Histogram,
    events: Counter,
}

impl Default for FanOut {
    fn default() -> Self {
        FanOut {
            created: Summary::default(),
            deleted: Summary::default(),
            changed: Summary::default(),
            children: Summary::default(),
            woken: Histogram::sizes(),
            took: Histogram::latencies(),
            events: Counter::default(),
        }
    }
}

impl FanOut {
    /// One event goes to so many connections.
    pub fn event(&self, kind: EventType, connections: usize) {
        let summary = match kind {
            EventType::NodeCreated => &self.created,
            EventType::NodeDeleted => &self.deleted,
            EventType::NodeDataChanged => &self.changed,
            EventType::NodeChildrenChanged => &self.children,
        };
        summary.observe(connections as u64);
        self.events.add(connections as u64);
    }

    /// All events of one change were put into their clients' output.
    pub fn change(&self, connections: usize, took: Duration) {
        self.woken.observe(connections as u64);
        self.took.observe_duration(took);
    }
}

impl Figures for FanOut {
    fn tell(&self, page: &mut dyn Page) {
        page.summary("node_created_watch_count", &self.created);
        page.summary("node_deleted_watch_count", &self.deleted);
        page.summary("node_changed_watch_count", &self.changed);
        page.summary("node_children_watch_count", &self.children);
        page.own_counter(
            own(
                "quenda_watch_events_total",
                "Events of watches, one for each client told.",
            ),
            &[],
            &self.events,
        );
        page.own_histogram(
            own(
                "quenda_watch_fanout_clients",
                "Clients told of one change that anybody watched.",
            ),
            &[],
            &self.woken,
        );
        page.own_histogram(
            own(
                "quenda_watch_fanout_seconds",
                "Time to put the events of one such change into the clients' output.",
            ),
            &[],
            &self.took,
        );
    }
}
