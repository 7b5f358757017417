//! What happens at the bounds, and when the disk is nearly full.

mod driver;

use driver::{Member, request, requests::*};
use quenda_frontend::{CloseReason, Growth, Limits, Pause, Received, Settings};
use quenda_proto::{ErrorCode, Op, multi};
use quenda_tree::command::{Command, decode_first};

fn limited(limits: Limits) -> Member {
    Member::new(Settings {
        limits,
        ..Settings::default()
    })
}

#[test]
fn reading_stops_at_the_number_of_waiting_requests() {
    let mut member = limited(Limits {
        pending_max: 10,
        ..Limits::default()
    });
    let client = member.client();
    let frames: Vec<u8> = (0..25).flat_map(|xid| set(xid, "/", b"x")).collect();
    assert_eq!(
        member.send(client, &frames),
        Received::Paused(Pause::Requests)
    );
    assert_eq!(member.connection(client).queued(), 10);
    assert_eq!(member.proposed(), 10);
    member.apply();
    let replies = member.replies(client);
    assert_eq!(
        replies.iter().map(|reply| reply.xid).collect::<Vec<_>>(),
        (0..25).collect::<Vec<_>>()
    );
}

#[test]
fn reading_stops_at_the_bytes_of_waiting_requests() {
    let mut member = limited(Limits {
        pending_bytes_max: 10_000,
        ..Limits::default()
    });
    let client = member.client();
    let data = [7; 4_000];
    let frames: Vec<u8> = (0..6).flat_map(|xid| set(xid, "/", &data)).collect();
    assert_eq!(
        member.send(client, &frames),
        Received::Paused(Pause::Requests)
    );
    assert_eq!(member.proposed(), 3);
    member.apply();
    assert_eq!(member.replies(client).len(), 6);
}

#[test]
fn reading_stops_at_the_expected_bytes_of_replies() {
    let mut member = limited(Limits {
        pending_reply_bytes_max: 300_000,
        output_max: 1_000_000,
        ..Limits::default()
    });
    let client = member.client();
    let data = [7; 100_000];
    // The znode is empty when the reads arrive: what the writes in front of them store counts.
    let frames: Vec<u8> = (0..40)
        .flat_map(|xid| match xid % 2 {
            0 => set(xid, "/", &data),
            _ => get(xid, "/", false),
        })
        .collect();
    assert_eq!(
        member.send(client, &frames),
        Received::Paused(Pause::Requests)
    );
    assert_eq!(member.connection(client).queued(), 6);
    let mut replies = Vec::new();
    while replies.len() < 40 {
        member.apply();
        let more = member.replies(client);
        assert!(!more.is_empty(), "{:?}", member.wants_close(client));
        replies.extend(more);
        // The output was taken: the client's turn again.
        member.send(client, &[]);
    }
    assert!(replies.iter().map(|reply| reply.xid).eq(0..40));
    assert_eq!(member.wants_close(client), None);
}

fn with_large_znode(member: &mut Member) -> u64 {
    let client = member.client();
    member.ok(client, &create(1, "/large"));
    member.ok(client, &set(2, "/large", &[7; 100_000]));
    client
}

#[test]
fn reads_stop_while_the_output_is_not_taken() {
    let mut member = limited(Limits {
        output_pause: 250_000,
        ..Limits::default()
    });
    let client = with_large_znode(&mut member);
    let frames: Vec<u8> = (0..10).flat_map(|xid| get(xid, "/large", false)).collect();
    assert_eq!(
        member.send(client, &frames),
        Received::Paused(Pause::Output)
    );
    let mut xids = Vec::new();
    while xids.len() < 10 {
        assert!(member.connection(client).output_len() < 400_000);
        let replies = member.replies(client);
        assert!(!replies.is_empty(), "only {xids:?} came");
        xids.extend(replies.iter().map(|reply| reply.xid));
        if member.connection(client).must_receive() {
            member.receive(client);
        }
    }
    assert_eq!(xids, (0..10).collect::<Vec<_>>());
}

