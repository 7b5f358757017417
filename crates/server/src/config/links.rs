//! Times and bounds of the connections between members.

use std::time::Duration;

use super::remark::{ConfigError, Remark};
use super::resolve::{GREATEST_NUMBER, Reader};
use crate::limits::{
    IMAGE_FEEDS, IMAGE_PATIENCE, PEER_DIAL_PATIENCE, PEER_DIAL_PAUSE_MIN, PEER_IDLE_MAX,
    PEER_PING_INTERVAL,
};

/// Least and greatest time in which an address answers a dial.
const DIAL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));
/// Least and greatest first pause between two dials.
const PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(10));
/// Longest time for which an observer leaves a member alone.
const RECONNECT_MAX: Duration = Duration::from_secs(60);
/// Least and greatest silence of a peer: some of its signs of life may be late.
const IDLE: (Duration, Duration) = (
    Duration::from_secs(3 * PEER_PING_INTERVAL.as_secs()),
    Duration::from_secs(60),
);
/// The longest that a snapshot may make no progress.
const PROGRESS_MAX: Duration = Duration::from_secs(3600);

/// Settings of the connections between members. None of them touches elections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSettings {
    /// How long an address of a peer may take to answer a dial. `cnxTimeout`.
    pub dial_patience: Duration,
    /// The same for each address of a peer that has several, of which the next one is tried then.
    /// `multiAddress.reachabilityCheckTimeoutMs`.
    pub dial_patience_of_many: Duration,
    /// The first pause between two dials of a peer; later ones are longer. `leaderConnectDelayDuringRetryMs`.
    pub dial_pause: Duration,
    /// How long an observer waits before it dials a peer anew whose connection it lost. `observer.reconnectDelayMs`.
    pub reconnect_delay: Duration,
    /// Silence of a peer after which its connection is closed. `quorumCnxnTimeoutMs`, or `syncLimit` ticks.
    pub idle_max: Duration,
    /// How long a snapshot may make no progress before its transfer is given up. `initLimit` ticks, if that is longer.
    pub image_patience: Duration,
    /// Members that are sent a snapshot at one time. `leader.maxConcurrentSnapSyncs`.
    pub image_feeds: usize,
}

impl Default for LinkSettings {
    fn default() -> Self {
        Self {
            dial_patience: PEER_DIAL_PATIENCE,
            dial_patience_of_many: PEER_DIAL_PATIENCE,
            dial_pause: PEER_DIAL_PAUSE_MIN,
            reconnect_delay: Duration::ZERO,
            idle_max: PEER_IDLE_MAX,
            image_patience: IMAGE_PATIENCE,
            image_feeds: IMAGE_FEEDS,
        }
    }
}

impl LinkSettings {
    /// How long each of so many addresses of one peer may take to answer.
    pub fn dial_patience(&self, addresses: usize) -> Duration {
        match addresses {
            0 | 1 => self.dial_patience,
            _ => self.dial_patience_of_many,
        }
    }
}

/// What the settings of members give to those of their connections.
#[derive(Default)]
pub(super) struct Limits {
    pub(super) tick_time_ms: u32,
    /// Ticks; 0 for a member that runs alone.
    pub(super) init_limit: u32,
    /// Ticks; 0 for a member that runs alone.
    pub(super) sync_limit: u32,
    pub(super) observer: bool,
}

/// Reads the settings.
///
/// # Errors
/// A value that is none.
pub(super) fn resolve(
    reader: &mut Reader<'_>,
    limits: &Limits,
) -> Result<LinkSettings, ConfigError> {
    let ticks = |count: u32| {
        Duration::from_millis(u64::from(limits.tick_time_ms).saturating_mul(u64::from(count)))
    };
    let dial_patience = bounded(reader, "cnxTimeout", DIAL)?;
    reader.strict("multiAddress.reachabilityCheckTimeoutMs")?;
    let of_many = bounded(reader, "multiAddress.reachabilityCheckTimeoutMs", DIAL)?;
    let checks = reader.strict_bool("multiAddress.reachabilityCheckEnabled")?;
    let silence: i64 = reader.loose("quorumCnxnTimeoutMs", -1, GREATEST_NUMBER)?;
    let idle_max = match u64::try_from(silence).ok().filter(|silence| *silence > 0) {
        Some(_) => bounded(reader, "quorumCnxnTimeoutMs", IDLE)?,
        None if limits.sync_limit == 0 => PEER_IDLE_MAX,
        None => ticks(limits.sync_limit).clamp(PEER_IDLE_MAX, IDLE.1),
    };
    let reconnect_delay = bounded(
        reader,
        "observer.reconnectDelayMs",
        (Duration::ZERO, RECONNECT_MAX),
    )?;
    Ok(LinkSettings {
        dial_patience,
        dial_patience_of_many: if checks { of_many } else { dial_patience },
        dial_pause: bounded(reader, "leaderConnectDelayDuringRetryMs", PAUSE)?,
        reconnect_delay: match limits.observer {
            true => reconnect_delay,
            false => Duration::ZERO,
        },
        idle_max,
        image_patience: ticks(limits.init_limit).clamp(IMAGE_PATIENCE, PROGRESS_MAX),
        image_feeds: reader.loose("leader.maxConcurrentSnapSyncs", 1, GREATEST_NUMBER)?,
    })
}

/// Milliseconds within bounds; a value beyond them is moved there, with a remark.
fn bounded(
    reader: &mut Reader<'_>,
    name: &str,
    (least, greatest): (Duration, Duration),
) -> Result<Duration, ConfigError> {
    let given = Duration::from_millis(reader.loose(name, 0, GREATEST_NUMBER)?);
    let taken = given.clamp(least, greatest);
    if taken != given {
        reader.remarks.push(Remark::warn(format!(
            "{name}={} is beyond the bounds here: {} ms counts",
            given.as_millis(),
            taken.as_millis()
        )));
    }
    Ok(taken)
}
