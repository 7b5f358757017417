//! What was given where: every line and option, so that each can be told what becomes of it.

use std::fmt;
use std::path::PathBuf;

use super::keys::{self, Key};

/// One line of a file, or one option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Where it stands.
    pub place: Source,
    /// The name as it is spelled there.
    pub name: String,
    /// The value, without blanks around it.
    pub value: String,
    /// Whether another one counts instead: which.
    pub overruled_by: Option<usize>,
}

/// Where a setting stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// In a line of the configuration file.
    File(PathBuf, usize),
    /// In a line of the dynamic configuration file.
    Dynamic(PathBuf, usize),
    /// In an option `-D` of a variable of the environment.
    Environment(&'static str),
    /// In an option `-D` of the command line.
    Option,
    /// In a flag of the command line.
    Flag,
}

impl Given {
    /// The key that it sets; `None` if there is no such key.
    pub fn key(&self) -> Option<&'static Key> {
        match self.place {
            Source::File(..) | Source::Dynamic(..) | Source::Flag => keys::find(&self.name),
            Source::Environment(_) => keys::find_property(&self.name).map(|(key, _)| key),
            Source::Option => {
                keys::find(self.name.strip_prefix("zookeeper.").unwrap_or(&self.name))
            }
        }
    }

    /// The value, unless it is a secret.
    pub fn shown_value(&self) -> &str {
        let name = self.name.strip_prefix("zookeeper.").unwrap_or(&self.name);
        let secret = is_secret(name) || likely_meant(name).is_some_and(is_secret);
        match secret && !self.value.is_empty() {
            true => "***",
            false => &self.value,
        }
    }
}

/// Whether the value of a key is nobody's business: passwords, and digests of passwords.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let names_a_file = name.ends_with("path") || name.ends_with("file");
    let secret = ["password", "passwd", "secret", "superdigest"];
    !names_a_file && secret.iter().any(|word| name.contains(word))
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(path, line) | Source::Dynamic(path, line) => {
                write!(formatter, "{}:{line}", path.display())
            }
            Source::Environment(variable) => write!(formatter, "-D in {variable}"),
            Source::Option => formatter.write_str("-D on the command line"),
            Source::Flag => formatter.write_str("a flag"),
        }
    }
}

/// The known name that an unknown one is likely meant to be.
pub(super) fn likely_meant(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let bound = match name.chars().count() {
        0..=3 => return None,
        4..=6 => 1,
        _ => 2,
    };
    keys::names()
        .filter(|known| !known.ends_with('*') && known.len().abs_diff(lower.len()) <= bound)
        .map(|known| (distance(&lower, &known.to_ascii_lowercase()), known))
        .filter(|(distance, _)| *distance <= bound)
        .min()
        .map(|(_, known)| known)
}

/// Insertions, deletions, exchanges of one sign, and swaps of two neighbours that lead from one text to the other.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for i in 1..=from.len() {
        let mut next = vec![i];
        for j in 1..=to.len() {
            let exchange = row[j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut least = exchange.min(row[j] + 1).min(next[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_finger_are_recognised() {
        for (name, meant) in [
            ("TickTime", Some("tickTime")),
            ("tickTmie", Some("tickTime")),
            ("maxClientCnxn", Some("maxClientCnxns")),
            ("maxClientConxns", Some("maxClientCnxns")),
            ("datadir", Some("dataDir")),
            ("4lw.command.whitelist", Some("4lw.commands.whitelist")),
            ("foo", None),
            ("myOwnNote", None),
            ("tickTimeInSeconds", None),
        ] {
            assert_eq!(likely_meant(name), meant, "{name}");
        }
    }

    #[test]
    fn what_is_secret_by_its_name() {
        for name in [
            "ssl.keyStore.password",
            "SASLAuthenticationProvider.superPassword",
            "DigestAuthenticationProvider.superDigest",
            "my.Secret",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["ssl.keyStore.passwordPath", "quenda.saslUsers", "tickTime"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
