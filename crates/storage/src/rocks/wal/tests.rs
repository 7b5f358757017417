use quenda_consensus::HardState;

use super::*;

const OLD: u64 = 4;
const NUMBER: u64 = 9;
const SEAL: Seal = [7; seal::LEN];

fn record(kind: u8, number: u64, payload: &[u8]) -> Vec<u8> {
    let mut covered = vec![kind];
    if kind > 4 {
        covered.extend_from_slice(&(number as u32).to_le_bytes());
    }
    covered.extend_from_slice(payload);
    let mut record = masked(crc32c::crc32c(&covered)).to_le_bytes().to_vec();
    record.extend_from_slice(&(payload.len() as u16).to_le_bytes());
    record.extend_from_slice(&covered);
    record
}

fn put(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut change = vec![PUT, 2, key.len() as u8];
    change.extend_from_slice(key);
    let len = value.len();
    change.extend_from_slice(&[(len & 0x7f) as u8 | 0x80, (len >> 7) as u8]);
    change.extend_from_slice(value);
    change
}

/// The payload of an append with a row of `len` bytes and the row that counts appends.
fn append(number: u64, len: usize, seal: Option<Seal>) -> Vec<u8> {
    let progress = Progress {
        hard_state: HardState::default(),
        appends: number,
    };
    let mut write = (2 * number).to_le_bytes().to_vec();
    write.extend_from_slice(&2_u32.to_le_bytes());
    write.extend_from_slice(&put(&number.to_be_bytes(), &vec![1; len]));
    write.extend_from_slice(&[PUT, 6, PROGRESS_KEY.len() as u8]);
    write.extend_from_slice(PROGRESS_KEY);
    write.push(PROGRESS_LEN as u8);
    write.extend_from_slice(&progress.encode());
    if let Some(seal) = seal {
        write.extend_from_slice(&[LOG_DATA, seal::LEN as u8]);
        write.extend_from_slice(&seal);
    }
    write
}

/// Writes a payload as RocksDB does, into blocks, over what is there.
fn add(log: &mut Vec<u8>, at: usize, number: u64, mut payload: &[u8], numbered: bool) -> usize {
    let header = if numbered { NUMBERED_HEADER } else { HEADER };
    let (mut bytes, mut first) = (Vec::new(), true);
    loop {
        let left = BLOCK - (at + bytes.len()) % BLOCK;
        if left < header {
            bytes.resize(bytes.len() + left, 0);
            continue;
        }
        let len = payload.len().min(left - header);
        let kind = match (first, len == payload.len()) {
            (true, true) => 1,
            (true, false) => 2,
            (false, false) => 3,
            (false, true) => 4,
        };
        let kind = kind + if numbered { 4 } else { 0 };
        bytes.extend_from_slice(&record(kind, number, &payload[..len]));
        payload = &payload[len..];
        first = false;
        if payload.is_empty() {
            break;
        }
    }
    let end = at + bytes.len();
    if log.len() < end {
        log.resize(end, 0);
    }
    log[at..end].copy_from_slice(&bytes);
    end
}

/// A file with a former life of large writes, overwritten by `count` appends; where each of them ends.
fn overwritten(count: u64, len: usize) -> (Vec<u8>, Vec<usize>) {
    let (mut log, mut at) = (Vec::new(), 0);
    for number in 1..=20 {
        at = add(
            &mut log,
            at,
            OLD,
            &append(number, 9_001, Some([5; 16])),
            true,
        );
    }
    let (mut ends, mut at) = (Vec::new(), 0);
    for number in 1..=count {
        let payload = append(number + 20, len, Some(SEAL));
        at = add(&mut log, at, NUMBER, &payload, true);
        ends.push(at);
    }
    (log, ends)
}

#[test]
fn a_former_life_ends_the_file_wherever_it_shows() {
    for len in [0, 100, 3_000, 10_000] {
        for count in 0..=12 {
            let (log, ends) = overwritten(count, len);
            let file = LogFile::read(&log, NUMBER, None);
            assert_eq!(
                file.end,
                ends.last().copied().unwrap_or(0),
                "{count} of {len}"
            );
            assert_eq!(file.newest, if count == 0 { 0 } else { count + 20 });
            assert_eq!(file.beyond, 0, "{count} of {len}");
            let sequence = (count > 0).then_some((42, 2 * (count + 21)));
            assert_eq!(file.sequence, sequence);
        }
    }
}

