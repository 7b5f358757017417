//! Numbers, times and data in words that are short.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

use super::CommandError;

/// Signs of data that are shown on a line.
const SNIPPET: usize = 100;

/// Bytes in the unit that suits them.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut amount = count as f64;
    let mut unit = 0;
    while amount >= 1024.0 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{count} B"),
        _ => format!("{amount:.1} {}", UNITS[unit]),
    }
}

/// Seconds in the unit that suits them.
pub fn age(millis: i64) -> String {
    match millis.max(0) / 1000 {
        seconds @ 0..=119 => format!("{seconds}s"),
        seconds @ 120..=7199 => format!("{}m", seconds / 60),
        seconds @ 7200..=172_799 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// This machine's clock, in milliseconds since 1970.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

/// This moment, as RFC 3339 writes it, with milliseconds.
pub fn now_text() -> String {
    Timestamp::from_millisecond(now_ms()).map_or_else(
        |_| now_ms().to_string(),
        |time| time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
    )
}

/// The beginning of data as one line: text where it is text, else its length.
pub fn snippet(data: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(data) else {
        return format!("<{} bytes>", data.len());
    };
    let shown: String = text
        .chars()
        .take(SNIPPET)
        .map(|sign| if sign.is_control() { ' ' } else { sign })
        .collect();
    if shown.len() < text.len() {
        format!("{shown}…")
    } else {
        shown
    }
}

/// A whole number with a unit behind it, such as 10k; `units` has their factors.
pub fn number(text: &str, units: &[(&str, i64)]) -> Result<i64, CommandError> {
    let digits = text.trim_end_matches(|sign: char| sign.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let factor = match unit {
        "" => Some(1),
        unit => units
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit))
            .map(|(_, factor)| *factor),
    };
    let value = digits.parse::<i64>().ok();
    let number = value
        .zip(factor)
        .and_then(|(value, factor)| value.checked_mul(factor));
    number.filter(|number| *number >= 0).ok_or_else(|| {
        let names: Vec<_> = units.iter().map(|(name, _)| *name).collect();
        CommandError::failed(format!(
            "\"{text}\" is no whole number, with one of the units {} behind it or none",
            names.join(", ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
        assert_eq!(age(-5), "0s");
        assert_eq!(age(119_999), "119s");
        assert_eq!(age(120_000), "2m");
        assert_eq!(age(3 * 86_400_000), "3d");
    }

    #[test]
    fn data_is_one_line() {
        assert_eq!(snippet(b"a\nb"), "a b");
        assert_eq!(snippet(&[0xff, 0]), "<2 bytes>");
        assert_eq!(snippet("ä".repeat(101).as_bytes()), "ä".repeat(100) + "…");
    }

    #[test]
    fn numbers_have_units() {
        let units = [("k", 1024), ("M", 1 << 20)];
        assert_eq!(number("3", &units).expect("a number"), 3);
        assert_eq!(number("3K", &units).expect("a number"), 3072);
        for wrong in [
            "",
            "k",
            "3x",
            "-3",
            "9999999999999999999",
            "9223372036854775807k",
        ] {
            number(wrong, &units).expect_err(wrong);
        }
    }
}
