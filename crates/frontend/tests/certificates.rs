//! Clients that have proved a certificate in the TLS handshake.

mod driver;

use driver::{Member, acl, connect, requests::*};
use quenda_frontend::{CloseReason, Limits, Settings};
use quenda_proto::ErrorCode;
use quenda_tree::Identity;

const JOE: &str = "CN=joe,O=Org\\, Inc";

fn member() -> Member {
    Member::new(Settings {
        x509_enabled: true,
        x509_super_user: Some("CN=root".to_owned()),
        ..Settings::default()
    })
}

fn certified(member: &mut Member, subject: &str) -> u64 {
    let client = member.accept_certified(subject);
    member.send(client, &connect(0, 10_000, 0, Some(&[0; 16]), Some(false)));
    member.apply();
    member.handshake(client);
    client
}

fn create_for(xid: i32, path: &str, scheme: &'static str, id: &'static str) -> Vec<u8> {
    create_with(xid, path, Some(vec![acl(31, scheme, id)]), 0)
}

#[test]
fn the_subject_is_an_identity_that_lists_name() {
    let mut member = member();
    let (joe, other) = (certified(&mut member, JOE), member.client());
    let identities = member.connection(joe).identities();
    assert_eq!(identities[1..], [Identity::new("x509", JOE)]);
    member.ok(joe, &create_for(1, "/named", "x509", JOE));
    member.ok(joe, &create_for(2, "/auth", "auth", ""));
    for path in ["/named", "/auth"] {
        member.ok(joe, &get(3, path, false));
        member.expect(other, &get(3, path, false), ErrorCode::NoAuth);
    }
    member.expect(
        other,
        &create_for(4, "/no", "x509", "joe"),
        ErrorCode::InvalidAcl,
    );
}

#[test]
fn the_super_user_passes_every_check() {
    let mut member = member();
    let (joe, root) = (
        certified(&mut member, JOE),
        certified(&mut member, "CN=root"),
    );
    let identities = member.connection(root).identities();
    let expected = [
        Identity::new("super", "CN=root"),
        Identity::new("x509", "CN=root"),
    ];
    assert_eq!(identities[1..], expected);
    member.ok(joe, &create_for(1, "/joe", "x509", JOE));
    member.ok(root, &get(2, "/joe", false));
}

#[test]
fn an_auth_packet_proves_what_the_handshake_has_proved() {
    let mut member = member();
    let (joe, other) = (certified(&mut member, JOE), member.client());
    member.ok(joe, &auth("x509", b""));
    assert_eq!(member.connection(joe).identities().len(), 2);
    member.expect(other, &auth("x509", JOE.as_bytes()), ErrorCode::AuthFailed);
    assert_eq!(member.wants_close(other), Some(CloseReason::AuthFailed));
}

#[test]
fn a_certificate_satisfies_enforced_authentication() {
    let mut member = Member::new(Settings {
        x509_enabled: true,
        enforce_auth: vec!["x509".to_owned()],
        ..Settings::default()
    });
    let (joe, other) = (certified(&mut member, JOE), member.client());
    member.ok(joe, &create(1, "/a"));
    let refused = ErrorCode::SessionClosedRequireSaslAuth;
    member.expect(other, &create(1, "/b"), refused);
}

#[test]
fn a_subject_beyond_the_bounds_is_refused() {
    let limits = Limits {
        identity_bytes_max: 100,
        ..Limits::default()
    };
    let mut member = Member::new(Settings {
        limits,
        ..Settings::default()
    });
    let client = member.accept_certified(&"x".repeat(101));
    assert_eq!(member.wants_close(client), Some(CloseReason::AuthFailed));
}
