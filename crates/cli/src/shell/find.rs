//! `find`: znodes of a subtree by name and metadata.

use quenda_proto::records::Stat;
use serde_json::json;

use super::json_list::JsonList;
use super::sequence::sequence;
use super::{CommandError, Output, Paint, Session, path, stat, usage, walk, words};

/// Bytes, as in find(1).
const SIZES: &[(&str, i64)] = &[("c", 1), ("k", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)];
/// Milliseconds.
const TIMES: &[(&str, i64)] = &[
    ("s", 1000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];
/// The unit of a time that names none: days, as in find(1).
const DAY_MS: i64 = 86_400_000;

/// Runs the command; `args` are the words behind its name.
pub async fn run(session: &Session, args: &[String], out: &mut Output) -> Result<(), CommandError> {
    let search = Search::parse(args, words::now_ms())?;
    let mut list = JsonList::default();
    let left_out = walk::all(session.client(), &search.start, async |found| {
        if !search
            .tests
            .iter()
            .all(|test| test.holds(&found.path, &found.stat))
        {
            return Ok(());
        }
        if out.wants_json() {
            let row = json!({ "path": found.path, "stat": stat::to_json(&found.stat) });
            return list.push(&row, out);
        }
        let line = out.paint(Paint::Path, &found.path).into_owned();
        out.line(&line)
    })
    .await?;
    if out.wants_json() {
        list.end(out)?;
    }
    left_out.map_or(Ok(()), |text| out.note(&text))
}

/// Where to look, and for what.
#[derive(Debug)]
struct Search {
    start: String,
    tests: Vec<Test>,
}

#[derive(Debug)]
enum Test {
    Name(String),
    Ephemeral(bool),
    Sequential,
    Owner(i64),
    Size(Bound),
    Children(Bound),
    /// Time of the last change of the data; a bound on its age.
    Changed(Bound, i64),
    /// The same for the creation.
    Created(Bound, i64),
}

/// `+N` more, `-N` less, `N` exactly.
#[derive(Debug, Clone, Copy)]
enum Bound {
    Above(i64),
    Below(i64),
    Equal(i64),
}

impl Bound {
    fn parse(text: &str, units: &[(&str, i64)]) -> Result<Bound, CommandError> {
        if let Some(rest) = text.strip_prefix('+') {
            return words::number(rest, units).map(Bound::Above);
        }
        match text.strip_prefix('-') {
            Some(rest) => words::number(rest, units).map(Bound::Below),
            None => words::number(text, units).map(Bound::Equal),
        }
    }

    /// Ages without a unit are in days.
    fn parse_age(text: &str) -> Result<Bound, CommandError> {
        let bound = Bound::parse(text, TIMES)?;
        let has_unit = text.ends_with(|sign: char| sign.is_ascii_alphabetic());
        let days = |number: i64| {
            if has_unit {
                number
            } else {
                number.saturating_mul(DAY_MS)
            }
        };
        Ok(match bound {
            Bound::Above(number) => Bound::Above(days(number)),
            Bound::Below(number) => Bound::Below(days(number)),
            Bound::Equal(_) => {
                return Err(CommandError::failed(
                    "a time is +N (longer ago) or -N (since then), such as -10m",
                ));
            }
        })
    }

    fn holds(self, value: i64) -> bool {
        match self {
            Bound::Above(bound) => value > bound,
            Bound::Below(bound) => value < bound,
            Bound::Equal(bound) => value == bound,
        }
    }
}

impl Search {
    fn parse(args: &[String], now: i64) -> Result<Search, CommandError> {
        let mut start = None;
        let mut tests = Vec::new();
        let mut args = args.iter();
        while let Some(word) = args.next() {
            let Some(option) = word.strip_prefix('-') else {
                if start.replace(word.clone()).is_some() {
                    return Err(usage::of("find"));
                }
                continue;
            };
            let option = option.trim_start_matches('-');
            let value = args.next().ok_or_else(|| usage::of("find"))?;
            tests.push(Test::parse(option, value, now)?);
        }
        let start = start.unwrap_or_else(|| "/".to_owned());
        path::check(&start)?;
        Ok(Search { start, tests })
    }
}

impl Test {
    fn parse(option: &str, value: &str, now: i64) -> Result<Test, CommandError> {
        Ok(match option {
            "name" => Test::Name(value.to_owned()),
            "type" => Test::parse_type(value)?,
            "owner" => Test::Owner(session_id(value)?),
            "size" => Test::Size(Bound::parse(value, SIZES)?),
            "children" => Test::Children(Bound::parse(value, &[])?),
            "mtime" => Test::Changed(Bound::parse_age(value)?, now),
            "ctime" => Test::Created(Bound::parse_age(value)?, now),
            _ => return Err(usage::of("find")),
        })
    }

    fn parse_type(value: &str) -> Result<Test, CommandError> {
        match value {
            "ephemeral" => Ok(Test::Ephemeral(true)),
            "persistent" => Ok(Test::Ephemeral(false)),
            "sequential" => Ok(Test::Sequential),
            "container" | "ttl" => Err(CommandError::failed(format!(
                "-type {value}: servers do not tell clients which persistent znodes are containers or have a time to live"
            ))),
            _ => Err(CommandError::failed(format!(
                "-type {value}: wanted ephemeral, persistent or sequential"
            ))),
        }
    }

    fn holds(&self, path: &str, stat: &Stat) -> bool {
        let name = path.rsplit('/').next().unwrap_or_default();
        match self {
            Test::Name(pattern) => matches(pattern, name),
            Test::Ephemeral(wanted) => (stat.ephemeral_owner != 0) == *wanted,
            Test::Sequential => sequence(name).is_some(),
            Test::Owner(session) => stat.ephemeral_owner == *session,
            Test::Size(bound) => bound.holds(stat.data_length.into()),
            Test::Children(bound) => bound.holds(stat.num_children.into()),
            Test::Changed(bound, now) => bound.holds(now - stat.mtime),
            Test::Created(bound, now) => bound.holds(now - stat.ctime),
        }
    }
}

/// A session's id in hexadecimal, with 0x or without.
fn session_id(text: &str) -> Result<i64, CommandError> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let id = u64::from_str_radix(digits, 16);
    id.map(u64::cast_signed)
        .map_err(|_| CommandError::failed(format!("\"{text}\" is no session: wanted 0x…")))
}

