//! Who a client is: auth and sasl packets, and the identity that settings may ask for.

use core::net::IpAddr;

use quenda_proto::acl::{ANY_SASL_USER, DIGEST, ENSEMBLE, IP, SASL, SUPER, X509};
use quenda_proto::frame::{self, OpenFrame};
use quenda_proto::records::{AuthPacket, GetSaslRequest, SetSaslResponse};
use quenda_proto::{Decode, Encode, ErrorCode, Reader};
use quenda_tree::Identity;
use quenda_tree::identity::digest_identity;
use subtle::ConstantTimeEq;

use crate::connection::{CloseReason, Connection};
use crate::sasl::{SaslRefusal, Step};
use crate::settings::Settings;
use crate::world::{NamedEnsemble, World};

/// The identity that every connection has.
pub fn address_identity(peer: IpAddr) -> Identity {
    Identity::new(IP, &address_text(peer))
}

/// An address as ZooKeeper writes it: IPv6 with all its groups.
fn address_text(peer: IpAddr) -> String {
    match peer.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => address
            .segments()
            .map(|group| format!("{group:x}"))
            .join(":"),
    }
}

impl Settings {
    /// The identities of the owner of a certificate with this subject, as Java writes it.
    pub fn certified(&self, subject: &str) -> Vec<Identity> {
        let mut proved = Vec::new();
        if self.x509_super_user.as_deref() == Some(subject) {
            proved.push(Identity::new(SUPER, subject));
        }
        proved.push(Identity::new(X509, subject));
        proved
    }

    /// The identities that `user:password` proves; `None` without the digest scheme.
    pub fn prove_digest(&self, credential: &[u8]) -> Option<Vec<Identity>> {
        if !self.digest_enabled {
            return None;
        }
        let identity = digest_identity(self.digest_algorithm, credential);
        let is_super = self.is_super_digest(&identity.id);
        let mut proved = vec![identity];
        if is_super {
            proved.push(Identity::new(SUPER, ""));
        }
        Some(proved)
    }

    fn is_super_digest(&self, id: &str) -> bool {
        let configured = self.super_digest.as_deref();
        configured.is_some_and(|digest| digest.as_bytes().ct_eq(id.as_bytes()).into())
    }
}

impl Connection {
    /// The client has proved in the TLS handshake that a certificate with this subject, as Java writes it, is its own.
    /// False, and the connection is to be closed, when that is more than the bounds allow. To be called before the first
    /// [`receive`](Self::receive).
    pub fn certify(&mut self, subject: &str) -> bool {
        let accepted = self.add_identities(self.settings.certified(subject));
        if !accepted {
            self.close(CloseReason::AuthFailed);
        }
        accepted
    }

    /// Served as soon as it is read, beside the requests that wait.
    pub(crate) fn take_auth(&mut self, xid: i32, body: &[u8], world: &World<'_>) {
        let Ok(packet) = AuthPacket::decode(&mut Reader::new(body)) else {
            self.close(CloseReason::AuthPacket);
            return;
        };
        let scheme = packet.scheme.as_deref();
        if scheme == Some(ENSEMBLE)
            && let Some(names) = &self.settings.ensemble_names
        {
            let named = names.meant(packet.auth.unwrap_or_default());
            world.meter.ensemble_named(named);
            if named == NamedEnsemble::Other {
                self.close(CloseReason::OtherEnsemble);
                return;
            }
        }
        let accepted = match self.prove(scheme, packet.auth) {
            Some(proved) => self.add_identities(proved),
            None => false,
        };
        self.stats.sent += 1;
        if accepted {
            frame::put_reply(&mut self.output, xid, 0, ErrorCode::Ok);
        } else {
            frame::put_reply(&mut self.output, xid, 0, ErrorCode::AuthFailed);
            self.close(CloseReason::AuthFailed);
        }
    }

    /// The identities that a packet proves, or `None` when it is refused.
    fn prove(&self, scheme: Option<&str>, credential: Option<&[u8]>) -> Option<Vec<Identity>> {
        match scheme? {
            IP => Some(vec![address_identity(self.peer)]),
            DIGEST => self.settings.prove_digest(credential?),
            // Proved by the handshake already, or not at all.
            X509 => {
                let subject = self.identities.iter().find(|one| &*one.scheme == X509)?;
                Some(vec![subject.clone()])
            }
            ENSEMBLE if self.settings.ensemble_names.is_some() => Some(Vec::new()),
            _ => None,
        }
    }

