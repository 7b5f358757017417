//! The number that a server puts at the end of a sequential znode's name.

/// Digits that it has.
const DIGITS: usize = 10;

/// Where it begins, and the number; `None` if the name has none.
pub fn sequence(name: &str) -> Option<(usize, i64)> {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    if digits < DIGITS {
        return None;
    }
    let place = name.len() - DIGITS;
    let number: i64 = name[place..].parse().ok()?;
    // A counter that has passed 2^31 goes on from −2^31, with ten digits behind the sign at first.
    let before = name[..place].strip_suffix('-');
    let wrapped =
        number > 1_000_000_000 && before.is_some_and(|before| before.ends_with(['-', '_']));
    match wrapped {
        true => Some((place - 1, -number)),
        false => Some((place, number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_at_the_end() {
        assert_eq!(sequence("lock-0000000012"), Some((5, 12)));
        assert_eq!(sequence("0000000012"), Some((0, 12)));
        assert_eq!(sequence("lock-12"), None);
        assert_eq!(sequence("lock--2147483648"), Some((5, -2_147_483_648)));
        assert_eq!(sequence("lock"), None);
    }
}
