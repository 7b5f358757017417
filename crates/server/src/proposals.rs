//! Sizes of what this member proposed while it led.

use parking_lot::Mutex;

use crate::four_letter::ProposalSizes;

/// Sizes since the start or the last reset.
#[derive(Debug, Default)]
pub struct Proposals(Mutex<Option<ProposalSizes>>);

impl Proposals {
    /// Adds proposals of these sizes, in bytes.
    pub fn note(&self, sizes: impl Iterator<Item = usize>) {
        let mut sizes = sizes.map(|size| size as u64).peekable();
        if sizes.peek().is_none() {
            return;
        }
        let mut seen = self.0.lock();
        for last in sizes {
            let before = seen.map_or((last, last), |seen| (seen.min, seen.max));
            *seen = Some(ProposalSizes {
                last,
                min: before.0.min(last),
                max: before.1.max(last),
            });
        }
    }

    /// The sizes, if there was a proposal.
    pub fn sizes(&self) -> Option<ProposalSizes> {
        *self.0.lock()
    }

    /// Forgets all.
    pub fn reset(&self) {
        *self.0.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extremes_and_the_last_are_kept() {
        let proposals = Proposals::default();
        assert_eq!(proposals.sizes(), None);
        proposals.note([48, 87].into_iter());
        proposals.note([].into_iter());
        proposals.note([60].into_iter());
        let expected = ProposalSizes {
            last: 60,
            min: 48,
            max: 87,
        };
        assert_eq!(proposals.sizes(), Some(expected));
        proposals.reset();
        assert_eq!(proposals.sizes(), None);
    }
}
