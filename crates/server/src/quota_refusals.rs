//! How often writes went over hard quotas.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::limits::QUOTA_NAMESPACES_MAX;

/// By namespace, which is the first part of a path, since the start or the last reset.
///
/// Only namespaces that can stand in the name of a metric are counted, and no more than there is a bound for.
#[derive(Debug, Default)]
pub struct QuotaRefusals(Mutex<BTreeMap<Box<str>, u64>>);

impl QuotaRefusals {
    /// A write to this path was refused.
    pub fn note(&self, path: &str) {
        let Some(namespace) = path.split('/').nth(1).filter(|name| is_metric_name(name)) else {
            return;
        };
        let mut counts = self.0.lock();
        if let Some(count) = counts.get_mut(namespace) {
            *count += 1;
        } else if counts.len() < QUOTA_NAMESPACES_MAX {
            counts.insert(namespace.into(), 1);
        }
    }

    /// Namespaces and counts.
    pub fn counts(&self) -> Vec<(Box<str>, u64)> {
        let counts = self.0.lock();
        let pairs = counts.iter();
        pairs
            .map(|(namespace, count)| (namespace.clone(), *count))
            .collect()
    }

    /// Forgets all.
    pub fn reset(&self) {
        self.0.lock().clear();
    }
}

/// What Telegraf takes: another name makes it drop the whole answer.
fn is_metric_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().next().is_some_and(is_letter)
        && name
            .bytes()
            .all(|byte| is_letter(byte) || b"-.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_that_are_names_are_counted() {
        let refusals = QuotaRefusals::default();
        for path in [
            "/a/b",
            "/a",
            "/a-b.c_1",
            "/",
            "",
            "/with blank/x",
            "/tab\tzk_ruok",
            "/-a",
            "/ä",
        ] {
            refusals.note(path);
        }
        assert_eq!(refusals.counts(), [("a".into(), 2), ("a-b.c_1".into(), 1)]);
        refusals.reset();
        assert_eq!(refusals.counts(), []);
    }

    #[test]
    fn clients_cannot_make_it_grow_for_ever() {
        let refusals = QuotaRefusals::default();
        for number in 0..=QUOTA_NAMESPACES_MAX {
            refusals.note(&format!("/{number:06}"));
        }
        refusals.note("/000000");
        let counts = refusals.counts();
        assert_eq!(counts.len(), QUOTA_NAMESPACES_MAX);
        assert_eq!(counts[0], ("000000".into(), 2));
    }
}
