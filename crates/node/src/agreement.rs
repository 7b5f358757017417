//! Whether the members hold the same state: digests of the same entry are compared.

use std::collections::BTreeMap;

use crate::limits::{DISPUTE_TICKS, SAMPLE_SPACING, SAMPLES};

/// Digests of applied entries, this member's own and what the others told.
#[derive(Debug)]
pub struct Agreement {
    member: u64,
    /// By index; of the newest entries one each, of older ones the spaced ones.
    own: BTreeMap<u64, u64>,
    /// By index, what each other member has told.
    told: BTreeMap<u64, BTreeMap<u64, u64>>,
    /// Since when a difference has been waiting for a majority.
    disputed_since: Option<u64>,
    alarm: Option<Difference>,
    mismatches: u64,
}

/// This member's state is not that of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// Index of the entry behind which it shows.
    pub index: u64,
    /// Digest of this member.
    pub own: u64,
    /// Digest of the others.
    pub others: u64,
}

impl Agreement {
    /// For this member.
    pub fn new(member: u64) -> Agreement {
        Agreement {
            member,
            own: BTreeMap::new(),
            told: BTreeMap::new(),
            disputed_since: None,
            alarm: None,
            mismatches: 0,
        }
    }

    /// Entries were applied here.
    pub fn applied(&mut self, samples: &[(u64, u64)]) {
        for (index, own) in samples {
            if let Some(told) = self.told.get(index) {
                let differ = told.values().filter(|other| *other != own);
                self.mismatches += differ.count() as u64;
            }
            self.own.insert(*index, *own);
        }
        if self.own.len() > 2 * SAMPLES
            && let Some((newest, _)) = self.own.last_key_value()
        {
            let recent = newest.saturating_sub(SAMPLES as u64);
            let oldest = newest.saturating_sub(SAMPLES as u64 * SAMPLE_SPACING / 2);
            self.own.retain(|index, _| {
                *index > recent || (*index > oldest && index.is_multiple_of(SAMPLE_SPACING))
            });
        }
    }

    /// The state was replaced by a snapshot: what was remembered is of the past.
    pub fn restart(&mut self) {
        self.own.clear();
        self.disputed_since = None;
        self.alarm = None;
    }

    /// The alarm, if there is one.
    pub fn difference(&self) -> Option<Difference> {
        self.alarm
    }

    /// How often a digest of another member was another one than this member's of the same entry, whoever
    /// of the two is right.
    pub fn mismatches(&self) -> u64 {
        self.mismatches
    }

    /// The newest entry that was applied here, and its digest.
    pub fn newest(&self) -> Option<(u64, u64)> {
        let newest = self.own.last_key_value();
        newest.map(|(index, digest)| (*index, *digest))
    }

    /// What this member tells the others: its newest sample and the newest ones that all compare.
    pub fn to_tell(&self) -> Vec<(u64, u64)> {
        let mut samples: Vec<(u64, u64)> = self
            .own
            .iter()
            .rev()
            .filter(|(index, _)| index.is_multiple_of(SAMPLE_SPACING))
            .take(4)
            .map(|(index, digest)| (*index, *digest))
            .collect();
        if let Some((index, digest)) = self.own.last_key_value()
            && !index.is_multiple_of(SAMPLE_SPACING)
        {
            samples.push((*index, *digest));
        }
        samples
    }

    /// Another member has told its samples.
    pub fn told(&mut self, peer: u64, samples: &[(u64, u64)]) {
        for (index, digest) in samples {
            let known = self.told.entry(*index).or_default().insert(peer, *digest);
            let differs = self.own.get(index).is_some_and(|own| own != digest);
            if differs && known != Some(*digest) {
                self.mismatches += 1;
            }
        }
        while self.told.len() > SAMPLES {
            self.told.pop_first();
        }
    }