#[test]
fn whatever_is_torn_off_an_overwritten_file_ends_it_at_the_write_before() {
    let (log, ends) = overwritten(12, 5_000);
    let old = overwritten(0, 0).0;
    for cut in (0..*ends.last().unwrap()).step_by(61) {
        let whole = ends.iter().filter(|end| **end <= cut).count();
        // The rest did not arrive: the former life is still there, or the file ends.
        let stale = [&log[..cut], &old[cut..]].concat();
        for torn in [&stale[..], &log[..cut]] {
            let file = LogFile::read(torn, NUMBER, None);
            let end = whole.checked_sub(1).map_or(0, |last| ends[last]);
            assert_eq!((file.end, file.beyond), (end, 0), "torn at {cut}");
        }
    }
}

#[test]
fn damage_anywhere_is_seen_by_the_appends_behind_it() {
    let (log, ends) = overwritten(12, 5_000);
    for at in (0..ends[9]).step_by(53) {
        let mut damaged = log.clone();
        damaged[at] ^= 4;
        let file = LogFile::read(&damaged, NUMBER, Some(SEAL));
        let whole = ends.iter().filter(|end| **end <= at).count();
        let end = whole.checked_sub(1).map_or(0, |last| ends[last]);
        assert_eq!(file.end, end, "damaged at {at}");
        assert_eq!(file.beyond, 32, "damaged at {at}");
    }
}

#[test]
fn a_write_that_a_client_made_up_is_none() {
    let (mut log, ends) = overwritten(3, 200);
    let forged = append(24, 10, Some([9; 16]));
    add(&mut log, ends[2], NUMBER, &forged, true);
    let file = LogFile::read(&log, NUMBER, None);
    assert_eq!((file.end, file.newest, file.beyond), (ends[2], 23, 0));
    let unsealed = append(24, 10, None);
    add(&mut log, ends[2], NUMBER, &unsealed, true);
    let file = LogFile::read(&log, NUMBER, None);
    assert_eq!((file.end, file.newest, file.beyond), (ends[2], 23, 0));
    let genuine = append(24, 10, Some(SEAL));
    let end = add(&mut log, ends[2], NUMBER, &genuine, true);
    assert_eq!(LogFile::read(&log, NUMBER, None).end, end);
}

#[test]
fn files_of_the_version_that_overwrote_none_are_read() {
    let (mut log, mut at, mut ends) = (Vec::new(), 0, Vec::new());
    for number in 1..=9 {
        at = add(&mut log, at, NUMBER, &append(number, 9_000, None), false);
        ends.push(at);
    }
    let file = LogFile::read(&log, NUMBER, None);
    assert_eq!((file.end, file.newest, file.numbered), (at, 9, false));
    log[ends[4] + 100] ^= 1;
    let file = LogFile::read(&log, NUMBER, None);
    assert_eq!((file.end, file.newest, file.beyond), (ends[4], 5, 9));
    log.truncate(ends[4] - 1);
    assert_eq!(LogFile::read(&log, NUMBER, None).end, ends[3]);
    log.resize(9 * BLOCK, 0);
    let file = LogFile::read(&log, NUMBER, None);
    assert_eq!((file.end, file.beyond), (ends[3], 0));
}

#[test]
fn writes_that_were_joined_count_the_append_in_them() {
    let mut joined = append(5, 30, Some(SEAL));
    let other = put(b"checkpoint", &[0; 40]);
    joined[8..12].copy_from_slice(&3_u32.to_le_bytes());
    joined.extend_from_slice(&other);
    joined.extend_from_slice(&[LOG_DATA, 16]);
    joined.extend_from_slice(&SEAL);
    let mut log = Vec::new();
    let end = add(&mut log, 0, NUMBER, &joined, true);
    let file = LogFile::read(&log, NUMBER, None);
    assert_eq!(
        (file.end, file.newest, file.sequence),
        (end, 5, Some((10, 13)))
    );
}
