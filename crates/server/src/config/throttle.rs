//! Settings of what waits and of who is turned away under load.

use std::time::Duration;

use quenda_frontend::{SessionThrottleSettings, Throttling};

use super::ConfigError;
use super::remark::Remark;
use super::resolve::{GREATEST_NUMBER, Reader};
use crate::config::keys;

/// Bounds over all connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThrottleSettings {
    /// Requests that wait, over all connections, above which those with several take turns; divided by the number of
    /// other voters where there are more than two. `globalOutstandingLimit`.
    pub outstanding_max: usize,
    /// Requests that wait, over all connections, at which no connection is read; none for no bound.
    /// `request_throttle_max_requests`.
    pub requests_max: Option<usize>,
    /// How long a connection is not read then before it is looked at again. `request_throttle_stall_time`.
    pub stall_time: Duration,
    /// Whether requests that nobody waits for any more are dropped then. `request_throttle_drop_stale`.
    pub drop_stale: bool,
    /// Whether those are requests that waited for longer than a session lasts. `request_stale_latency_check`.
    pub stale_by_latency: bool,
    /// Whether those are requests of closed connections. `request_stale_connection_check`.
    pub stale_by_connection: bool,
    /// How long a request may wait to be taken, ms; none for any time. `throttled_op_wait_time`.
    pub op_wait_ms: Option<u64>,
    /// Bytes above which a request is large; none if no request is. `largeRequestThreshold`.
    pub large_threshold: Option<usize>,
    /// Bytes of large requests in flight. `largeRequestMaxBytes`.
    pub large_max: usize,
    /// How long a stop waits for what was accepted to become durable. `request_throttler.shutdownTimeout`.
    pub stop_patience: Duration,
    /// How many sessions are opened and resumed. `connection_throttle_*`.
    pub sessions: SessionThrottleSettings,
}

impl ThrottleSettings {
    /// What each connection has to know.
    pub fn of_connections(&self) -> Throttling {
        Throttling {
            op_wait_ms: self.op_wait_ms.unwrap_or(u64::MAX),
            large_threshold: self.large_threshold.unwrap_or(usize::MAX),
            stale_by_latency: self.stale_by_latency,
        }
    }
}

pub(super) fn resolve(reader: &mut Reader<'_>) -> Result<ThrottleSettings, ConfigError> {
    let requests_max: i64 = reader.loose("request_throttle_max_requests", -1, GREATEST_NUMBER)?;
    let op_wait_ms: i64 = reader.loose("throttled_op_wait_time", -1, GREATEST_NUMBER)?;
    let large_threshold: i64 = reader.loose("largeRequestThreshold", -1, GREATEST_NUMBER)?;
    Ok(ThrottleSettings {
        outstanding_max: reader.loose("globalOutstandingLimit", 1, GREATEST_NUMBER)?,
        requests_max: positive(requests_max).map(|count| count as usize),
        stall_time: Duration::from_millis(reader.loose(
            "request_throttle_stall_time",
            1,
            GREATEST_NUMBER,
        )?),
        drop_stale: reader.is_true("request_throttle_drop_stale"),
        stale_by_latency: reader.is_true("request_stale_latency_check"),
        stale_by_connection: reader.is_true("request_stale_connection_check"),
        op_wait_ms: positive(op_wait_ms),
        large_threshold: usize::try_from(large_threshold).ok(),
        large_max: reader.loose("largeRequestMaxBytes", 1, GREATEST_NUMBER)?,
        stop_patience: Duration::from_millis(reader.loose(
            "request_throttler.shutdownTimeout",
            1,
            GREATEST_NUMBER,
        )?),
        sessions: sessions(reader)?,
    })
}

fn sessions(reader: &mut Reader<'_>) -> Result<SessionThrottleSettings, ConfigError> {
    let tokens: i64 = reader.loose("connection_throttle_tokens", -1, GREATEST_NUMBER)?;
    let freeze_time: i64 = reader.loose("connection_throttle_freeze_time", -1, GREATEST_NUMBER)?;
    let mut weights = [1; 3];
    if reader.is_true("connection_throttle_weight_enabled") {
        weights = [
            reader.loose(
                "connection_throttle_global_session_weight",
                1,
                GREATEST_NUMBER,
            )?,
            reader.loose(
                "connection_throttle_local_session_weight",
                1,
                GREATEST_NUMBER,
            )?,
            reader.loose(
                "connection_throttle_renew_session_weight",
                1,
                GREATEST_NUMBER,
            )?,
        ];
    }
    Ok(SessionThrottleSettings {
        tokens: u32::try_from(tokens).unwrap_or(0),
        fill_time_ms: reader.loose("connection_throttle_fill_time", 1, GREATEST_NUMBER)?,
        fill_count: reader.loose("connection_throttle_fill_count", 1, GREATEST_NUMBER)?,
        freeze_time_ms: u32::try_from(freeze_time).ok(),
        drop_increase: millionths(reader, "connection_throttle_drop_increase")?,
        drop_decrease: millionths(reader, "connection_throttle_drop_decrease")?,
        decrease_ratio: millionths(reader, "connection_throttle_decrease_ratio")?,
        weights,
    })
}

fn positive(number: i64) -> Option<u64> {
    u64::try_from(number).ok().filter(|number| *number > 0)
}

/// A part of one, from 0 to 1.
fn millionths(reader: &mut Reader<'_>, name: &str) -> Result<u32, ConfigError> {
    let part = |text: &str| {
        let value: f64 = text.parse().ok()?;
        (0.0..=1.0)
            .contains(&value)
            .then(|| (value * 1_000_000.0).round() as u32)
    };
    let text = reader.settings.get_or_default(name);
    if let Some(value) = part(text) {
        return Ok(value);
    }
    let default = keys::find(name).map_or("", |key| key.default);
    reader.remarks.push(Remark::warn(format!(
        "{name}: {text} is not a number from 0 to 1; using {default}"
    )));
    part(default).ok_or_else(|| ConfigError::invalid(format!("{name}: {text} is not a number")))
}
