//! Metadata of a znode, as zkCli prints it and as JSON.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use quenda_proto::records::Stat;
use serde_json::{Value, json};

use super::{CommandError, Output};

/// Prints the block of eleven lines.
pub fn print(stat: &Stat, out: &mut Output) -> Result<(), CommandError> {
    let zone = local_zone();
    out.line(&format!(
        "cZxid = 0x{:x}\nctime = {}\nmZxid = 0x{:x}\nmtime = {}\npZxid = 0x{:x}\ncversion = {}\ndataVersion = {}\n\
         aclVersion = {}\nephemeralOwner = 0x{:x}\ndataLength = {}\nnumChildren = {}",
        stat.czxid,
        java_date(stat.ctime, &zone),
        stat.mzxid,
        java_date(stat.mtime, &zone),
        stat.pzxid,
        stat.cversion,
        stat.version,
        stat.aversion,
        stat.ephemeral_owner,
        stat.data_length,
        stat.num_children,
    ))
}

/// The fields under the names of the block; times in milliseconds since 1970.
pub fn to_json(stat: &Stat) -> Value {
    json!({
        "cZxid": format!("0x{:x}", stat.czxid),
        "ctime": stat.ctime,
        "mZxid": format!("0x{:x}", stat.mzxid),
        "mtime": stat.mtime,
        "pZxid": format!("0x{:x}", stat.pzxid),
        "cversion": stat.cversion,
        "dataVersion": stat.version,
        "aclVersion": stat.aversion,
        "ephemeralOwner": format!("0x{:x}", stat.ephemeral_owner),
        "dataLength": stat.data_length,
        "numChildren": stat.num_children,
    })
}

/// The machine's time zone; UTC where it cannot be learned.
fn local_zone() -> TimeZone {
    TimeZone::try_system().unwrap_or(TimeZone::UTC)
}

/// A time as Java's Date prints it.
fn java_date(millis: i64, zone: &TimeZone) -> String {
    match Timestamp::from_millisecond(millis) {
        Ok(time) => time
            .to_zoned(zone.clone())
            .strftime("%a %b %d %H:%M:%S %Z %Y")
            .to_string(),
        // Beyond the calendar: a znode made by a broken clock.
        Err(_) => format!("{millis} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_has_eleven_lines() {
        let (mut out, written) = crate::shell::output::captured();
        let metadata = Stat {
            czxid: 0x1f,
            ephemeral_owner: -1,
            aversion: -1,
            data_length: 3,
            ..Stat::default()
        };
        print(&metadata, &mut out).expect("captured output takes everything");
        let text = written.out();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 11);
        assert_eq!(lines[0], "cZxid = 0x1f");
        assert_eq!(lines[7], "aclVersion = -1");
        assert_eq!(lines[8], "ephemeralOwner = 0xffffffffffffffff");
        assert_eq!(lines[9], "dataLength = 3");
    }

    #[test]
    fn dates_read_as_javas() {
        let millis = 1_795_983_888_000;
        assert_eq!(
            java_date(millis, &TimeZone::UTC),
            "Sun Nov 29 20:24:48 UTC 2026"
        );
        assert_eq!(java_date(0, &TimeZone::UTC), "Thu Jan 01 00:00:00 UTC 1970");
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone");
        assert_eq!(java_date(millis, &berlin), "Sun Nov 29 21:24:48 CET 2026");
        assert_eq!(
            java_date(millis - 15_000_000_000, &berlin),
            "Tue Jun 09 07:44:48 CEST 2026"
        );
        assert_eq!(
            java_date(i64::MAX, &TimeZone::UTC),
            "9223372036854775807 ms"
        );
    }
}
