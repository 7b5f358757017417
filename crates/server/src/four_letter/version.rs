//! The version text that clients and collectors read a version of ZooKeeper from.

/// The ZooKeeper release whose protocol and texts this server follows. Client libraries decide by it what they may use.
pub const COMPATIBLE_VERSION: &str = "3.9.5";

/// The text that `srvr`, `mntr` and `envi` show: the release followed, this program's own `release` and `commit` (if
/// known), and the moment it was built, in seconds since 1970. go-zookeeper allows only letters, digits, `.` and `-`
/// before the comma, and only the form of date that ZooKeeper had up to 3.6: `srvr` of later releases it cannot read.
pub fn version(release: &str, commit: Option<&str>, built_s: i64) -> String {
    let commit = commit
        .map(|commit| format!("-{commit}"))
        .unwrap_or_default();
    let (year, month, day, hour, minute) = super::java::minute(built_s);
    format!(
        "{COMPATIBLE_VERSION}-quenda.{release}{commit}, built on {month:02}/{day:02}/{year:04} {hour:02}:{minute:02} UTC"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_starts_with_the_release_followed() {
        assert_eq!(
            version("0.1.0", Some("5a880c4"), 1_795_993_801),
            "3.9.5-quenda.0.1.0-5a880c4, built on 11/29/2026 23:10 UTC"
        );
        assert_eq!(
            version("1.0.0", None, 0),
            "3.9.5-quenda.1.0.0, built on 01/01/1970 00:00 UTC"
        );
    }
}
