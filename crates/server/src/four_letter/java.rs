//! Text forms that collectors know from the Java server.

/// A double as Java's `Double.toString` writes it: always a digit behind the point, scientific below 0.001 and from
/// ten million up.
pub(crate) fn double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-3..1e7).contains(&magnitude) {
        return format!("{value:?}");
    }
    let scientific = format!("{value:e}");
    match scientific.split_once('e') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        Some((digits, exponent)) => format!("{digits}E{exponent}"),
        None => scientific,
    }
}

/// A double rounded to four places, halves away from zero, as the Java server rounds its averages.
pub(crate) fn average(value: f64) -> String {
    double(rounded(value))
}

/// The same as a number.
pub(super) fn rounded(value: f64) -> f64 {
    // The fourth place is only tied when the binary value is an odd number of thirty-seconds; Rust rounds ties to even.
    let thirty_seconds = value * 32.0;
    let tied = thirty_seconds.fract() == 0.0 && thirty_seconds % 2.0 != 0.0;
    let nudged = if tied {
        value + 1e-9_f64.copysign(value)
    } else {
        value
    };
    format!("{nudged:.4}").parse().unwrap_or(nudged)
}

/// A 64 bit number as unsigned lower-case hex without padding.
pub(super) fn hex(value: i64) -> String {
    format!("0x{value:x}")
}

/// A moment in Java's `Date.toString` form, always in UTC: `Sun Nov 29 20:28:28 UTC 2026`.
pub(super) fn date(epoch_ms: i64) -> String {
    const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let seconds = epoch_ms.div_euclid(1000);
    let days = seconds.div_euclid(86_400);
    let of_day = seconds.rem_euclid(86_400);
    let (year, month, day) = civil(days);
    format!(
        "{} {} {day:02} {:02}:{:02}:{:02} UTC {year:04}",
        WEEKDAYS[days.rem_euclid(7) as usize],
        MONTHS[month],
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60,
    )
}

/// Year, month from 1, day, hour and minute of a moment in seconds since 1970, in UTC.
pub(crate) fn minute(epoch_s: i64) -> (i64, usize, i64, i64, i64) {
    let (year, month, day) = civil(epoch_s.div_euclid(86_400));
    let of_day = epoch_s.rem_euclid(86_400);
    (year, month + 1, day, of_day / 3600, of_day / 60 % 60)
}

/// The proleptic Gregorian date of a day count from 1970-01-01: year, month from 0, day from 1.
fn civil(days: i64) -> (i64, usize, i64) {
    // Years are counted from March, so that the leap day is the last of its year, in cycles of 400 years.
    const DAYS_OF_CYCLE: i64 = 146_097;
    const MARCH_OF_YEAR_0: i64 = -719_468;
    let since = days - MARCH_OF_YEAR_0;
    let cycle = since.div_euclid(DAYS_OF_CYCLE);
    let of_cycle = since.rem_euclid(DAYS_OF_CYCLE);
    let year_of_cycle = (of_cycle - of_cycle / 1460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let year = cycle * 400 + year_of_cycle + i64::from(month_from_march >= 10);
    (year, ((month_from_march + 2) % 12) as usize, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `kind input expected` lines, the last column as a Java runtime printed it.
    #[test]
    fn numbers_and_dates_equal_javas() {
        let mut seen = 0;
        for line in include_str!("golden/java.txt")
            .lines()
            .filter(|line| !line.starts_with('#'))
        {
            let mut parts = line.splitn(3, '\t');
            let mut next = || parts.next().expect("three columns");
            let (kind, input, expected) = (next(), next(), next());
            let bits = || f64::from_bits(u64::from_str_radix(input, 16).expect("bits of a double"));
            let actual = match kind {
                "double" => double(bits()),
                "average" => average(bits()),
                "date" => date(input.parse().expect("milliseconds")),
                other => panic!("unknown kind {other}"),
            };
            assert_eq!(actual, expected, "{line}");
            seen += 1;
        }
        assert!(seen > 200, "only {seen} vectors");
    }

    #[test]
    fn hex_is_unsigned_and_unpadded() {
        assert_eq!(hex(0), "0x0");
        assert_eq!(hex(-1), "0xffffffffffffffff");
        assert_eq!(hex(0x1_0000_0007), "0x100000007");
    }
}