#[test]
fn queued_reads_stop_too_unless_a_write_is_behind_them() {
    let mut member = limited(Limits {
        output_pause: 250_000,
        ..Limits::default()
    });
    let client = with_large_znode(&mut member);
    let reads: Vec<u8> = (0..10).flat_map(|xid| get(xid, "/large", false)).collect();
    member.send(client, &[set(100, "/", b"x"), reads.clone()].concat());
    member.apply();
    assert!(member.connection(client).output_len() < 400_000);
    assert!(member.connection(client).queued() >= 7);
    let mut answered = 0;
    loop {
        answered += member.replies(client).len();
        if !member.connection(client).must_receive() {
            break;
        }
        member.receive(client);
    }
    assert_eq!(answered, 11);
    // The reads in front of the second write must not see it, so all are served at its turn.
    let frames = [
        set(100, "/", b"x"),
        reads,
        set(101, "/large", b"small"),
        get(102, "/large", false),
    ]
    .concat();
    member.send(client, &frames);
    member.apply();
    let mut replies = member.replies(client);
    while member.connection(client).must_receive() {
        member.receive(client);
        replies.extend(member.replies(client));
    }
    assert_eq!(replies.len(), 13);
    assert!(
        replies[1..11]
            .iter()
            .all(|reply| reply.body.len() > 100_000)
    );
    assert!(replies[12].body.len() < 100);
}

#[test]
fn a_client_that_never_reads_its_events_is_cut_off() {
    let mut member = limited(Limits {
        output_pause: 1_000,
        output_max: 10_000,
        ..Limits::default()
    });
    let (client, writer) = (member.client(), member.client());
    member.ok(client, &add_watch(1, "/", 0));
    let mut xid = 0;
    while member.wants_close(client).is_none() {
        xid += 1;
        assert!(xid < 1_000, "never cut off");
        member.ok(writer, &set(xid, "/", b"x"));
    }
    assert_eq!(member.wants_close(client), Some(CloseReason::OutputFull));
    assert_eq!(member.connection(client).output_len(), 0);
    assert!(xid > 100);
    member.disconnect(client);
    assert_eq!(member.watch_count(), 0);
}

#[test]
fn one_reply_may_be_longer_than_all_bounds() {
    let mut member = limited(Limits {
        output_pause: 1_000,
        output_max: 10_000,
        ..Limits::default()
    });
    let client = with_large_znode(&mut member);
    let reply = member.ok(client, &get(1, "/large", false));
    assert!(reply.body.len() > 100_000);
}

/// A request of a kilobyte that would be answered with many megabytes.
#[test]
fn a_multi_read_cannot_multiply_without_bound() {
    let mut member = limited(Limits {
        output_max: 1_000_000,
        ..Limits::default()
    });
    let client = with_large_znode(&mut member);
    let reads = |count| {
        multi(1, Op::MultiRead, |body| {
            for _ in 0..count {
                let record = quenda_proto::records::GetDataRequest {
                    path: Some("/large".into()),
                    watch: false,
                };
                multi::put_request(body, Op::GetData, &record);
            }
        })
    };
    member.ok(client, &reads(9));
    member.send(client, &reads(1_000));
    assert_eq!(member.wants_close(client), Some(CloseReason::OutputFull));
    assert_eq!(member.connection(client).output_len(), 0);
}

