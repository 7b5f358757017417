//! From the list that a client sent to the list that is stored.

use std::collections::HashSet;

use quenda_proto::ErrorCode;
use quenda_proto::acl::perms::ALL;
use quenda_proto::acl::{ANYONE, AUTH, DIGEST, IP, SASL, WORLD, X509};
use quenda_proto::records::Acl;

use super::ip::Prefix;
use super::store::AclStore;
use super::x500;
use super::{AclEntry, AclId};
use crate::command::Switches;
use crate::identity::{Identity, is_principal};
use crate::limits::ACL_ENTRIES_MAX;

/// Checks and expands a list: exact duplicates go (the first stays), `auth` becomes the identities that
/// the connection has proved. `room` is what the lists of the request may still have in bytes.
/// Errors: `InvalidAcl`, and `MarshallingError` for an id that is null.
pub(crate) fn resolve(
    store: &mut AclStore,
    list: Option<&[Acl<'_>]>,
    identities: &[Identity],
    switches: Switches,
    room: &mut usize,
) -> Result<AclId, ErrorCode> {
    let list = list.unwrap_or_default();
    match list {
        [] => Err(ErrorCode::InvalidAcl),
        [only] if is_open(only) => Ok(AclId::OPEN),
        _ if !store.has_room() => Err(ErrorCode::SystemError),
        _ => Ok(store.intern(expanded(list, identities, switches, room)?)),
    }
}

fn is_open(entry: &Acl<'_>) -> bool {
    entry.perms == ALL
        && entry.id.scheme.as_deref() == Some(WORLD)
        && entry.id.id.as_deref() == Some(ANYONE)
}

fn expanded(
    list: &[Acl<'_>],
    identities: &[Identity],
    switches: Switches,
    room: &mut usize,
) -> Result<Vec<AclEntry>, ErrorCode> {
    // Asked for membership alone: its order, which differs between members, is never seen.
    let mut seen = HashSet::with_capacity(list.len());
    let mut expanded = Expanded {
        entries: Vec::new(),
        room,
    };
    for entry in list {
        let (scheme, id) = (entry.id.scheme.as_deref(), entry.id.id.as_deref());
        if !seen.insert((entry.perms, scheme, id)) {
            continue;
        }
        let scheme = scheme.ok_or(ErrorCode::InvalidAcl)?;
        if scheme == AUTH {
            let proved = identities.iter().filter(|identity| identity.is_proved());
            let before = expanded.entries.len();
            for identity in proved {
                expanded.push(entry.perms, &identity.scheme, &identity.id)?;
            }
            if expanded.entries.len() == before {
                return Err(ErrorCode::InvalidAcl);
            }
            continue;
        }
        if !is_known(scheme, switches) {
            return Err(ErrorCode::InvalidAcl);
        }
        let id = id.ok_or(ErrorCode::MarshallingError)?;
        if !is_valid(scheme, id) {
            return Err(ErrorCode::InvalidAcl);
        }
        expanded.push(entry.perms, scheme, id)?;
    }
    Ok(expanded.entries)
}

struct Expanded<'r> {
    entries: Vec<AclEntry>,
    room: &'r mut usize,
}

impl Expanded<'_> {
    fn push(&mut self, perms: i32, scheme: &str, id: &str) -> Result<(), ErrorCode> {
        let room = self.room.checked_sub(scheme.len() + id.len());
        *self.room = room.ok_or(ErrorCode::InvalidAcl)?;
        if self.entries.len() >= ACL_ENTRIES_MAX {
            return Err(ErrorCode::InvalidAcl);
        }
        self.entries.push(AclEntry::new(perms, scheme, id));
        Ok(())
    }
}

/// Ids of schemes that the member has no use for are no more known than in a ZooKeeper without their providers.
fn is_known(scheme: &str, switches: Switches) -> bool {
    match scheme {
        WORLD | IP => true,
        DIGEST => !switches.without_digest,
        SASL => switches.sasl,
        X509 => switches.x509,
        _ => false,
    }
}

fn is_valid(scheme: &str, id: &str) -> bool {
    match scheme {
        WORLD => id == ANYONE,
        IP => Prefix::parse(id).is_some(),
        SASL => is_principal(id),
        X509 => x500::is_name(id),
        _ => is_digest(id),
    }
}

/// Two parts around a colon, where trailing empty parts do not count.
fn is_digest(id: &str) -> bool {
    let id = id.trim_end_matches(':');
    id.bytes().filter(|byte| *byte == b':').count() == 1
}

#[cfg(test)]
mod tests {
    use quenda_proto::records::Id;

    use super::*;
    use crate::limits::ACL_BYTES_MAX;

    const SWITCHES: Switches = Switches {
        skip_acl: false,
        enforce_quota: false,
        reconfig_enabled: false,
        standalone_enabled: false,
        x509: true,
        sasl: true,
        without_digest: false,
        without_ttl: false,
    };

    fn entry<'a>(perms: i32, scheme: &'a str, id: &'a str) -> Acl<'a> {
        Acl {
            perms,
            id: Id {
                scheme: Some(scheme.into()),
                id: Some(id.into()),
            },
        }
    }

