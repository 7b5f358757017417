//! Clients that say which ensemble they mean.

mod driver;

use driver::{Member, requests::*};
use quenda_frontend::{CloseReason, EnsembleNames, Settings};
use quenda_proto::ErrorCode;

fn named(names: Option<&str>) -> Member {
    Member::new(Settings {
        ensemble_names: Some(EnsembleNames::from_setting(names)),
        ..Settings::default()
    })
}

#[test]
fn a_client_that_means_this_ensemble_goes_on_as_nobody() {
    let cases = [
        (Some("woo"), &["woo", ""][..]),
        (Some(" foo,bar, baz "), &["foo", "bar", "baz"]),
        (None, &["foo", ""]),
    ];
    for (names, said) in cases {
        let mut member = named(names);
        for name in said {
            let client = member.client();
            member.ok(client, &auth("ensemble", name.as_bytes()));
            assert_eq!(member.connection(client).identities().len(), 1);
            member.ok(client, &exists(1, "/", false));
        }
    }
}

/// Without a reply: a client that hears of a failed authentication gives up, where it should try the next server.
#[test]
fn a_client_that_means_another_ensemble_is_let_go() {
    let mut member = named(Some("woo,hoo"));
    for name in ["goo", "wo", "woo,hoo", " woo"] {
        let client = member.client();
        let frames = [auth("ensemble", name.as_bytes()), create(1, "/never")].concat();
        assert!(member.call_all(client, &frames).is_empty(), "{name}");
        assert_eq!(
            member.wants_close(client),
            Some(CloseReason::OtherEnsemble),
            "{name}"
        );
    }
    assert!(member.tree.get("/never").is_none());
}

#[test]
fn the_scheme_is_no_identity_and_there_only_if_it_is_set() {
    let mut member = named(Some("woo"));
    let client = member.client();
    member.ok(client, &auth("ensemble", b"woo"));
    for scheme in ["ensemble", "auth"] {
        let list = Some(vec![driver::acl(31, scheme, "woo")]);
        member.expect(
            client,
            &create_with(1, "/a", list, 0),
            ErrorCode::InvalidAcl,
        );
    }
    let mut member = Member::default();
    let client = member.client();
    member.expect(client, &auth("ensemble", b"woo"), ErrorCode::AuthFailed);
}
