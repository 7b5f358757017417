//! Keys and values from all places, before they get types.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::keys::{self, Key, Place, Policy};
use super::properties;
use super::remark::{ConfigError, Remark};

/// Where options of the Java server may stand in the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Value of `SERVER_JVMFLAGS`.
    pub server_jvmflags: Option<String>,
    /// Value of `JVMFLAGS`, which wins.
    pub jvmflags: Option<String>,
}

impl Environment {
    /// Reads the environment of this process.
    pub fn of_this_process() -> Self {
        Self {
            server_jvmflags: std::env::var("SERVER_JVMFLAGS").ok(),
            jvmflags: std::env::var("JVMFLAGS").ok(),
        }
    }

    /// The `-Dname=value` options; `-X…`, agents and all else concern Java alone.
    pub(super) fn properties(&self) -> Vec<(String, String)> {
        let flags = [&self.server_jvmflags, &self.jvmflags];
        let words = flags
            .into_iter()
            .flatten()
            .flat_map(|flags| flags.split_whitespace());
        words
            .filter_map(|word| word.strip_prefix("-D"))
            .map(|definition| definition.split_once('=').unwrap_or((definition, "")))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }
}

/// Values by key, the key in the spelling of the table. Values are trimmed.
#[derive(Debug, Default)]
pub(super) struct Settings {
    values: BTreeMap<String, String>,
}

impl Settings {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// The value, or the table's default if the key is absent. `name` must be in the table.
    pub(super) fn get_or_default(&self, name: &str) -> &str {
        self.get(name)
            .unwrap_or_else(|| keys::find(name).map_or("", |key| key.default))
    }

    pub(super) fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.values.insert(name.into(), value.into());
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
        members.map(|(rest, value)| (rest, value.as_str()))
    }

    /// Takes away the keys that begin with `beginning`.
    pub(super) fn remove_family(&mut self, beginning: &str) {
        self.values.retain(|name, _| !name.starts_with(beginning));
    }

    /// Adds the pairs of a file.
    pub(super) fn add_file(
        &mut self,
        path: &Path,
        remarks: &mut Vec<Remark>,
    ) -> Result<(), ConfigError> {
        let pairs = read(path)?;
        remark_repeated_members(&pairs, remarks);
        // A working spelling wins over the manual's, whichever stands last.
        let (proper, others): (Vec<_>, Vec<_>) = pairs
            .into_iter()
            .partition(|(name, _)| spelling(name) == name);
        for (name, value) in others.into_iter().chain(proper) {
            if keys::find(&name).is_none() {
                remarks.push(unknown(&name));
            }
            self.set(spelling(&name), value.trim());
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
        for (name, value) in pairs {
            if name == "version" {
                return Err(ConfigError::invalid(
                    "dynamic file shouldn't have version inside",
                ));
            }
            if !is_member(&name) {
                return Err(ConfigError::invalid(format!(
                    "Unrecognised parameter: {name}"
                )));
            }
            self.set(name, value.trim());
        }
        Ok(())
    }

    /// Adds system properties that ZooKeeper would read, unless the file has them and wins.
    pub(super) fn add_properties(&mut self, properties: &[(String, String)]) {
        let mut added = BTreeMap::new();
        for (name, value) in properties {
            if let Some((key, inner)) = keys::find_property(name) {
                let name = spelling(inner);
                if key.place == Place::Bare || !self.values.contains_key(name) {
                    added.insert(name.to_owned(), value.trim().to_owned());
                }
            }
        }
        self.values.append(&mut added);
    }

    /// Adds `-Dname=value` options of our own command line, over the file. `name` is a key or the name that Java reads.
    pub(super) fn add_options(&mut self, options: &[(String, String)], remarks: &mut Vec<Remark>) {
        for (name, value) in options {
            let inner = name.strip_prefix("zookeeper.").unwrap_or(name);
            if keys::find(inner).is_none() {
                remarks.push(unknown(name));
            }
            if inner.ends_with("assword") {
                remarks.push(Remark::warn(format!(
                    "{name}: every user of this machine can read what stands on a command line; put it in the file"
                )));
            }
            self.set(spelling(inner), value.trim());
        }
    }

    /// Names every setting that has no effect.
    ///
    /// # Errors
    /// A setting that must not be passed over in silence nor with a warning.
    pub(super) fn judge(&self, remarks: &mut Vec<Remark>) -> Result<(), ConfigError> {
        for (name, value) in &self.values {
            let Some(key) = keys::find(name) else {
                continue;
            };
            if key.is_default(value) {
                continue;
            }
            match key.policy {
                Policy::Honoured | Policy::Mapped => {}
                Policy::Accepted => remarks.push(Remark::info(without_effect(key, name))),
                Policy::Warned => remarks.push(Remark::warn(without_effect(key, name))),
                Policy::Refused => return Err(refusal(key, name, value)),
            }
        }
        Ok(())
    }
}

/// A line for the same member replaces the one before, as in any file of this format: that may be a slip in the number,
/// and cost a member.
fn remark_repeated_members(pairs: &[(String, String)], remarks: &mut Vec<Remark>) {
    let mut lines: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, value) in pairs.iter().filter(|(name, _)| name.starts_with("server.")) {
        let value = value.trim();
        if let Some(before) = lines.insert(name, value).filter(|before| *before != value) {
            remarks.push(Remark::warn(format!(
                "two lines for one member: {name}={before} has no effect, the later {name}={value} counts"
            )));
        }
    }
}

fn unknown(name: &str) -> Remark {
    Remark::info(format!(
        "{name} is no key that ZooKeeper knows; it has no effect"
    ))
}

fn without_effect(key: &Key, name: &str) -> String {
    format!("{name} has no effect: {}", key.meaning)
}

fn refusal(key: &Key, name: &str, value: &str) -> ConfigError {
    if name == "electionAlg" {
        return ConfigError::invalid("Invalid electionAlg value. Only 3 is supported.");
    }
    ConfigError::invalid(format!("{name}={value} is not supported: {}", key.meaning))
}

/// The table's spelling of a name; a name in a family or in no table is its own.
fn spelling(name: &str) -> &str {
    match keys::find(name) {
        Some(key) if !key.name.ends_with('*') => key.name,
        Some(_) | None => name,
    }
}

fn read(path: &Path) -> Result<Vec<(String, String)>, ConfigError> {
    let bytes = fs::read(path).map_err(|source| ConfigError::unreadable(path, source))?;
    properties::parse(&bytes).map_err(|source| ConfigError::Malformed {
        path: path.to_owned(),
        source,
    })
}
