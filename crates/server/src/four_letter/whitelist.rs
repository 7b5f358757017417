//! Which words may be answered.

use super::word::Word;

/// Names answered when the configuration says nothing: what probes, collectors and client libraries read. Left out
/// are the words that change something (`crst`, `srst`, `stmk`) or whose answer grows with every watch of every client
/// (`wchc`, `wchp`). Compat: ZooKeeper allows `srvr` alone; a probe that works there works here.
const DEFAULT: [&str; 10] = [
    "ruok", "srvr", "stat", "mntr", "conf", "cons", "envi", "isro", "wchs", "dump",
];

/// The value of `4lw.commands.whitelist`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whitelist {
    all: bool,
    names: Vec<String>,
}

impl Whitelist {
    /// Reads the setting: names with commas between, blanks trimmed, `*` for all. `srvr` is always allowed, `isro` too
    /// if read-only mode is on, because a client that looks for a writable server asks it. `None` (the key is absent)
    /// allows the words that only read and stay small.
    pub fn from_setting(setting: Option<&str>, read_only_mode: bool) -> Self {
        let Some(setting) = setting else {
            return Self {
                all: false,
                names: DEFAULT.map(str::to_owned).to_vec(),
            };
        };
        let mut names: Vec<String> = setting
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        names.push("srvr".to_owned());
        if read_only_mode {
            names.push("isro".to_owned());
        }
        Self {
            all: names.iter().any(|name| name == "*"),
            names,
        }
    }

    /// Whether `word` may be answered. A telnet interrupt only closes and needs no permission; without `qsta` nobody
    /// could tell how an ensemble is, and it says nothing of clients or data.
    pub fn allows(&self, word: Word) -> bool {
        self.all
            || matches!(word, Word::TelnetClose | Word::Qsta)
            || self.names.iter().any(|name| name == word.name())
    }

    /// What a client reads instead of an answer.
    pub fn refusal(word: Word) -> String {
        format!(
            "{} is not executed because it is not in the whitelist.\n",
            word.name()
        )
    }
}

impl Default for Whitelist {
    fn default() -> Self {
        Self::from_setting(None, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_key_allows_what_only_reads() {
        let list = Whitelist::default();
        for word in [
            Word::Ruok,
            Word::Srvr,
            Word::Stat,
            Word::Mntr,
            Word::Conf,
            Word::Cons,
            Word::Envi,
            Word::Isro,
        ] {
            assert!(list.allows(word), "{word:?}");
        }
        for word in [
            Word::Crst,
            Word::Srst,
            Word::Stmk,
            Word::Gtmk,
            Word::Wchc,
            Word::Wchp,
            Word::Hash,
            Word::Dirs,
        ] {
            assert!(!list.allows(word), "{word:?}");
        }
    }

    #[test]
    fn a_set_key_is_obeyed_and_srvr_is_always_in() {
        let list = Whitelist::from_setting(Some(" ruok , mntr,"), false);
        assert!(list.allows(Word::Ruok) && list.allows(Word::Mntr) && list.allows(Word::Srvr));
        assert!(!list.allows(Word::Stat) && !list.allows(Word::Isro));
        assert!(Whitelist::from_setting(Some(""), true).allows(Word::Isro));
        assert!(!Whitelist::from_setting(Some(""), false).allows(Word::Ruok));
    }

    #[test]
    fn a_star_allows_everything() {
        for setting in ["*", "ruok, *"] {
            assert!(Whitelist::from_setting(Some(setting), false).allows(Word::Wchp));
        }
    }

    #[test]
    fn a_refusal_names_the_word() {
        assert_eq!(
            Whitelist::refusal(Word::Wchc),
            "wchc is not executed because it is not in the whitelist.\n"
        );
        let strict = Whitelist::from_setting(Some(""), false);
        assert!(strict.allows(Word::TelnetClose) && strict.allows(Word::Qsta));
    }
}
