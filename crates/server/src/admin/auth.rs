//! Who may use the commands that change much or show everything: as in ZooKeeper, who has all permissions on the root.

use std::net::IpAddr;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use quenda_frontend::address_identity;
use quenda_proto::acl::{DIGEST, IP, X509, perms};
use quenda_tree::Identity;

use crate::http::Caller;
use crate::shared::Shared;

/// Why a caller may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// There is no header.
    #[error("Auth info is missing for the command")]
    Missing,
    /// It proves nothing.
    #[error("Not authenticated")]
    NotAuthenticated,
    /// Who it is has not all permissions.
    #[error("Not authorized")]
    NotAuthorized,
}

impl Refusal {
    pub(super) fn status(self) -> u16 {
        match self {
            Refusal::Missing | Refusal::NotAuthenticated => 401,
            Refusal::NotAuthorized => 403,
        }
    }
}

/// Whether the caller has all permissions on the root.
///
/// # Errors
/// It has not, or says not who it is.
pub(super) fn demand_all(
    shared: &Shared,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<(), Refusal> {
    let header = headers.get(AUTHORIZATION).ok_or(Refusal::Missing)?;
    let header = header.to_str().map_err(|_| Refusal::NotAuthenticated)?;
    let identities = prove(shared, caller, headers, header).ok_or(Refusal::NotAuthenticated)?;
    match may_do_all(shared, &identities) {
        true => Ok(()),
        false => Err(Refusal::NotAuthorized),
    }
}

/// The identities that `SCHEME CREDENTIAL` proves.
fn prove(
    shared: &Shared,
    caller: &Caller,
    headers: &HeaderMap,
    header: &str,
) -> Option<Vec<Identity>> {
    let mut parts = header.split(' ');
    let (scheme, credential) = (parts.next()?, parts.next());
    if parts.next().is_some() {
        return None;
    }
    let settings = &shared.settings;
    match scheme {
        DIGEST => settings.prove_digest(credential?.as_bytes()),
        IP => Some(vec![address_identity(address(shared, caller, headers))]),
        X509 => Some(settings.certified(caller.subject.as_deref()?)),
        _ => None,
    }
}

/// The caller's address; where a proxy stands in between, what that says.
fn address(shared: &Shared, caller: &Caller, headers: &HeaderMap) -> IpAddr {
    let forwarded = headers.get("X-Forwarded-For");
    let forwarded = forwarded.filter(|_| shared.config.admin.behind_proxy);
    let first = forwarded.and_then(|header| header.to_str().ok()?.split(',').next());
    let address = first.and_then(|address| address.trim().parse().ok());
    address.unwrap_or(caller.peer.ip())
}

/// Each permission by itself: a list that lets everybody read does not let anybody have the whole of the data.
fn may_do_all(shared: &Shared, identities: &[Identity]) -> bool {
    if shared.settings.skip_acl {
        return true;
    }
    let tree = shared.tree.read();
    let Some(root) = tree.get("/") else {
        return false;
    };
    let single = (0..i32::BITS).map(|bit| 1 << bit);
    let mut wanted = single.filter(|bit| perms::ALL & bit != 0);
    wanted.all(|permission| tree.allows(root.acl(), permission, identities))
}
