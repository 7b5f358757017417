//! Records as lines: as ZooKeeper's logback.xml writes them, or as JSON.

use std::fmt::Write as _;

use super::record::{FAILURE, Record};
use crate::config::AuditFormat;
use crate::four_letter::civil_time;

/// Name of the logger as its pattern `%c{2}` shortens it.
const LOGGER: &str = "o.a.z.a.Slf4jAuditLogger";

/// Appends the line of a record.
pub(super) fn append(out: &mut Vec<u8>, record: &Record, format: AuditFormat) {
    let line = match format {
        AuditFormat::Text => text(record),
        AuditFormat::Json => json(record),
    };
    out.extend_from_slice(line.as_bytes());
    out.push(b'\n');
}

/// Keys and values in ZooKeeper's order.
fn fields(record: &Record) -> impl Iterator<Item = (&'static str, String)> {
    let owned = |text: &Option<Box<str>>| text.as_ref().map(ToString::to_string);
    let fields = [
        ("session", record.session.map(|id| format!("0x{id:x}"))),
        ("user", Some(record.user.to_string())),
        ("ip", record.ip.as_ref().map(ToString::to_string)),
        ("operation", Some(record.operation.to_owned())),
        ("znode", owned(&record.znode)),
        ("znode_type", record.znode_type.map(str::to_owned)),
        ("acl", owned(&record.acl)),
        ("result", Some(record.result.to_owned())),
        ("count", record.count.map(|count| count.to_string())),
    ];
    fields
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
}

fn text(record: &Record) -> String {
    let level = if record.result == FAILURE {
        "ERROR"
    } else {
        "INFO"
    };
    let mut line = format!("{} {level} {LOGGER}: ", moment(record.time_ms, ' ', ','));
    for (index, (key, value)) in fields(record).enumerate() {
        if index > 0 {
            line.push('\t');
        }
        line.push_str(key);
        line.push('=');
        push_safely(&mut line, &value);
    }
    line
}

/// A path that was refused may hold anything: control characters would forge fields and lines.
fn push_safely(line: &mut String, value: &str) {
    for sign in value.chars() {
        if sign.is_control() || matches!(sign, '\u{2028}' | '\u{2029}') {
            let _ = write!(line, "\\u{:04x}", u32::from(sign));
        } else {
            line.push(sign);
        }
    }
}

fn json(record: &Record) -> String {
    let mut line = format!("{{\"time\":\"{}Z\"", moment(record.time_ms, 'T', '.'));
    for (key, value) in fields(record) {
        let value = match key {
            "count" => value,
            _ => serde_json::Value::from(value).to_string(),
        };
        let _ = write!(line, ",\"{key}\":{value}");
    }
    line.push('}');
    line
}

/// Date and time in UTC with milliseconds, parted as the format has it.
fn moment(time_ms: i64, between: char, point: char) -> String {
    let (year, month, day, hour, minute) = civil_time(time_ms.div_euclid(1000));
    let second = time_ms.div_euclid(1000).rem_euclid(60);
    let millis = time_ms.rem_euclid(1000);
    format!(
        "{year:04}-{month:02}-{day:02}{between}{hour:02}:{minute:02}:{second:02}{point}{millis:03}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            time_ms: 1_795_984_076_326,
            session: Some(0x0100_0008_82cd_0000),
            ip: Some("127.0.0.1".into()),
            znode: Some("/a\tresult=success\n".into()),
            acl: Some("auth::cdrwa".into()),
            ..Record::of_server(&"bob,127.0.0.1".into(), "setAcl", FAILURE)
        }
    }

    #[test]
    fn a_line_has_the_shape_of_the_shipped_pattern_and_cannot_be_forged() {
        let mut out = Vec::new();
        append(&mut out, &record(), AuditFormat::Text);
        assert_eq!(
            String::from_utf8(out).expect("text"),
            "2026-11-29 20:27:56,326 ERROR o.a.z.a.Slf4jAuditLogger: session=0x100000882cd0000\tuser=bob,127.0.0.1\t\
             ip=127.0.0.1\toperation=setAcl\tznode=/a\\u0009result=success\\u000a\tacl=auth::cdrwa\tresult=failure\n"
        );
    }

    #[test]
    fn json_has_the_same_keys_and_the_time() {
        let mut out = Vec::new();
        append(&mut out, &record(), AuditFormat::Json);
        let value: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        assert_eq!(value["time"], "2026-11-29T20:27:56.326Z");
        assert_eq!(value["session"], "0x100000882cd0000");
        assert_eq!(value["znode"], "/a\tresult=success\n");
        assert_eq!(value.get("znode_type"), None);
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
    }
}
