//! Log lines about peers that are said once and not at every attempt.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Instant;

use parking_lot::Mutex;

use crate::limits::{PEER_COMPLAINT_INTERVAL, PEER_COMPLAINTS_MAX};

/// Whom a complaint is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum About {
    /// A peer that we dial.
    Dialed(u64),
    /// A peer that dials us.
    Accepted(u64),
    /// A peer that an image is fetched from, or sent to.
    Image(u64),
    /// A machine that did not say who it is.
    Stranger(IpAddr),
}

/// What was said about whom, and when.
#[derive(Debug, Default)]
pub(super) struct Complaints {
    said: Mutex<HashMap<(About, String), Instant>>,
}

impl Complaints {
    /// Whether this is to be said: it was not, or that is long ago.
    pub(super) fn is_news(&self, about: About, reason: &str) -> bool {
        let mut said = self.said.lock();
        let now = Instant::now();
        let is_old = |at: &Instant| now.duration_since(*at) >= PEER_COMPLAINT_INTERVAL;
        let complaint = (about, reason.to_owned());
        if said.get(&complaint).is_some_and(|at| !is_old(at)) {
            return false;
        }
        if said.len() >= PEER_COMPLAINTS_MAX {
            said.retain(|_, at| !is_old(at));
        }
        if said.len() >= PEER_COMPLAINTS_MAX {
            return false;
        }
        said.insert(complaint, now);
        true
    }

    /// [`Complaints::is_news`] for a reason that names amounts or places, which are others every time.
    pub(super) fn is_news_but_for_numbers(&self, about: About, reason: &str) -> bool {
        let gist: String = reason.chars().filter(|c| !c.is_ascii_digit()).collect();
        self.is_news(about, &gist)
    }

    /// The reasons are gone: the next complaint is news again.
    pub(super) fn settle(&self, about: About) {
        self.said.lock().retain(|(known, _), _| *known != about);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_reasons_is_bounded() {
        let complaints = Complaints::default();
        let all = 0..PEER_COMPLAINTS_MAX + 10;
        let news = all.filter(|reason| complaints.is_news(About::Dialed(1), &reason.to_string()));
        assert_eq!(news.count(), PEER_COMPLAINTS_MAX);
    }

    #[test]
    fn other_numbers_are_no_news() {
        let complaints = Complaints::default();
        let is_news = |reason| complaints.is_news_but_for_numbers(About::Image(1), reason);
        assert!(is_news("10 of 20 bytes are missing"));
        assert!(!is_news("9 of 20 bytes are missing"));
        assert!(is_news("the image is not there any more"));
    }

    #[test]
    fn the_same_is_said_once() {
        let complaints = Complaints::default();
        assert!(complaints.is_news(About::Dialed(1), "a"));
        assert!(!complaints.is_news(About::Dialed(1), "a"));
        assert!(complaints.is_news(About::Accepted(1), "a"));
        assert!(complaints.is_news(About::Dialed(1), "b"));
        assert!(!complaints.is_news(About::Dialed(1), "a"));
        complaints.settle(About::Dialed(1));
        assert!(complaints.is_news(About::Dialed(1), "b"));
    }
}
