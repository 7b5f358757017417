//! A persistent recursive watch: it tells of every change below a path, once and in the order of the log.

use quenda_tree::ChangeKind;

use crate::checks::Checks;

/// The watch of one client, as far as it knows of it.
#[derive(Debug)]
pub(super) struct RecursiveWatch {
    path: String,
    /// How many changes of the log it has told of or need not tell of; `None` as long as this connection
    /// has not set it.
    told: Option<usize>,
}

impl RecursiveWatch {
    pub(super) fn new(path: &str) -> RecursiveWatch {
        RecursiveWatch {
            path: path.into(),
            told: None,
        }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn covers(&self, changed: &str) -> bool {
        self.path == "/"
            || changed
                .strip_prefix(&self.path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The connection is gone: what happens until it is set again is not told.
    pub(super) fn parted(&mut self) {
        self.told = None;
    }

    /// A reply of this zxid has confirmed it. A second confirmation changes nothing.
    pub(super) fn set(&mut self, zxid: i64, checks: &Checks) {
        self.told
            .get_or_insert_with(|| checks.count_of_changes(zxid));
    }

    /// The change that it has to tell of next, and how many changes the log has up to there.
    fn next<'a>(&self, checks: &'a Checks) -> Option<(usize, &'a (i64, String, ChangeKind))> {
        let told = self.told?;
        let mut behind = checks.changes_behind(told).iter().zip(told + 1..);
        behind
            .find(|((_, changed, _), _)| self.covers(changed))
            .map(|(change, count)| (count, change))
    }

    /// An event: whether it is the one that has to come now.
    pub(super) fn take(
        &mut self,
        event: &(i64, String, ChangeKind),
        checks: &Checks,
    ) -> Result<(), String> {
        let next = self.next(checks);
        match next {
            Some((count, change)) if change == event => {
                self.told = Some(count);
                Ok(())
            }
            _ => Err(format!(
                "the recursive watch on {} told of {event:x?}, the next change is {:x?}",
                self.path,
                next.map(|(_, change)| change)
            )),
        }
    }

    /// The first change up to a zxid that it has not told of. A reply of this zxid must not be before it.
    pub(super) fn missed<'a>(
        &self,
        zxid: i64,
        checks: &'a Checks,
    ) -> Option<&'a (i64, String, ChangeKind)> {
        let (_, change) = self.next(checks)?;
        (change.0 <= zxid).then_some(change)
    }
}
