//! The handshake, on the wire.

mod driver;

use driver::{Member, connect, framed, raw, requests::*};
use quenda_frontend::{CloseReason, Pause, Received, ServiceMode, Settings};
use quenda_proto::ErrorCode;
use quenda_proto::frame::FrameError;

const PASSWORD: Option<&[u8]> = Some(&[0; 16]);

fn open_session(member: &mut Member, bytes: &[u8]) -> (u64, i64, i32, [u8; 16], usize) {
    let client = member.accept();
    member.send(client, bytes);
    member.apply();
    let (session, timeout, password, length) = member.handshake(client);
    (client, session, timeout, password, length)
}

#[test]
fn the_answer_has_the_form_of_the_request() {
    let mut member = Member::default();
    let (.., length) = open_session(&mut member, &connect(0, 10_000, 0, PASSWORD, None));
    assert_eq!(length, 36);
    let (.., length) = open_session(&mut member, &connect(0, 10_000, 0, PASSWORD, Some(true)));
    assert_eq!(length, 37);
}

#[test]
fn version_and_password_of_a_new_session_do_not_matter() {
    let mut member = Member::default();
    for password in [
        None,
        Some(&b""[..]),
        Some(&b"long enough, but not ours"[..]),
    ] {
        let mut bytes = connect(0, 10_000, 0, password, Some(false));
        bytes[7] = 7;
        let (_, session, _, password, _) = open_session(&mut member, &bytes);
        assert!(session != 0);
        assert!(password != [0; 16]);
    }
}

#[test]
fn timeouts_are_clamped_and_told() {
    let mut member = Member::default();
    for (wanted, given) in [
        (-5, 4_000),
        (1, 4_000),
        (1_000_000, 40_000),
        (36_000_000, 40_000),
    ] {
        let (client, session, timeout, ..) =
            open_session(&mut member, &connect(0, wanted, 0, PASSWORD, Some(false)));
        assert_eq!(timeout, given);
        assert_eq!(member.connection(client).timeout_ms(), given);
        let stored = member.tree.session(session).expect("a session");
        assert_eq!(stored.timeout_ms, given);
    }
}

#[test]
fn the_new_session_is_a_transaction() {
    let mut member = Member::default();
    let client = member.client();
    let before = member.ok(client, &keep_alive()).zxid;
    member.client();
    assert_eq!(member.ok(client, &keep_alive()).zxid, before + 1);
}

#[test]
fn ids_hold_the_member_and_are_unique() {
    let mut member = Member::default();
    let ids: std::collections::BTreeSet<i64> = (0..100)
        .map(|_| {
            let client = member.client();
            member.session(client)
        })
        .collect();
    assert_eq!(ids.len(), 100);
    assert!(ids.iter().all(|id| *id >> 56 == 1));
}

#[test]
fn a_client_that_has_seen_more_is_sent_away_without_a_word() {
    let mut member = Member::default();
    let client = member.client();
    let applied = member.ok(client, &create(1, "/a")).zxid;
    let ahead = member.accept();
    let received = member.send(
        ahead,
        &connect(applied + 1, 10_000, 0, PASSWORD, Some(false)),
    );
    let reason = CloseReason::ClientAhead {
        seen: applied + 1,
        applied,
    };
    assert_eq!(received, Received::Close(reason));
    assert_eq!(member.proposed(), 0);
    assert!(member.payloads(ahead).is_empty());
    for seen in [applied, 0, -1] {
        let (_, session, ..) = open_session(
            &mut member,
            &connect(seen, 10_000, 0, PASSWORD, Some(false)),
        );
        assert!(session != 0);
    }
}