#[test]
fn a_watch_beyond_the_bound_is_refused() {
    let mut member = limited(Limits {
        watched_paths_max: 3,
        ..Limits::default()
    });
    let client = member.client();
    for path in ["/a", "/b", "/c"] {
        member.expect(client, &exists(1, path, true), ErrorCode::NoNode);
    }
    member.expect(client, &exists(2, "/d", true), ErrorCode::SystemError);
    member.expect(client, &get(2, "/", true), ErrorCode::SystemError);
    member.expect(client, &add_watch(3, "/d", 1), ErrorCode::SystemError);
    member.expect(
        client,
        &set_watches(0, &[], &["/d"], &[]),
        ErrorCode::SystemError,
    );
    member.ok(client, &add_watch(4, "/a", 1));
    member.ok(client, &remove_watches(5, "/b", 3));
    member.ok(client, &get(6, "/", true));
}

#[test]
fn identities_are_bounded() {
    let mut member = limited(Limits {
        identities_max: 4,
        ..Limits::default()
    });
    let client = member.client();
    for user in ["a:1", "b:1", "c:1", "a:1"] {
        member.ok(client, &auth("digest", user.as_bytes()));
    }
    assert_eq!(member.connection(client).identities().len(), 4);
    member.expect(client, &auth("digest", b"d:1"), ErrorCode::AuthFailed);
    assert_eq!(member.wants_close(client), Some(CloseReason::AuthFailed));
    let client = member.client();
    let long = vec![b'x'; 100_000];
    member.expect(client, &auth("digest", &long), ErrorCode::AuthFailed);
}

fn refused(member: &Member) -> Vec<Command<'_>> {
    let mut rest = &member.refused[..];
    let commands = std::iter::from_fn(|| decode_first(&mut rest));
    commands.map(|command| command.expect("whole")).collect()
}

#[test]
fn only_growth_is_refused_when_the_disk_is_nearly_full() {
    let mut member = Member::default();
    let client = member.client();
    for path in ["/a", "/b"] {
        member.ok(client, &create(1, path));
    }
    member.growth = Growth::Refused;
    let before = member.tree.last_zxid();
    let create_one = |op| {
        multi(4, Op::Multi, move |body| {
            multi::put_request(body, Op::Delete, &delete_record("/b"));
            multi::put_request(body, op, &create_record("/c", b"", open(), 0));
        })
    };
    let set_one = |data: &'static [u8]| {
        multi(5, Op::Multi, move |body| {
            multi::put_request(body, Op::SetData, &set_record("/a", data, -1));
        })
    };
    let growing = [
        create(1, "/c"),
        request(2, Op::Create2, &create_record("/c", b"", open(), 0)),
        request(2, Op::CreateContainer, &create_record("/c", b"", open(), 4)),
        create_ttl(2, "/c", 1_000),
        set(3, "/a", b"x"),
        create_one(Op::Create),
        create_one(Op::Create2),
        set_one(b"x"),
    ];
    for frame in &growing {
        member.expect(client, frame, ErrorCode::SystemError);
    }
    assert_eq!(member.tree.last_zxid(), before);
    assert_eq!(refused(&member).len(), growing.len());
    let Command::Request(last) = &refused(&member)[growing.len() - 1] else {
        panic!("not a client's request");
    };
    assert_eq!(last.op, Op::Multi.code());
    assert!(!last.identities.is_empty(), "who asked is known");
    for frame in [
        set(1, "/a", b""),
        set_one(b""),
        get(2, "/a", true),
        keep_alive(),
        delete(3, "/a"),
    ] {
        let replies = member.call_all(client, &frame);
        assert_eq!(replies.last().expect("a reply").err, 0);
    }
    // In order, and a new session can be opened and closed.
    let other = member.client();
    let frames = [
        delete(1, "/b"),
        create(2, "/c"),
        exists(3, "/b", false),
        close_session(4),
    ];
    let replies = member.call_all(other, &frames.concat());
    let answers: Vec<_> = replies.iter().map(|reply| (reply.xid, reply.err)).collect();
    assert_eq!(answers, [(1, 0), (2, -1), (3, -101), (4, 0)]);
    assert_eq!(refused(&member).len(), growing.len() + 1);
    member.growth = Growth::Allowed;
    member.ok(client, &create(9, "/c"));
}
