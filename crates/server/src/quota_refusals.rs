//! How often writes went over hard quotas.

use crate::limits::QUOTA_NAMESPACES_MAX;
use crate::metrics::{Counter, Figures, Page, Set};

/// By namespace, which is the first part of a path.
///
/// Only namespaces that can stand in the name of a metric are counted, and no more than there is a bound for.
#[derive(Debug)]
pub struct QuotaRefusals(Set<Counter>);

impl Default for QuotaRefusals {
    fn default() -> Self {
        QuotaRefusals(Set::bounded(QUOTA_NAMESPACES_MAX))
    }
}

impl QuotaRefusals {
    /// A write to this path was refused.
    pub fn note(&self, path: &str) {
        if let Some(counter) = namespace(path).and_then(|namespace| self.0.get(namespace)) {
            counter.add(1);
        }
    }
}

impl Figures for QuotaRefusals {
    fn tell(&self, page: &mut dyn Page) {
        for (namespace, counter) in self.0.all() {
            page.counter_of("quota_exceeded_error_per_namespace", &namespace, &*counter);
        }
    }
}

/// The first component of a path, if it can stand in the name of a metric.
pub(crate) fn namespace(path: &str) -> Option<&str> {
    path.split('/').nth(1).filter(|name| is_metric_name(name))
}

/// What Telegraf takes: another name makes it drop the whole answer.
pub(crate) fn is_metric_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().next().is_some_and(is_letter)
        && name
            .bytes()
            .all(|byte| is_letter(byte) || b"-.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Counts as _;

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
        assert_eq!(counts(&refusals), [("a".into(), 2), ("a-b.c_1".into(), 1)]);
    }

    fn counts(refusals: &QuotaRefusals) -> Vec<(Box<str>, u64)> {
        let all = refusals.0.all().into_iter();
        all.map(|(namespace, counter)| (namespace, counter.total()))
            .collect()
    }

    #[test]
    fn clients_cannot_make_it_grow_for_ever() {
        let refusals = QuotaRefusals::default();
        for number in 0..=QUOTA_NAMESPACES_MAX {
            refusals.note(&format!("/{number:06}"));
        }
        refusals.note("/000000");
        let counts = counts(&refusals);
        assert_eq!(counts.len(), QUOTA_NAMESPACES_MAX);
        assert_eq!(counts[0], ("000000".into(), 2));
    }
}
