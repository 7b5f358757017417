//! Keys and values from all places, before they get types.

use std::collections::BTreeMap;
use std::path::Path;

use super::file;
use super::given::{Given, Source, is_secret, likely_meant};
use super::keys::{self, Key, Place, Policy};
use super::properties::{self, Pair};
use super::remark::{ConfigError, Remark};
use crate::limits::CONFIG_SETTINGS_MAX;

/// What the environment of the process says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Value of `JAVA_OPTS`, which some images fill.
    pub java_opts: Option<String>,
    /// Value of `SERVER_JVMFLAGS`, which wins over it.
    pub server_jvmflags: Option<String>,
    /// Value of `JVMFLAGS`, which wins over both.
    pub jvmflags: Option<String>,
    /// Value of `ZOO_LOG_DIR`: where log files go.
    pub log_directory: Option<String>,
}

impl Environment {
    /// Reads the environment of this process.
    pub fn of_this_process() -> Self {
        let variable = |name| std::env::var(name).ok();
        Self {
            java_opts: variable("JAVA_OPTS"),
            server_jvmflags: variable("SERVER_JVMFLAGS"),
            jvmflags: variable("JVMFLAGS"),
            log_directory: variable("ZOO_LOG_DIR"),
        }
    }

    /// The `-Dname=value` options with the variables that they stand in; `-X…`, agents and all else concern Java alone.
    pub(super) fn properties(&self) -> Vec<Property> {
        let flags = [
            ("JAVA_OPTS", &self.java_opts),
            ("SERVER_JVMFLAGS", &self.server_jvmflags),
            ("JVMFLAGS", &self.jvmflags),
        ];
        let words = flags.into_iter().flat_map(|(variable, flags)| {
            let words = flags.iter().flat_map(|flags| flags.split_whitespace());
            words.map(move |word| (variable, word))
        });
        words
            .filter_map(|(variable, word)| Some((variable, word.strip_prefix("-D")?)))
            .map(|(variable, definition)| {
                let (name, value) = definition.split_once('=').unwrap_or((definition, ""));
                Property {
                    variable,
                    name: name.to_owned(),
                    value: value.to_owned(),
                }
            })
            .collect()
    }
}

/// An option `-Dname=value` of the environment.
pub(super) struct Property {
    variable: &'static str,
    name: String,
    value: String,
}

/// Values by key, the key in the spelling of the table. Values are trimmed.
#[derive(Debug, Default)]
pub(super) struct Settings {
    values: BTreeMap<String, Value>,
    /// Everything that was given, also what does not count.
    given: Vec<Given>,
}

#[derive(Debug)]
struct Value {
    text: String,
    /// Which of the given ones it is; `None` for what follows from no setting.
    given: Option<usize>,
}