    /// False when that would be more than the bounds allow.
    fn add_identities(&mut self, proved: Vec<Identity>) -> bool {
        for identity in proved {
            if !self.identities.contains(&identity) {
                self.identities.push(identity);
            }
        }
        let bytes: usize = self
            .identities
            .iter()
            .map(|identity| identity.scheme.len() + identity.id.len())
            .sum();
        let limits = &self.settings.limits;
        self.identities.len() <= limits.identities_max && bytes <= limits.identity_bytes_max
    }

    /// Served as soon as it is read, too. Where SASL is not set up the answer is a null token, as ZooKeeper gives it
    /// then.
    pub(crate) fn take_sasl(&mut self, xid: i32, body: &[u8], world: &World<'_>) {
        // As in ZooKeeper: even the first, empty token is not null.
        let Ok(GetSaslRequest { token: Some(token) }) =
            GetSaslRequest::decode(&mut Reader::new(body))
        else {
            self.close(CloseReason::AuthPacket);
            return;
        };
        let Some(users) = world.sasl else {
            self.answer_sasl(xid, ErrorCode::Ok, None);
            return;
        };
        match self.sasl.take(token, users, &mut self.refused_user) {
            Ok(Step::Challenge(token)) => self.answer_sasl(xid, ErrorCode::Ok, Some(&token)),
            Ok(Step::Accepted { token, user }) => {
                self.refused_user = None;
                self.accept_sasl(xid, &user, &token);
            }
            Err(refusal) => self.refuse_sasl(xid, refusal),
        }
    }

    fn accept_sasl(&mut self, xid: i32, user: &str, token: &[u8]) {
        let mut proved = vec![Identity::new(SASL, user)];
        let super_users = &self.settings.sasl_super_users;
        if super_users.iter().any(|super_user| super_user == user) {
            proved.push(Identity::new(SUPER, ""));
        }
        if let Some(any) = &self.settings.sasl_any_user {
            proved.push(Identity::new(ANY_SASL_USER, any));
        }
        if self.add_identities(proved) {
            self.answer_sasl(xid, ErrorCode::Ok, Some(token));
        } else {
            self.answer_sasl(xid, ErrorCode::AuthFailed, None);
            self.close(CloseReason::AuthFailed);
        }
    }

    fn refuse_sasl(&mut self, xid: i32, refusal: SaslRefusal) {
        let required = self.settings.requires_sasl();
        if refusal == SaslRefusal::Broken {
            self.close(CloseReason::Sasl(refusal));
        } else if self.settings.allow_sasl_failed_clients && !required {
            self.answer_sasl(xid, ErrorCode::Ok, None);
        } else {
            let error = match required {
                true => ErrorCode::SessionClosedRequireSaslAuth,
                false => ErrorCode::AuthFailed,
            };
            self.answer_sasl(xid, error, None);
            self.close(CloseReason::Sasl(refusal));
        }
    }

    /// The one reply that has a body behind an error.
    fn answer_sasl(&mut self, xid: i32, error: ErrorCode, token: Option<&[u8]>) {
        let frame = OpenFrame::start(&mut self.output);
        frame::put_reply_header(&mut self.output, xid, 0, error);
        SetSaslResponse { token }.encode(&mut self.output);
        frame.finish(&mut self.output);
        self.stats.sent += 1;
    }

    /// Whether the connection has an identity of a scheme that the settings ask for.
    pub(crate) fn has_required_identity(&self) -> bool {
        let required = &self.settings.enforce_auth;
        required.is_empty()
            || self
                .identities
                .iter()
                .any(|identity| required.iter().any(|scheme| **scheme == *identity.scheme))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_as_clients_know_them() {
        let cases = [
            ("127.0.0.1", "127.0.0.1"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("::1", "0:0:0:0:0:0:0:1"),
            ("fe80::a:0:1", "fe80:0:0:0:0:a:0:1"),
        ];
        for (address, text) in cases {
            let address = address.parse().expect("an address");
            assert_eq!(address_text(address), text);
        }
    }
}
