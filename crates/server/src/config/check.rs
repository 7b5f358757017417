//! Looking at a configuration without starting anything: what each line does, what is wrong, and what comes of it.

use std::path::Path;

use super::given::Given;
use super::keys::{Key, Policy};
use super::remark::{ConfigError, Level, Remark};
use super::settings::Settings;
use super::{Environment, Overrides, ServerConfig, load_into};

/// What a configuration says.
#[derive(Debug)]
pub struct Check {
    /// Everything that was given, in the order in which it was read.
    pub settings: Vec<CheckedSetting>,
    /// What there is to remark.
    pub remarks: Vec<Remark>,
    /// The configuration, or why the server would not start with it; of keys that are refused all are named.
    pub outcome: Result<Box<ServerConfig>, Vec<ConfigError>>,
}

/// A line or an option, and what becomes of it.
#[derive(Debug)]
pub struct CheckedSetting {
    /// The setting.
    pub given: Given,
    /// What becomes of it; `None` for an unknown key.
    pub policy: Option<Policy>,
    /// Its default, empty for none.
    pub default: &'static str,
    /// Its meaning, or why it has none.
    pub meaning: String,
}

impl ServerConfig {
    /// Reads a configuration as [`load`](Self::load) does, and tells everything about it.
    pub fn check(file: Option<&Path>, environment: &Environment, overrides: &Overrides) -> Check {
        let mut settings = Settings::default();
        let mut remarks = Vec::new();
        let outcome = load_into(&mut settings, file, environment, overrides, &mut remarks);
        let given = settings.into_given();
        let places: Vec<String> = given.iter().map(|given| given.place.to_string()).collect();
        let settings = given
            .into_iter()
            .map(|given| checked(given, &places))
            .collect();
        Check {
            settings,
            remarks,
            outcome: outcome.map(Box::new),
        }
    }
}

impl Check {
    /// Whether something that the configuration asks for is missing or was changed.
    pub fn has_warnings(&self) -> bool {
        self.remarks
            .iter()
            .any(|remark| remark.level == Level::Warn)
    }
}

fn checked(given: Given, places: &[String]) -> CheckedSetting {
    let key = given.key();
    let meaning = match (given.overruled_by, key) {
        (Some(other), _) => {
            let other = places.get(other).map_or("a flag", String::as_str);
            format!("has no effect: {other} counts instead")
        }
        (None, Some(key)) if asks_for_nothing(key, &given) => {
            "the default; nothing else is asked for".to_owned()
        }
        (None, Some(key)) => key.meaning.to_owned(),
        (None, None) => "no key that ZooKeeper knows; it has no effect".to_owned(),
    };
    let policy = match key {
        Some(key) if asks_for_nothing(key, &given) => Some(Policy::Honoured),
        key => key.map(|key| key.policy),
    };
    CheckedSetting {
        policy,
        default: key.map_or("", |key| key.default),
        meaning,
        given,
    }
}

/// What has no effect, or would be refused, does no harm as long as it says what is so anyway.
fn asks_for_nothing(key: &Key, given: &Given) -> bool {
    let has_effect = matches!(key.policy, Policy::Honoured | Policy::Mapped);
    !has_effect && key.is_default(&given.value)
}