    /// The newest difference to a majority of `members`; one that no majority decides is decided by the
    /// leader after a while. An alarm stays until the state is replaced.
    pub fn check(&mut self, members: &[u64], leader: Option<u64>, tick: u64) -> Option<Difference> {
        if self.alarm.is_some() {
            return self.alarm;
        }
        let mut disputed = false;
        for (index, told) in self.told.iter().rev() {
            let Some(own) = self.own.get(index) else {
                continue;
            };
            let votes = members.iter().filter_map(|id| told.get(id));
            let against = votes.filter(|digest| *digest != own).count();
            if against == 0 {
                continue;
            }
            disputed = true;
            let difference = |others: u64| Difference {
                index: *index,
                own: *own,
                others,
            };
            if let Some(others) = self.majority(*own, told, members) {
                self.alarm = (others != *own).then(|| difference(others));
                disputed = false;
                break;
            }
            let waited = self
                .disputed_since
                .is_some_and(|since| tick >= since + DISPUTE_TICKS);
            let leaders = leader.and_then(|leader| told.get(&leader));
            if waited && leader != Some(self.member) && leaders.is_some_and(|other| other != own) {
                self.alarm = leaders.map(|others| difference(*others));
                break;
            }
        }
        self.disputed_since = match disputed {
            true => self.disputed_since.or(Some(tick)),
            false => None,
        };
        self.alarm
    }

    /// The digest that more than half of the members have, if there is one.
    fn majority(&self, own: u64, told: &BTreeMap<u64, u64>, members: &[u64]) -> Option<u64> {
        let of = |id: &u64| match *id == self.member {
            true => Some(own),
            false => told.get(id).copied(),
        };
        let votes = || members.iter().filter_map(of);
        let count = |digest| votes().filter(|other| *other == digest).count();
        votes().find(|digest| 2 * count(*digest) > members.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMBERS: [u64; 3] = [1, 2, 3];

    fn of(member: u64) -> Agreement {
        let mut agreement = Agreement::new(member);
        agreement.applied(&[(10, 100)]);
        agreement
    }

    #[test]
    fn members_that_agree_raise_no_alarm() {
        let mut agreement = of(1);
        agreement.told(2, &[(10, 100), (11, 7)]);
        agreement.told(3, &[(10, 100)]);
        assert_eq!(agreement.check(&MEMBERS, Some(2), 1000), None);
    }

    #[test]
    fn who_differs_from_two_others_is_wrong() {
        let mut agreement = of(1);
        agreement.told(2, &[(10, 101)]);
        assert_eq!(agreement.check(&MEMBERS, Some(1), 0), None);
        agreement.told(3, &[(10, 101)]);
        let alarm = Difference {
            index: 10,
            own: 100,
            others: 101,
        };
        assert_eq!(agreement.check(&MEMBERS, Some(1), 0), Some(alarm));
        agreement.restart();
        assert_eq!(agreement.check(&MEMBERS, Some(1), 0), None);
    }

    #[test]
    fn who_has_a_third_on_its_side_is_right() {
        let mut agreement = of(1);
        agreement.told(2, &[(10, 101)]);
        agreement.told(3, &[(10, 100)]);
        for tick in [0, DISPUTE_TICKS, 2 * DISPUTE_TICKS] {
            assert_eq!(agreement.check(&MEMBERS, Some(2), tick), None);
        }
    }

    #[test]
    fn without_a_majority_the_leader_is_right_after_a_while() {
        let mut follower = of(1);
        let mut leader = of(2);
        follower.told(2, &[(10, 101)]);
        leader.told(1, &[(10, 101)]);
        for tick in [0, DISPUTE_TICKS - 1] {
            assert_eq!(follower.check(&MEMBERS, Some(2), tick), None);
            assert_eq!(leader.check(&MEMBERS, Some(2), tick), None);
        }
        assert!(follower.check(&MEMBERS, Some(2), DISPUTE_TICKS).is_some());
        assert_eq!(leader.check(&MEMBERS, Some(2), DISPUTE_TICKS), None);
    }

    #[test]
    fn each_difference_is_counted_once() {
        let mut agreement = of(1);
        agreement.told(2, &[(10, 100)]);
        assert_eq!(agreement.mismatches(), 0);
        for _ in 0..3 {
            agreement.told(3, &[(10, 101), (11, 7)]);
        }
        assert_eq!(agreement.mismatches(), 1);
        agreement.applied(&[(11, 8)]);
        assert_eq!(agreement.mismatches(), 2);
        agreement.restart();
        assert_eq!(agreement.mismatches(), 2);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut agreement = Agreement::new(1);
        for index in 0..100_000 {
            agreement.applied(&[(index, index)]);
            agreement.told(2, &[(index, index)]);
        }
        assert!(agreement.own.len() <= 2 * SAMPLES);
        assert!(agreement.told.len() <= SAMPLES);
        let told = agreement.to_tell();
        assert!(told.contains(&(99_999, 99_999)));
        assert!(told.contains(&(99_840, 99_840)));
    }
}
