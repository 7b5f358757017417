//! Every key of `zoo.cfg` that ZooKeeper reads, and what becomes of it here.
//!
//! `docs/configuration.md` shows this table; a test keeps the two equal.

use std::fmt;

use super::table::SECTIONS;

/// What the server does with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Has ZooKeeper's meaning.
    Honoured,
    /// Chooses the nearest thing that exists here.
    Mapped,
    /// Has no effect, and nothing that a client or operator relies on is missing. Named in the log.
    Accepted,
    /// Has no effect, and something that it asks for is missing. A warning in the log.
    Warned,
    /// Stops the start: to go on without it would break data or safety in silence.
    Refused,
}

/// Where ZooKeeper reads a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the file alone.
    File,
    /// In the file, or as `-Dzookeeper.KEY`, where the file wins.
    Property,
    /// As `-DKEY` alone; here also in the file, where `-D` wins, because it is what ZooKeeper obeyed.
    Bare,
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The name as ZooKeeper reads it; with `*` at the end, the beginning of a family of names.
    pub name: &'static str,
    /// Other spellings, from ZooKeeper's manual, that ZooKeeper itself does not read.
    pub aliases: &'static [&'static str],
    /// The value that an absent key has, or what it follows from; empty for none. Setting a key to this value is
    /// never worth a line in the log.
    pub default: &'static str,
    /// Where it may be given.
    pub place: Place,
    /// What becomes of it.
    pub policy: Policy,
    /// Its meaning, or why it has none.
    pub meaning: &'static str,
}

/// Keys of one subject.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// The subject.
    pub title: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

impl fmt::Display for Policy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Policy::Honoured => "honoured",
            Policy::Mapped => "mapped",
            Policy::Accepted => "accepted",
            Policy::Warned => "warned",
            Policy::Refused => "refused",
        })
    }
}

impl Key {
    pub(super) const fn new(
        policy: Policy,
        place: Place,
        name: &'static str,
        default: &'static str,
        meaning: &'static str,
    ) -> Self {
        Self {
            name,
            aliases: &[],
            default,
            place,
            policy,
            meaning,
        }
    }

    pub(super) const fn or(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Whether `name` is this key, in any spelling.
    fn matches(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// Whether `name` belongs to this family of names.
    fn covers(&self, name: &str) -> bool {
        self.name
            .strip_suffix('*')
            .is_some_and(|beginning| name.starts_with(beginning))
    }

    /// Whether `value` asks for nothing else than an absent key does.
    pub fn is_default(&self, value: &str) -> bool {
        self.default.eq_ignore_ascii_case(value) || self.is_off(value)
    }

    /// Whether this is a switch that would be refused, with a word that ZooKeeper takes for off: any but `true`.
    fn is_off(&self, value: &str) -> bool {
        let is_switch = self.place == Place::Property && self.default == "false";
        let would_be_refused = self.policy == Policy::Refused;
        would_be_refused && is_switch && !value.eq_ignore_ascii_case("true")
    }
}

/// The key that a name in the file stands for.
pub fn find(name: &str) -> Option<&'static Key> {
    let all = || SECTIONS.iter().flat_map(|section| section.keys);
    all()
        .find(|key| key.matches(name))
        .or_else(|| all().find(|key| key.covers(name)))
}

/// All names, those of families with their `*`.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let keys = SECTIONS.iter().flat_map(|section| section.keys);
    keys.flat_map(|key| std::iter::once(&key.name).chain(key.aliases))
        .copied()
}

/// The key that the name of a system property (`-Dname=value`) stands for, and its name in the file.
pub fn find_property(name: &str) -> Option<(&'static Key, &str)> {
    let inner = name.strip_prefix("zookeeper.");
    let prefixed = inner
        .and_then(|inner| Some((find(inner)?, inner)))
        .filter(|(key, _)| key.place == Place::Property);
    prefixed.or_else(|| {
        find(name)
            .filter(|key| key.place == Place::Bare)
            .map(|key| (key, name))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write as _;

    use super::*;

    const BEGIN: &str = "<!-- table of keys: begin -->\n";
    const END: &str = "<!-- table of keys: end -->\n";

    fn rendered() -> String {
        let mut text = String::new();
        for section in SECTIONS {
            write!(text, "\n### {}\n\n| Key | Default | Here | Meaning, or why it has none |\n|---|---|---|---|\n", section.title)
                .expect("a String takes all");
            for key in section.keys {
                let dash = match key.place {
                    Place::Bare => format!(" (also `-D{}`)", key.name),
                    Place::File | Place::Property => String::new(),
                };
                let aliases: String = key
                    .aliases
                    .iter()
                    .map(|alias| format!(", `{alias}`"))
                    .collect();
                let default = if key.default.is_empty() {
                    String::new()
                } else {
                    format!("`{}`", key.default)
                };
                writeln!(
                    text,
                    "| `{}`{aliases}{dash} | {default} | {} | {} |",
                    key.name, key.policy, key.meaning
                )
                .expect("a String takes all");
            }
        }
        text.push('\n');
        text
    }

    /// `QUENDA_WRITE_DOCS=1 cargo test -p quenda-server configuration_page` writes the page anew.
    #[test]
    fn the_configuration_page_shows_this_table() {
        let page = include_str!("../../../../docs/configuration.md");
        let (head, rest) = page
            .split_once(BEGIN)
            .expect("the page marks where the table begins");
        let (shown, tail) = rest
            .split_once(END)
            .expect("the page marks where the table ends");
        if std::env::var_os("QUENDA_WRITE_DOCS").is_some() {
            let path = "../../docs/configuration.md";
            std::fs::write(path, format!("{head}{BEGIN}{}{END}{tail}", rendered()))
                .expect("the page can be written");
        } else {
            assert_eq!(
                shown,
                rendered(),
                "docs/configuration.md is behind keys.rs; see this test on how to write it"
            );
        }
    }

    #[test]
    fn no_name_stands_twice_in_the_table() {
        let mut names = BTreeSet::new();
        for key in SECTIONS.iter().flat_map(|section| section.keys) {
            for name in std::iter::once(&key.name).chain(key.aliases) {
                assert!(names.insert(*name), "{name} stands twice");
            }
        }
        assert!(names.len() > 150, "only {} names", names.len());
    }

    #[test]
    fn a_name_is_found_before_its_family() {
        assert_eq!(
            find("nio.sessionlessCnxnTimeout").map(|key| key.policy),
            Some(Policy::Honoured)
        );
        assert_eq!(
            find("nio.numWorkerThreads").map(|key| key.name),
            Some("nio.*")
        );
        assert_eq!(find("server.12").map(|key| key.name), Some("server.*"));
        assert_eq!(
            find("requestThrottleLimit").map(|key| key.name),
            Some("request_throttle_max_requests")
        );
        assert!(find("TickTime").is_none(), "case counts");
    }

    #[test]
    fn system_properties_are_found_under_the_names_that_java_reads() {
        let found = |name| find_property(name).map(|(key, inner)| (key.name, inner));
        assert_eq!(found("zookeeper.skipACL"), Some(("skipACL", "skipACL")));
        assert_eq!(
            found("jute.maxbuffer"),
            Some(("jute.maxbuffer", "jute.maxbuffer"))
        );
        assert_eq!(
            found("zookeeper.authProvider.sasl"),
            Some(("authProvider.*", "authProvider.sasl"))
        );
        for unread in [
            "skipACL",
            "zookeeper.jute.maxbuffer",
            "zookeeper.clientPort",
            "zookeeper.log.dir",
            "file.encoding",
        ] {
            assert_eq!(found(unread), None, "{unread}");
        }
    }
}
