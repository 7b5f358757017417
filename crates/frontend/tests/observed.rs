//! What connections note of their requests: exact sums, fair samples, and what is named.

mod driver;

use std::collections::BTreeMap;

use driver::Member;
use driver::requests::{create, create_record, delete_record, get, multi, open, set};
use quenda_frontend::{Observation, Observed, Part, Sampling, Settings};
use quenda_proto::Op;
use quenda_proto::multi::put_request;

fn requests_of(observed: &Observed, op: Op) -> u64 {
    let tally = observed.ops.iter().find(|(known, _)| *known == op);
    tally.map_or(0, |(_, tally)| tally.requests)
}

#[test]
fn sums_by_operation_are_exact() {
    let mut member = Member::default();
    let client = member.client();
    member.take_observed(client);
    let mut sent = 0;
    for number in 0..50 {
        let frame = create(number, "/a");
        sent += frame.len() as u64;
        member.send(client, &frame);
        member.apply();
    }
    for number in 0..70 {
        member.send(client, &get(number, "/a", false));
    }
    let payloads = member.payloads(client);
    let out: u64 = payloads
        .iter()
        .map(|payload| 4 + payload.len() as u64)
        .sum();
    let observed = member.take_observed(client);
    assert_eq!(requests_of(&observed, Op::Create), 50);
    assert_eq!(requests_of(&observed, Op::GetData), 70);
    let creates = &observed.ops[0].1;
    assert_eq!((observed.ops[0].0, creates.bytes_in), (Op::Create, sent));
    let bytes_out: u64 = observed.ops.iter().map(|(_, tally)| tally.bytes_out).sum();
    assert_eq!(bytes_out, out);
    assert!(member.take_observed(client).ops.is_empty());
}

#[test]
fn few_requests_are_noted_one_by_one() {
    let mut member = Member::default();
    let client = member.client();
    member.take_observed(client);
    for path in ["/a", "/b", "/a"] {
        member.send(client, &create(1, path));
    }
    member.apply();
    let observed = member.take_observed(client);
    let noted: Vec<_> = observed
        .samples
        .iter()
        .map(|sample| (sample.op, sample.weight, observed.path(sample).into_owned()))
        .collect();
    let expected = ["/a", "/b", "/a"].map(|path| (Op::Create, 1, path.to_owned()));
    assert_eq!(noted, expected);
}

/// Each path is estimated close to what it really got, also where the client goes through them in a fixed order.
#[test]
fn samples_stand_for_all() {
    let mut member = Member::default();
    for every in [4, 16] {
        let client = member.client();
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        let rounds = 4000;
        for round in 0..rounds {
            for path in ["/a", "/a", "/b", "/c"] {
                member.send(client, &get(1, path, false));
            }
            member.payloads(client);
            if round % 8 == 7 {
                let observed = member.take_observed_with(client, Sampling { exact: 2, every });
                for sample in &observed.samples {
                    let sum = sums.entry(observed.path(sample).into_owned()).or_default();
                    *sum += u64::from(sample.weight);
                }
            }
        }
        let share = |path: &str| sums[path] as f64 / rounds as f64;
        println!("every {every}: {sums:?}");
        for (path, expected) in [("/a", 2.0), ("/b", 1.0), ("/c", 1.0)] {
            let found = share(path);
            assert!((found - expected).abs() < expected / 4.0, "{path}: {found}");
        }
    }
}

#[test]
fn slow_requests_and_large_writes_are_named() {
    let mut member = Member::new(Settings {
        observation: Observation {
            slow_ms: 100,
            value_bytes: 1000,
        },
        ..Settings::default()
    });
    let client = member.client();
    member.take_observed(client);
    member.send(client, &create(1, "/a"));
    member.now_ms += 100;
    member.apply();
    assert_eq!(member.take_observed(client).slow_count, 0);
    for number in 0..10 {
        member.send(client, &set(number, "/a", &[0; 2000]));
    }
    member.send(client, &get(11, "/a", false));
    member.now_ms += 101;
    member.apply();
    let observed = member.take_observed(client);
    assert_eq!((observed.slow_count, observed.large_count), (11, 10));
    assert!(observed.slow.len() < 10 && observed.large.len() < 10);
    let slow = &observed.slow[0];
    assert_eq!((slow.op, &*slow.path), (Op::SetData, "/a"));
    assert_eq!(slow.answered_ms - slow.received_ms, 101);
    assert!(observed.large[0].bytes_in > 2000);
}

#[test]
fn parts_of_a_multi_count_for_their_paths() {
    let mut member = Member::default();
    let client = member.client();
    member.take_observed(client);
    let frame = multi(1, Op::Multi, |body| {
        for path in ["/a", "/b"] {
            put_request(body, Op::Create, &create_record(path, b"", open(), 0));
        }
        put_request(body, Op::Delete, &delete_record("/b"));
    });
    member.send(client, &frame);
    member.apply();
    let observed = member.take_observed(client);
    let parts = observed.samples.iter();
    let parts = parts.filter(|sample| sample.part == Part::OfMulti);
    let parts: Vec<_> = parts
        .map(|sample| (sample.op, observed.path(sample).into_owned()))
        .collect();
    assert_eq!(
        parts,
        [
            (Op::Create, "/a".to_owned()),
            (Op::Create, "/b".to_owned()),
            (Op::Delete, "/b".to_owned())
        ]
    );
    let whole = observed.samples.iter().find(|one| one.part == Part::Whole);
    let whole = whole.expect("the request itself");
    assert_eq!((whole.op, &*observed.path(whole)), (Op::Multi, "/a"));
}

#[test]
fn a_path_is_cut_where_it_is_very_long() {
    let mut member = Member::default();
    let client = member.client();
    member.take_observed(client);
    let path = format!("/{}", "ä".repeat(10_000));
    member.send(client, &get(1, &path, false));
    let observed = member.take_observed(client);
    let noted = observed.path(&observed.samples[0]).into_owned();
    assert!(noted.len() <= 512 && path.starts_with(&noted));
}