impl Settings {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(|value| &*value.text)
    }

    /// The value, or the table's default if the key is absent. `name` must be in the table.
    pub(super) fn get_or_default(&self, name: &str) -> &str {
        self.get(name)
            .unwrap_or_else(|| keys::find(name).map_or("", |key| key.default))
    }

    /// The values of all keys that somebody gave.
    pub(super) fn all_given(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.values.iter();
        let pairs = pairs.filter(|(_, value)| value.given.is_some());
        pairs.map(|(name, value)| (name.as_str(), value.text.as_str()))
    }

    /// Sets what nobody gave.
    pub(super) fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        let value = Value {
            text: value.into(),
            given: None,
        };
        self.values.insert(name.into(), value);
    }

    /// Sets a key as it was given, over what stood there.
    pub(super) fn give(&mut self, place: Source, name: &str, key: &str, value: &str) {
        let index = self.note(place, name, value);
        let value = Value {
            text: self.given[index].value.clone(),
            given: Some(index),
        };
        if let Some(before) = self.values.insert(key.to_owned(), value)
            && let Some(before) = before.given
        {
            self.given[before].overruled_by = Some(index);
        }
    }

    /// Notes what was given; nothing is set.
    fn note(&mut self, place: Source, name: &str, value: &str) -> usize {
        self.given.push(Given {
            place,
            name: name.to_owned(),
            value: value.trim().to_owned(),
            overruled_by: None,
        });
        self.given.len() - 1
    }

    /// Everything that was given.
    pub(super) fn into_given(self) -> Vec<Given> {
        self.given
    }

    /// Keys that begin with `beginning`, with the rest of their names.
    pub(super) fn family<'a>(
        &'a self,
        beginning: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let members = self
            .values
            .iter()
            .filter_map(move |(name, value)| Some((name.strip_prefix(beginning)?, value)));
        members.map(|(rest, value)| (rest, &*value.text))
    }

    /// Takes away the keys that begin with `beginning`.
    pub(super) fn remove_family(&mut self, beginning: &str) {
        let next = self.given.len();
        let given = &mut self.given;
        self.values.retain(|name, value| {
            let goes = name.starts_with(beginning);
            if let (true, Some(index)) = (goes, value.given) {
                given[index].overruled_by = Some(next);
            }
            !goes
        });
    }

    /// Adds the pairs of a file.
    pub(super) fn add_file(
        &mut self,
        path: &Path,
        remarks: &mut Vec<Remark>,
    ) -> Result<(), ConfigError> {
        let pairs = read(path)?;
        remark_mark(path, &pairs, remarks);
        remark_repeated_members(&pairs, remarks);
        // A working spelling wins over the manual's, whichever stands last.
        let (proper, others): (Vec<_>, Vec<_>) = pairs
            .into_iter()
            .partition(|pair| spelling(&pair.key) == pair.key);
        for pair in others.into_iter().chain(proper) {
            if keys::find(&pair.key).is_none() {
                remarks.push(unknown(&pair.key));
            }
            let place = Source::File(path.to_owned(), pair.line);
            self.give(place, &pair.key, spelling(&pair.key), &pair.value);
        }
        Ok(())
    }

    /// Adds the members of a dynamic configuration file.
    pub(super) fn add_dynamic_file(
        &mut self,
        path: &Path,
        remarks: &mut Vec<Remark>,
    ) -> Result<(), ConfigError> {
        const MEMBERS: [&str; 3] = ["server.", "group", "weight"];
        let is_member = |name: &str| MEMBERS.iter().any(|beginning| name.starts_with(beginning));
        if let Some(name) = self.values.keys().find(|name| is_member(name)) {
            return Err(ConfigError::invalid(format!(
                "parameter: {name} must be in a separate dynamic config file"
            )));
        }
        let pairs = read(path)?;
        remark_repeated_members(&pairs, remarks);
        for Pair {
            line,
            key: name,
            value,
            ..
        } in pairs
        {
            if name == "version" {
                return Err(ConfigError::invalid(
                    "dynamic file shouldn't have version inside",
                ));
            }
            if name.starts_with(MARK) {
                return Err(ConfigError::invalid(format!(
                    "{} begins with a byte order mark, so its first key is not read: save it without the mark",
                    path.display()
                )));
            }
            if !is_member(&name) {
                return Err(ConfigError::invalid(format!(
                    "Unrecognised parameter: {name}"
                )));
            }
            let place = Source::Dynamic(path.to_owned(), line);
            self.give(place, &name, &name, &value);
        }
        Ok(())
    }

    /// Adds system properties that ZooKeeper would read, unless the file has them and wins.
    pub(super) fn add_properties(&mut self, properties: Vec<Property>) {
        let in_file: BTreeMap<String, usize> = self
            .values
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), value.given?)))
            .collect();
        for Property {
            variable,
            name,
            value,
        } in properties
        {
            let place = Source::Environment(variable);
            match keys::find_property(&name) {
                Some((key, inner)) => {
                    let setting = spelling(inner);
                    let by_file = in_file.get(setting).filter(|_| key.place != Place::Bare);
                    match by_file {
                        Some(&line) => {
                            let index = self.note(place, &name, &value);
                            self.given[index].overruled_by = Some(line);
                        }
                        None => self.give(place, &name, setting, &value),
                    }
                }
                // Java has many of its own.
                None if name == super::LOG_DIRECTORY => self.give(place, &name, &name, &value),
                None => {}
            }
        }
    }

    /// Adds `-Dname=value` options of our own command line, over the file. `name` is a key or the name that Java reads.
    pub(super) fn add_options(&mut self, options: &[(String, String)], remarks: &mut Vec<Remark>) {
        for (name, value) in options {
            let inner = name.strip_prefix("zookeeper.").unwrap_or(name);
            if keys::find(inner).is_none() && name != super::LOG_DIRECTORY {
                remarks.push(unknown(name));
            }
            if is_secret(inner) && inner.ends_with("assword") {
                remarks.push(Remark::warn(format!(
                    "{name}: every user of this machine can read what stands on a command line; put it in the file"
                )));
            }
            let key = match name == super::LOG_DIRECTORY {
                true => name,
                false => spelling(inner),
            };
            self.give(Source::Option, name, key, value);
        }
    }

    /// Names every setting that has no effect, and gives those that must be passed over neither in silence nor with a
    /// warning.
    pub(super) fn judge(&self, remarks: &mut Vec<Remark>) -> Vec<ConfigError> {
        let mut refusals = Vec::new();
        for (name, value) in &self.values {
            let value = &*value.text;
            let Some(key) = keys::find(name) else {
                continue;
            };
            if key.is_default(value) {
                continue;
            }
            match key.policy {
                Policy::Honoured | Policy::Mapped => remarks.extend(odd_switch(key, name, value)),
                Policy::Accepted => remarks.push(Remark::info(without_effect(key, name))),
                Policy::Warned => remarks.push(Remark::warn(without_effect(key, name))),
                Policy::Refused => refusals.push(refusal(key, name, value)),
            }
        }
        refusals
    }
}

