//! Whom a list lets in, prepared once so that long lists are not searched from end to end.

use quenda_proto::acl::{ANY_SASL_USER, ANYONE, IP, SASL, SUPER, WORLD};

use super::AclEntry;
use super::ip::{Prefix, parse_address};
use crate::identity::Identity;

/// The entries of a list in an order that can be searched. Entries for the same identity are one, since
/// any of them may give the permission.
#[derive(Debug, Default)]
pub(crate) struct Matcher {
    /// What everybody may do.
    world: i32,
    /// All permissions given to some SASL identity.
    sasl: i32,
    /// Index of an entry and the permissions, by scheme and id.
    named: Box<[(u32, i32)]>,
    /// Address ranges and the permissions, ascending.
    ranges: Box<[(Prefix, i32)]>,
}

impl Matcher {
    pub(crate) fn new(entries: &[AclEntry]) -> Matcher {
        let mut matcher = Matcher::default();
        if entries.is_empty() {
            // Only an imported tree can hold an empty list; it keeps nobody out.
            matcher.world = -1;
        }
        let mut named = Vec::new();
        let mut ranges = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            match (&*entry.scheme, &*entry.id) {
                (WORLD, ANYONE) => matcher.world |= entry.perms,
                (IP, id) => ranges.extend(Prefix::parse(id).map(|range| (range, entry.perms))),
                (scheme, _) => {
                    if scheme == SASL {
                        matcher.sasl |= entry.perms;
                    }
                    named.push((index as u32, entry.perms));
                }
            }
        }
        named.sort_by_key(|(index, _)| key(&entries[*index as usize]));
        named.dedup_by(|next, kept| {
            let same = key(&entries[next.0 as usize]) == key(&entries[kept.0 as usize]);
            kept.1 |= if same { next.1 } else { 0 };
            same
        });
        ranges.sort_by_key(|(range, _)| *range);
        ranges.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 |= if same { next.1 } else { 0 };
            same
        });
        matcher.named = named.into();
        matcher.ranges = ranges.into();
        matcher
    }

    /// Whether everybody has one of the wanted permissions.
    pub(crate) fn allows_everybody(&self, wanted: i32) -> bool {
        self.world & wanted != 0
    }

    /// Whether one of the identities has one of the wanted permissions.
    pub(crate) fn allows(
        &self,
        entries: &[AclEntry],
        wanted: i32,
        identities: &[Identity],
    ) -> bool {
        if self.allows_everybody(wanted) {
            return true;
        }
        identities.iter().any(|identity| match &*identity.scheme {
            SUPER => true,
            IP => self.allows_address(wanted, &identity.id),
            SASL if &*identity.id == SUPER && self.sasl & wanted != 0 => true,
            ANY_SASL_USER => self.allows_named(entries, wanted, (SASL, &identity.id)),
            scheme => self.allows_named(entries, wanted, (scheme, &identity.id)),
        })
    }

    fn allows_named(&self, entries: &[AclEntry], wanted: i32, sought: (&str, &str)) -> bool {
        self.named
            .binary_search_by_key(&sought, |(index, _)| key(&entries[*index as usize]))
            .is_ok_and(|found| self.named[found].1 & wanted != 0)
    }

    fn allows_address(&self, wanted: i32, text: &str) -> bool {
        if self.ranges.is_empty() {
            return false;
        }
        let Some(peer) = parse_address(text) else {
            return false;
        };
        let mut rest = &self.ranges[..];
        while let Some((first, _)) = rest.first() {
            let (v6, bits) = (first.v6, first.bits);
            let same = rest.partition_point(|(range, _)| (range.v6, range.bits) == (v6, bits));
            let (group, behind) = rest.split_at(same);
            rest = behind;
            if v6 != peer.v6 {
                continue;
            }
            let sought = peer.widened(bits);
            let found = group.binary_search_by_key(&sought, |(range, _)| *range);
            if found.is_ok_and(|found| group[found].1 & wanted != 0) {
                return true;
            }
        }
        false
    }
}

fn key(entry: &AclEntry) -> (&str, &str) {
    (&entry.scheme, &entry.id)
}

#[cfg(test)]
mod tests {
    use quenda_proto::acl::perms::{ADMIN, ALL, READ, WRITE};

    use super::*;

    fn check(entries: &[AclEntry], wanted: i32, identities: &[Identity]) -> bool {
        Matcher::new(entries).allows(entries, wanted, identities)
    }

    #[test]
    fn partial_permissions_of_everybody() {
        let list = [AclEntry::new(READ, "world", "anyone")];
        assert!(check(&list, READ, &[]));
        assert!(!check(&list, WRITE, &[]));
        assert!(check(&list, READ | ADMIN, &[]));
    }

    #[test]
    fn any_entry_and_any_identity_suffices() {
        let list = [
            AclEntry::new(READ, "digest", "b:x"),
            AclEntry::new(READ, "digest", "a:x"),
            AclEntry::new(WRITE, "digest", "b:x"),
        ];
        let b = [
            Identity::new("ip", "1.2.3.4"),
            Identity::new("digest", "b:x"),
        ];
        assert!(check(&list, WRITE, &b));
        assert!(check(&list, READ, &b));
        assert!(!check(&list, ADMIN, &b));
        assert!(!check(&list, WRITE, &[Identity::new("digest", "a:x")]));
        assert!(!check(&list, READ, &[Identity::new("sasl", "b:x")]));
        assert!(check(&list, ADMIN, &[Identity::new("super", "")]));
    }

    #[test]
    fn the_longest_and_the_shortest_range_count() {
        let list = [
            AclEntry::new(READ, "ip", "10.0.0.0/8"),
            AclEntry::new(WRITE, "ip", "10.1.2.3"),
            AclEntry::new(ALL, "ip", "::1"),
        ];
        let peer = [Identity::new("ip", "10.1.2.3")];
        assert!(check(&list, READ, &peer));
        assert!(check(&list, WRITE, &peer));
        assert!(!check(&list, ADMIN, &peer));
        assert!(!check(&list, WRITE, &[Identity::new("ip", "10.1.2.4")]));
        assert!(check(
            &list,
            ADMIN,
            &[Identity::new("ip", "0:0:0:0:0:0:0:1")]
        ));
    }

    #[test]
    fn the_sasl_identity_super_has_what_any_other_has() {
        let list = [AclEntry::new(READ, "sasl", "joe@EXAMPLE.COM")];
        assert!(check(&list, READ, &[Identity::new("sasl", "super")]));
        assert!(!check(&list, WRITE, &[Identity::new("sasl", "super")]));
    }
}
