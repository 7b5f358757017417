//! Figures of ZooKeeper that count what does not happen here. Dashboards read them, so they are there, and 0; a part of
//! the server that comes to have one of them takes it from here. Others without a counterpart are left out.

use super::counter::Told;
use super::page::{Figures, Page};
use super::summary::Percentiles;

/// What never happens here.
pub(super) struct Absent;

/// Watches of closed connections are removed at once; replies are not cached; a leader with a quorum that does not follow
/// it steps down by raft's rules; an error that cannot be recovered from ends the process.
const COUNTERS: [&str; 9] = [
    "dead_watchers_queued",
    "dead_watchers_cleared",
    "response_packet_cache_hits",
    "response_packet_cache_misses",
    "response_packet_get_children_cache_hits",
    "response_packet_get_children_cache_misses",
    "quit_leading_due_to_disloyal_voter",
    "unrecoverable_error_count",
    "add_dead_watcher_stall_time",
];

impl Figures for Absent {
    fn tell(&self, page: &mut dyn Page) {
        for name in COUNTERS {
            page.counter(name, &Told(0));
        }
        page.percentiles("dead_watchers_cleaner_latency", &Percentiles::default());
    }
}