/// Patterns of the shell: `*`, `?`, `[a-z]`, `[!a-z]`, and a backslash in front of what stands for itself.
fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut of) = (0, 0);
    // Where to go on after the last star, with one sign more for it.
    let mut star: Option<(usize, usize)> = None;
    while of < name.len() {
        if pattern.get(at) == Some(&'*') {
            star = Some((at + 1, of));
            at += 1;
            continue;
        }
        match one(&pattern[at..], name[of]) {
            Some(length) => {
                at += length;
                of += 1;
            }
            None => {
                let Some((behind, taken)) = star else {
                    return false;
                };
                star = Some((behind, taken + 1));
                at = behind;
                of = taken + 1;
            }
        }
    }
    pattern[at..].iter().all(|sign| *sign == '*')
}

/// Length of the piece of a pattern that stands for this one sign.
fn one(pattern: &[char], sign: char) -> Option<usize> {
    match pattern {
        ['?', ..] => Some(1),
        ['\\', literal, ..] => (*literal == sign).then_some(2),
        ['[', rest @ ..] => {
            let negated = rest.first() == Some(&'!');
            let body = &rest[usize::from(negated)..];
            let end = body.iter().skip(1).position(|sign| *sign == ']')? + 1;
            let hit = in_class(&body[..end], sign);
            (hit != negated).then_some(1 + usize::from(negated) + end + 1)
        }
        [literal, ..] => (*literal == sign).then_some(1),
        [] => None,
    }
}

fn in_class(class: &[char], sign: char) -> bool {
    let mut rest = class;
    loop {
        match rest {
            [from, '-', to, behind @ ..] => {
                if (*from..=*to).contains(&sign) {
                    return true;
                }
                rest = behind;
            }
            [one, behind @ ..] => {
                if *one == sign {
                    return true;
                }
                rest = behind;
            }
            [] => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_in_a_shell() {
        for (pattern, name) in [
            ("*", ""),
            ("a*c", "abbc"),
            ("*lock*", "_c_x-lock-1"),
            ("a?c", "abc"),
            ("[a-c]x", "bx"),
            ("[!a-c]x", "dx"),
            ("[]]", "]"),
            ("a\\*", "a*"),
            ("*a*b*", "xxaxxbxx"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("", "a"),
            ("a", ""),
            ("a*c", "abd"),
            ("a?", "a"),
            ("[a-c]", "d"),
            ("[a", "a"),
            ("a\\*", "ab"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn tests_look_at_metadata() {
        let now = 100 * DAY_MS;
        let stat = Stat {
            mtime: now - 3_600_000,
            ctime: now - 2 * DAY_MS,
            data_length: 2000,
            num_children: 3,
            ephemeral_owner: 0x1_0000_00ab,
            ..Stat::default()
        };
        let holds = |option: &str, value: &str| {
            let test = Test::parse(option, value, now);
            test.expect("a test").holds("/a/n_0000000001", &stat)
        };
        for (option, value) in [
            ("name", "n_*"),
            ("type", "ephemeral"),
            ("type", "sequential"),
            ("owner", "0x1000000ab"),
            ("size", "+1k"),
            ("size", "2000"),
            ("children", "-4"),
            ("mtime", "-2h"),
            ("mtime", "+59m"),
            ("ctime", "+1"),
        ] {
            assert!(holds(option, value), "{option} {value}");
        }
        for (option, value) in [
            ("type", "persistent"),
            ("owner", "ab"),
            ("size", "-1k"),
            ("mtime", "-10m"),
            ("ctime", "-1d"),
        ] {
            assert!(!holds(option, value), "{option} {value}");
        }
        for (option, value) in [
            ("type", "container"),
            ("type", "x"),
            ("owner", "bob"),
            ("mtime", "1"),
            ("size", "x"),
            ("colour", "red"),
        ] {
            Test::parse(option, value, now).expect_err(option);
        }
    }
}