    fn stored(list: &[Acl<'_>], identities: &[Identity]) -> Result<Vec<AclEntry>, ErrorCode> {
        let mut store = AclStore::new();
        let id = resolve(&mut store, Some(list), identities, SWITCHES, &mut {
            ACL_BYTES_MAX
        })?;
        Ok(store.entries(id).to_vec())
    }

    fn verdict(list: &[Acl<'_>]) -> Option<ErrorCode> {
        stored(list, &[]).err()
    }

    #[test]
    fn digest_ids() {
        for id in ["a:b", ":b", "a:b:"] {
            assert_eq!(verdict(&[entry(31, "digest", id)]), None, "{id}");
        }
        for id in ["a", "a:", "a:b:c", "::", ""] {
            let got = verdict(&[entry(31, "digest", id)]);
            assert_eq!(got, Some(ErrorCode::InvalidAcl), "{id}");
        }
    }

    #[test]
    fn unknown_schemes_and_ids() {
        for (scheme, id) in [
            ("world", "x"),
            ("nope", "anyone"),
            ("super", ""),
            ("sasl", "joe@one@two"),
            ("x509", "joe"),
            ("ip", "localhost"),
        ] {
            let got = verdict(&[entry(31, scheme, id)]);
            assert_eq!(got, Some(ErrorCode::InvalidAcl), "{scheme}:{id}");
        }
    }

    #[test]
    fn subjects_of_certificates_are_known_where_clients_can_prove_them() {
        let list = [entry(31, "x509", "CN=joe,O=Org\\, Inc")];
        assert_eq!(verdict(&list), None);
        let (mut store, without) = (AclStore::new(), Switches::default());
        let stored = resolve(&mut store, Some(&list), &[], without, &mut {
            ACL_BYTES_MAX
        });
        assert_eq!(stored, Err(ErrorCode::InvalidAcl));
    }

    #[test]
    fn schemes_that_the_member_has_not_are_unknown() {
        let without = Switches {
            without_digest: true,
            ..Switches::default()
        };
        for list in [[entry(31, "sasl", "joe")], [entry(31, "digest", "a:b")]] {
            assert_eq!(verdict(&list), None);
            let (mut store, mut room) = (AclStore::new(), ACL_BYTES_MAX);
            let stored = resolve(&mut store, Some(&list), &[], without, &mut room);
            assert_eq!(stored, Err(ErrorCode::InvalidAcl));
        }
    }

    #[test]
    fn null_parts() {
        let mut null_id = entry(31, "world", "");
        null_id.id.id = None;
        assert_eq!(verdict(&[null_id]), Some(ErrorCode::MarshallingError));
        let mut null_scheme = entry(31, "world", "");
        null_scheme.id.scheme = None;
        assert_eq!(verdict(&[null_scheme]), Some(ErrorCode::InvalidAcl));
        assert_eq!(verdict(&[]), Some(ErrorCode::InvalidAcl));
        let mut store = AclStore::new();
        assert_eq!(
            resolve(&mut store, None, &[], SWITCHES, &mut 9),
            Err(ErrorCode::InvalidAcl)
        );
    }

    #[test]
    fn any_permission_bits_are_stored() {
        for perms in [0, -1, 1 << 20] {
            let list = stored(&[entry(perms, "world", "anyone")], &[]).expect("a list");
            assert_eq!(list, [AclEntry::new(perms, "world", "anyone")]);
        }
    }

    #[test]
    fn auth_becomes_what_the_connection_has_proved() {
        let identities = [
            Identity::new("ip", "127.0.0.1"),
            Identity::new("digest", "a:1"),
            Identity::new("super", ""),
            Identity::new("digest", "b:2"),
        ];
        let list = [
            entry(1, "world", "anyone"),
            entry(3, "auth", "ignored"),
            entry(1, "world", "anyone"),
            entry(2, "digest", "a:1"),
        ];
        let expected = [
            AclEntry::new(1, "world", "anyone"),
            AclEntry::new(3, "digest", "a:1"),
            AclEntry::new(3, "digest", "b:2"),
            AclEntry::new(2, "digest", "a:1"),
        ];
        assert_eq!(stored(&list, &identities).expect("a list"), expected);
        let nobody = stored(&[entry(31, "auth", "")], &identities[..1]);
        assert_eq!(nobody, Err(ErrorCode::InvalidAcl));
    }

    #[test]
    fn an_expansion_without_bound_is_refused() {
        let identities: Vec<_> = (0..1000)
            .map(|n| Identity::new("digest", &format!("u{n}:h")))
            .collect();
        let list: Vec<_> = (0..1000).map(|perms| entry(perms, "auth", "")).collect();
        assert_eq!(stored(&list, &identities), Err(ErrorCode::InvalidAcl));
    }

    #[test]
    fn the_lists_of_one_request_share_their_room() {
        let mut store = AclStore::new();
        let list = |id| [entry(31, "digest", id), entry(1, "world", "anyone")];
        let mut room = 40;
        let first = resolve(&mut store, Some(&list("a:b")), &[], SWITCHES, &mut room);
        assert!(first.is_ok());
        assert_eq!(room, 40 - "digesta:bworldanyone".len());
        let second = resolve(&mut store, Some(&list("a:c")), &[], SWITCHES, &mut room);
        assert!(second.is_ok());
        let third = resolve(&mut store, Some(&list("a:d")), &[], SWITCHES, &mut room);
        assert_eq!(third, Err(ErrorCode::InvalidAcl));
    }

    #[test]
    fn thousands_of_entries_are_taken() {
        let ids: Vec<String> = (0..50_000).map(|n| format!("u{n}:h")).collect();
        let list: Vec<_> = ids.iter().map(|id| entry(1, "digest", id)).collect();
        assert_eq!(stored(&list, &[]).map(|list| list.len()), Ok(50_000));
    }
}