/// A line for the same member replaces the one before, as in any file of this format: that may be a slip in the number,
/// and cost a member.
/// The mark that some editors put before UTF-8, as ISO-8859-1 has it.
const MARK: &str = "\u{ef}\u{bb}\u{bf}";

/// ZooKeeper takes the mark for a part of the first key as well.
fn remark_mark(path: &Path, pairs: &[Pair], remarks: &mut Vec<Remark>) {
    if let Some(first) = pairs.first()
        && let Some(key) = first.key.strip_prefix(MARK)
    {
        remarks.push(Remark::warn(format!(
            "{} begins with a byte order mark, so its first line ({key}) has no effect: save it without the mark",
            path.display()
        )));
    }
}

fn remark_repeated_members(pairs: &[Pair], remarks: &mut Vec<Remark>) {
    let mut lines: BTreeMap<&str, &str> = BTreeMap::new();
    let members = pairs.iter().filter(|pair| pair.key.starts_with("server."));
    for Pair {
        key: name, value, ..
    } in members
    {
        let value = value.trim();
        if let Some(before) = lines.insert(name, value).filter(|before| *before != value) {
            remarks.push(Remark::warn(format!(
                "two lines for one member: {name}={before} has no effect, the later {name}={value} counts"
            )));
        }
    }
}

fn unknown(name: &str) -> Remark {
    let is_own = name.starts_with("quenda.");
    let whose = if is_own {
        "of Quenda"
    } else {
        "that ZooKeeper knows"
    };
    let text = format!("{name} is no key {whose}; it has no effect");
    match likely_meant(name) {
        Some(meant) => Remark::warn(format!("{text}. Did you mean {meant}?")),
        // Whoever writes such a one counts on it.
        None if is_own => Remark::warn(text),
        None => Remark::info(text),
    }
}

/// A switch with another word than its two: one of them counts, as in ZooKeeper, and hardly the one that was meant.
fn odd_switch(key: &Key, name: &str, value: &str) -> Option<Remark> {
    let (on, off) = match key.default {
        "true" | "false" => ("true", "false"),
        "yes" | "no" => ("yes", "no"),
        _ => return None,
    };
    let is_known = match on {
        "yes" => [on, off].contains(&value),
        _ => [on, off]
            .iter()
            .any(|word| value.eq_ignore_ascii_case(word)),
    };
    if is_known {
        return None;
    }
    let counts = match key.name {
        "admin.enableServer" | "forceSync" | "leaderServes" => on,
        _ => off,
    };
    Some(Remark::warn(format!(
        "{name}={value} is neither {on} nor {off}: {counts} counts"
    )))
}

fn without_effect(key: &Key, name: &str) -> String {
    format!("{name} has no effect: {}", key.meaning)
}

fn refusal(key: &Key, name: &str, value: &str) -> ConfigError {
    ConfigError::invalid(format!("{name}={value} is not supported: {}", key.meaning))
}

/// The table's spelling of a name; a name in a family or in no table is its own.
fn spelling(name: &str) -> &str {
    match keys::find(name) {
        Some(key) if !key.name.ends_with('*') => key.name,
        Some(_) | None => name,
    }
}

fn read(path: &Path) -> Result<Vec<Pair>, ConfigError> {
    let bytes = file::read(path).map_err(|source| ConfigError::unreadable(path, source))?;
    let pairs = properties::parse(&bytes).map_err(|source| ConfigError::Malformed {
        path: path.to_owned(),
        source,
    })?;
    match pairs.len() > CONFIG_SETTINGS_MAX {
        false => Ok(pairs),
        true => Err(ConfigError::invalid(format!(
            "{} has more than {CONFIG_SETTINGS_MAX} settings: is it a configuration?",
            path.display()
        ))),
    }
}
