//! Requests of this member's clients: how many, how long, how large the replies. Fed by every request.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use std::time::Duration;

use quenda_frontend::{Meter, NamedEnsemble};
use quenda_proto::Op;
use quenda_proto::op::OpKind;

use super::counter::{BusyCounter, Counter, Counts};
use super::page::{Figures, Page, own};
use super::startup::millis;
use super::summary::{Percentiles, Summary};

/// Bytes of the length in front of a reply.
const LENGTH_BYTES: usize = 4;

/// Figures of requests.
#[derive(Debug)]
pub struct Requests {
    /// To open or resume a session.
    sessions: BusyCounter,
    /// To resume one.
    resumes: BusyCounter,
    ensembles: [Counter; 3],
    proposed: BusyCounter,
    /// Of those, how many the core thread had taken at its last look.
    taken: AtomicU64,
    in_one_go: Summary,
    waited_ms: Percentiles,
    reads: Percentiles,
    updates: Percentiles,
    by_op: Vec<BusyCounter>,
    reply_bytes: BusyCounter,
    received_bytes: BusyCounter,
    event_bytes: BusyCounter,
    sizes: ReplySizes,
}

impl Default for Requests {
    fn default() -> Self {
        Requests {
            sessions: BusyCounter::default(),
            resumes: BusyCounter::default(),
            ensembles: Default::default(),
            proposed: BusyCounter::default(),
            taken: AtomicU64::new(0),
            in_one_go: Summary::default(),
            waited_ms: Percentiles::default(),
            reads: Percentiles::busy(),
            updates: Percentiles::busy(),
            by_op: Op::TABLE.iter().map(|_| BusyCounter::default()).collect(),
            reply_bytes: BusyCounter::default(),
            received_bytes: BusyCounter::default(),
            event_bytes: BusyCounter::default(),
            sizes: ReplySizes::default(),
        }
    }
}

/// Sizes of replies, in bytes; -1 before the first.
#[derive(Debug)]
struct ReplySizes {
    last: AtomicI64,
    min: AtomicU64,
    max: AtomicI64,
}

impl Default for ReplySizes {
    fn default() -> Self {
        ReplySizes {
            last: AtomicI64::new(-1),
            min: AtomicU64::new(u64::MAX),
            max: AtomicI64::new(-1),
        }
    }
}

impl ReplySizes {
    fn note(&self, bytes: usize) {
        let (size, signed) = (bytes as u64, bytes as i64);
        // Looked at first: what does not change must not move from one processor to the other.
        if self.last.load(Relaxed) != signed {
            self.last.store(signed, Relaxed);
        }
        if size < self.min.load(Relaxed) {
            self.min.fetch_min(size, Relaxed);
        }
        if signed > self.max.load(Relaxed) {
            self.max.fetch_max(signed, Relaxed);
        }
    }

    fn reset(&self) {
        self.last.store(-1, Relaxed);
        self.min.store(u64::MAX, Relaxed);
        self.max.store(-1, Relaxed);
    }
}

impl Requests {
    /// Bytes came from clients.
    pub fn received(&self, bytes: usize) {
        self.received_bytes.add(bytes as u64);
    }

    /// An event was put into a client's output.
    pub fn event(&self, bytes: usize) {
        self.event_bytes.add(bytes as u64);
    }

    /// Commands were handed to the core thread.
    pub fn proposed(&self, commands: usize) {
        self.proposed.add(commands as u64);
    }

    /// The core thread has taken what was there; the first of it had waited that long.
    pub fn taken(&self, waited: Duration) {
        let now = self.proposed.total();
        let before = self.taken.swap(now, Relaxed);
        self.in_one_go.observe(now.saturating_sub(before));
        self.waited_ms.observe(millis(waited));
    }

    /// Sizes of replies are forgotten, as by `srst`.
    pub fn reset_sizes(&self) {
        self.sizes.reset();
    }
}

impl Meter for Requests {
    fn answered(&self, op: Op, latency_ms: u64, reply_bytes: usize) {
        let updates = op.info().kind == OpKind::Write || op == Op::CreateSession;
        let latencies = if updates { &self.updates } else { &self.reads };
        latencies.observe(latency_ms);
        self.by_op[op as usize].add(1);
        // A new session's answer is no reply; ZooKeeper counts the sizes of those alone, and without their lengths.
        if reply_bytes > 0 {
            self.reply_bytes.add(reply_bytes as u64);
            self.sizes.note(reply_bytes.saturating_sub(LENGTH_BYTES));
        }
    }

    fn ensemble_named(&self, ensemble: NamedEnsemble) {
        self.ensembles[ensemble as usize].add(1);
    }

    fn session_asked(&self, resumes: bool) {
        self.sessions.add(1);
        if resumes {
            self.resumes.add(1);
        }
    }
}

impl Figures for Requests {
    fn tell(&self, page: &mut dyn Page) {
        let sizes = &self.sizes;
        let min = i64::try_from(sizes.min.load(Relaxed)).unwrap_or(-1);
        page.gauge("last_client_response_size", sizes.last.load(Relaxed));
        page.gauge("min_client_response_size", min);
        page.gauge("max_client_response_size", sizes.max.load(Relaxed));
        page.counter("connection_request_count", &self.sessions);
        page.counter("connection_revalidate_count", &self.resumes);
        let [own_ensemble, other, any] = &self.ensembles;
        page.counter("ensemble_auth_success", own_ensemble);
        page.counter("ensemble_auth_fail", other);
        page.counter("ensemble_auth_skip", any);
        page.counter("prep_processor_request_queued", &self.proposed);
        page.summary("prep_processor_queue_size", &self.in_one_go);
        page.percentiles("prep_processor_queue_time_ms", &self.waited_ms);
        page.counter("bytes_received_count", &self.received_bytes);
        page.counter("response_bytes", &self.reply_bytes);
        page.counter("watch_bytes", &self.event_bytes);
        page.percentiles("readlatency", &self.reads);
        page.percentiles("updatelatency", &self.updates);
        for (info, count) in Op::TABLE.iter().zip(&self.by_op) {
            let labels = [("op", info.name)];
            let requests = own(
                "quenda_requests_total",
                "Requests of this member's clients that were answered.",
            );
            page.own_counter(requests, &labels, count as &dyn Counts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::MntrPage;

    fn lines(requests: &Requests) -> String {
        let mut page = MntrPage::default();
        requests.tell(&mut page);
        page.text()
    }

    #[test]
    fn reads_and_updates_are_told_apart() {
        let requests = Requests::default();
        assert!(lines(&requests).starts_with(
            "zk_last_client_response_size\t-1\nzk_min_client_response_size\t-1\nzk_max_client_response_size\t-1\n"
        ));
        requests.answered(Op::CreateSession, 9, 0);
        requests.answered(Op::SetData, 7, 88);
        requests.answered(Op::Ping, 0, 20);
        requests.answered(Op::GetData, 1, 120);
        let text = lines(&requests);
        for line in [
            "zk_last_client_response_size\t116",
            "zk_min_client_response_size\t16",
            "zk_max_client_response_size\t116",
            "zk_response_bytes\t228",
            "zk_cnt_updatelatency\t2",
            "zk_max_updatelatency\t9",
            "zk_cnt_readlatency\t2",
            "zk_p99_readlatency\t1",
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line} in {text}");
        }
    }
}
