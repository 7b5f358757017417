//! The report on a configuration, as text and as JSON.

use std::fmt::Write as _;
use std::path::Path;

use quenda_server::check_files;
use quenda_server::config::{Check, CheckedSetting, Level, Source};
use serde_json::{Value, json};

use super::summary::summary;

/// Everything there is to say.
pub struct Report {
    file: String,
    settings: Vec<CheckedSetting>,
    warnings: Vec<String>,
    notes: Vec<String>,
    errors: Vec<String>,
    effective: Vec<(String, String)>,
}

impl Report {
    /// Looks at the files that the configuration names, too.
    pub fn of(file: &Path, check: Check) -> Report {
        let level = |level| {
            let remarks = check.remarks.iter();
            let chosen = remarks.filter(move |remark| remark.level == level);
            chosen.map(|remark| remark.text.clone()).collect()
        };
        let (warnings, notes) = (level(Level::Warn), level(Level::Info));
        let (errors, effective) = match &check.outcome {
            Ok(config) => {
                let unusable = check_files(config);
                let unusable = unusable.iter().map(ToString::to_string);
                (unusable.collect(), summary(config))
            }
            Err(errors) => (errors.iter().map(ToString::to_string).collect(), Vec::new()),
        };
        Report {
            file: file.display().to_string(),
            settings: check.settings,
            warnings,
            notes,
            errors,
            effective,
        }
    }

    /// Whether the server would not start.
    pub fn is_refused(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Whether something is not as the configuration asks for.
    pub fn has_warnings(&self) -> bool {
        !self.warnings.is_empty()
    }

    fn verdict(&self) -> String {
        match (self.errors.len(), self.warnings.len()) {
            (0, 0) => "clean: the server starts with it, and everything counts".to_owned(),
            (0, 1) => "1 warning: the server starts with it".to_owned(),
            (0, count) => format!("{count} warnings: the server starts with it"),
            (1, _) => "refused: the server does not start with it".to_owned(),
            (count, _) => format!("refused for {count} reasons: the server does not start with it"),
        }
    }

    /// For people.
    pub fn text(&self, quiet: bool) -> String {
        let mut text = String::new();
        if !quiet {
            self.put_settings(&mut text);
            put_section(&mut text, "effective", self.effective_lines());
            put_section(&mut text, "notes", self.notes.iter().cloned());
        }
        put_section(&mut text, "warnings", self.warnings.iter().cloned());
        put_section(&mut text, "errors", self.errors.iter().cloned());
        let _ = writeln!(text, "{}: {}", self.file, self.verdict());
        text
    }

    fn effective_lines(&self) -> impl Iterator<Item = String> {
        let width = self.effective.iter().map(|(name, _)| name.len()).max();
        let width = width.unwrap_or_default();
        let lines = self.effective.iter();
        lines.map(move |(name, value)| format!("{name:width$}  {value}"))
    }

    fn put_settings(&self, text: &mut String) {
        let mut place = None;
        for setting in in_order(&self.settings) {
            let here = heading(&setting.given.place);
            if place.as_ref() != Some(&here) {
                let _ = writeln!(text, "{here}");
                place = Some(here);
            }
            let number = line(&setting.given.place).map_or(String::new(), |line| line.to_string());
            let given = &setting.given;
            let shown = format!("{}={}", given.name, given.shown_value());
            let _ = writeln!(
                text,
                "{number:>5}  {shown}\n       {}: {}{}",
                policy(setting),
                setting.meaning,
                default(setting)
            );
        }
        if place.is_some() {
            text.push('\n');
        }
    }

    /// For programs.
    pub fn json(&self) -> String {
        let settings: Vec<Value> = in_order(&self.settings).into_iter().map(setting).collect();
        let effective: serde_json::Map<String, Value> = self
            .effective
            .iter()
            .map(|(name, value)| (name.clone(), Value::from(value.as_str())))
            .collect();
        let verdict = match (self.is_refused(), self.has_warnings()) {
            (true, _) => "refused",
            (false, true) => "warnings",
            (false, false) => "clean",
        };
        let report = json!({
            "file": self.file,
            "verdict": verdict,
            "settings": settings,
            "effective": effective,
            "notes": self.notes,
            "warnings": self.warnings,
            "errors": self.errors,
        });
        format!("{report}\n")
    }
}

/// By place, and by line within a file: settings come in the order in which they count.
fn in_order(settings: &[CheckedSetting]) -> Vec<&CheckedSetting> {
    let mut settings: Vec<_> = settings.iter().collect();
    let rank = |place: &Source| match place {
        Source::File(_, line) => (0, *line),
        Source::Dynamic(_, line) => (1, *line),
        Source::Environment(_) => (2, 0),
        Source::Option => (3, 0),
        Source::Flag => (4, 0),
    };
    settings.sort_by_key(|setting| rank(&setting.given.place));
    settings
}

fn heading(place: &Source) -> String {
    match place {
        Source::File(path, _) => path.display().to_string(),
        Source::Dynamic(path, _) => format!("{} (dynamic configuration)", path.display()),
        Source::Environment(variable) => format!("environment {variable}"),
        Source::Option | Source::Flag => "command line".to_owned(),
    }
}

fn line(place: &Source) -> Option<usize> {
    match place {
        Source::File(_, line) | Source::Dynamic(_, line) => Some(*line),
        Source::Environment(_) | Source::Option | Source::Flag => None,
    }
}

fn policy(setting: &CheckedSetting) -> String {
    setting
        .policy
        .map_or("unknown".to_owned(), |policy| policy.to_string())
}

fn default(setting: &CheckedSetting) -> String {
    match setting.default {
        "" => String::new(),
        default => format!(" [default {default}]"),
    }
}

fn setting(setting: &CheckedSetting) -> Value {
    let given = &setting.given;
    json!({
        "place": heading(&given.place),
        "line": line(&given.place),
        "key": given.name,
        "value": given.shown_value(),
        "default": Some(setting.default).filter(|default| !default.is_empty()),
        "policy": policy(setting),
        "counts": given.overruled_by.is_none(),
        "meaning": setting.meaning,
    })
}

fn put_section(text: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    let mut is_first = true;
    for line in lines {
        if std::mem::take(&mut is_first) {
            let _ = writeln!(text, "{title}");
        }
        let _ = writeln!(text, "  {line}");
    }
    if !is_first {
        text.push('\n');
    }
}