#[test]
fn a_resume_keeps_the_session_and_ends_the_old_connection() {
    let mut member = Member::default();
    let (old, session, _, password, _) =
        open_session(&mut member, &connect(0, 10_000, 0, PASSWORD, Some(false)));
    member.ok(old, &create_ephemeral(1, "/e"));
    let resume = connect(0, 5_000, session, Some(&password), Some(false));
    let (new, resumed, timeout, again, _) = open_session(&mut member, &resume);
    assert_eq!((resumed, timeout, again), (session, 5_000, password));
    assert_eq!(member.wants_close(old), Some(CloseReason::SessionMoved));
    assert_eq!(member.wants_close(new), None);
    let reply = member.ok(new, &get_ephemerals(1, None));
    assert_eq!(&reply.body[8..], b"/e");
    member.ok(new, &set(2, "/e", b"x"));
}

#[test]
fn a_refused_resume_is_told_with_zeros_and_disturbs_nobody() {
    let mut member = Member::default();
    let (owner, session, ..) =
        open_session(&mut member, &connect(0, 10_000, 0, PASSWORD, Some(false)));
    let wrong: [Option<&[u8]>; 4] = [Some(&[1; 16]), Some(&[1; 15]), Some(b""), None];
    for (id, password) in [(1, PASSWORD)]
        .into_iter()
        .chain(wrong.map(|p| (session, p)))
    {
        for (read_only, length) in [(None, 36), (Some(false), 37)] {
            let client = member.accept();
            member.send(client, &connect(0, 10_000, id, password, read_only));
            member.apply();
            assert_eq!(member.handshake(client), (0, 0, [0; 16], length));
            assert_eq!(
                member.wants_close(client),
                Some(CloseReason::SessionRefused)
            );
        }
    }
    member.ok(owner, &keep_alive());
}

#[test]
fn an_expired_session_is_refused() {
    let mut member = Member::default();
    let (client, session, _, password, _) =
        open_session(&mut member, &connect(0, 10_000, 0, PASSWORD, Some(false)));
    member.ok(client, &create_ephemeral(1, "/e"));
    member.expire(session);
    assert_eq!(
        member.wants_close(client),
        Some(CloseReason::SessionExpired)
    );
    assert!(member.payloads(client).is_empty());
    assert!(member.tree.get("/e").is_none());
    let client = member.accept();
    member.send(
        client,
        &connect(0, 10_000, session, Some(&password), Some(false)),
    );
    member.apply();
    assert_eq!(member.handshake(client), (0, 0, [0; 16], 37));
}

#[test]
fn what_is_pipelined_behind_the_connect_waits_for_the_session() {
    let mut member = Member::default();
    let client = member.accept();
    let bytes = [
        connect(0, 10_000, 0, PASSWORD, Some(false)),
        auth("digest", b"u:p"),
        exists(1, "/", false),
        keep_alive(),
    ]
    .concat();
    assert_eq!(
        member.send(client, &bytes),
        Received::Paused(Pause::Session)
    );
    assert!(member.payloads(client).is_empty());
    member.apply();
    let payloads = member.payloads(client);
    assert_eq!(payloads.len(), 4);
    assert_eq!(payloads[0].len(), 37);
    let xids: Vec<i32> = payloads[1..]
        .iter()
        .map(|payload| driver::Reply::parse(payload).xid)
        .collect();
    assert_eq!(xids, [-4, 1, -2]);
}

#[test]
fn bytes_may_come_one_by_one() {
    let mut member = Member::default();
    let client = member.accept();
    for byte in connect(0, 10_000, 0, PASSWORD, None) {
        member.send(client, &[byte]);
    }
    member.apply();
    assert_eq!(member.handshake(client).3, 36);
    let mut answered = 0;
    for byte in exists(5, "/", false) {
        member.send(client, &[byte]);
        answered += member.replies(client).len();
    }
    assert_eq!(answered, 1);
}

#[test]
fn bad_frames_close_without_a_word() {
    let connecting = connect(0, 10_000, 0, PASSWORD, None);
    let cases: [(&[u8], CloseReason); 5] = [
        (&[0xFF; 4], CloseReason::Frame(FrameError::Negative(-1))),
        (
            &0x10_0000i32.to_be_bytes(),
            CloseReason::Frame(FrameError::TooLarge {
                length: 0x10_0000,
                max: 0xF_FFFF,
            }),
        ),
        (
            b"GET / HTTP/1.1",
            CloseReason::Frame(FrameError::TooLarge {
                length: 0x4745_5420,
                max: 0xF_FFFF,
            }),
        ),
        (&[0; 4], CloseReason::Handshake),
        (&framed(&connecting[4..47]), CloseReason::Handshake),
    ];
    for (bytes, reason) in cases {
        let mut member = Member::default();
        let client = member.accept();
        assert_eq!(member.send(client, bytes), Received::Close(reason));
        assert!(member.payloads(client).is_empty());
    }
}

#[test]
fn frames_without_a_header_close_without_a_word() {
    for length in [0, 3, 7] {
        let mut member = Member::default();
        let client = member.client();
        let received = member.send(client, &framed(&vec![0; length]));
        assert_eq!(received, Received::Close(CloseReason::RequestHeader));
        assert!(member.payloads(client).is_empty());
    }
}

#[test]
fn a_frame_of_exactly_the_limit_is_taken() {
    let mut member = Member::default();
    let client = member.client();
    let data = vec![7; 0xF_FFFF - 8 - 4 - 2 - 4 - 4];
    member.ok(client, &create(1, "/a"));
    let frame = set(2, "/a", &data);
    assert_eq!(frame.len(), 4 + 0xF_FFFF);
    member.ok(client, &frame);
    let received = member.send(client, &set(3, "/a", &[&data[..], &[0]].concat())[..4]);
    assert!(matches!(received, Received::Close(CloseReason::Frame(_))));
}

#[test]
fn a_member_without_quorum_takes_nobody() {
    let mut member = Member::default();
    member.service = ServiceMode::NotServing;
    let client = member.accept();
    let received = member.send(client, &connect(0, 10_000, 0, PASSWORD, None));
    assert_eq!(received, Received::Close(CloseReason::NotServing));
    assert!(member.payloads(client).is_empty());
}

#[test]
fn truncated_handshakes_only_close() {
    let bytes = connect(0, 10_000, 0, PASSWORD, Some(false));
    for length in 4..bytes.len() {
        let mut member = Member::default();
        let client = member.accept();
        // Without the last byte it is the old form.
        let expected = if length == bytes.len() - 1 {
            Received::Paused(Pause::Session)
        } else {
            Received::Close(CloseReason::Handshake)
        };
        assert_eq!(member.send(client, &framed(&bytes[4..length])), expected);
    }
}

#[test]
fn required_authentication_gates_everything_but_auth() {
    let settings = || Settings {
        enforce_auth: vec!["digest".to_owned()],
        ..Settings::default()
    };
    for (frame, xid) in [
        (keep_alive(), -2),
        (create(5, "/a"), 5),
        (close_session(6), 6),
        (raw(7, 99, &[]), 7),
    ] {
        let mut member = Member::new(settings());
        let client = member.client();
        let reply = member.call(client, &[frame, exists(9, "/", false)].concat());
        assert_eq!(
            (reply.xid, reply.zxid, reply.err, reply.body.len()),
            (xid, 0, ErrorCode::SessionClosedRequireSaslAuth.code(), 0)
        );
        assert_eq!(member.wants_close(client), Some(CloseReason::AuthRequired));
        assert!(member.tree.get("/a").is_none());
    }
    let mut member = Member::new(settings());
    let client = member.client();
    let replies = member.call_all(client, &[auth("digest", b"u:p"), create(1, "/a")].concat());
    assert_eq!(
        replies.iter().map(|reply| reply.err).collect::<Vec<_>>(),
        [0, 0]
    );
    let mut by_address = Member::new(Settings {
        enforce_auth: vec!["ip".to_owned()],
        ..Settings::default()
    });
    let client = by_address.client();
    by_address.ok(client, &create(1, "/a"));
}

#[test]
fn an_idle_connection_holds_little_memory() {
    assert!(size_of::<quenda_frontend::Connection>() < 512);
}
