//! Four-letter words: the administrative commands that monitoring reads on a client port.
//!
//! The module recognises a word, checks the whitelist and writes the answer; the server reads the bytes, writes the
//! answer and closes the connection. Figures come through [`Source`]; nothing here knows sockets, the tree or a clock.
//! The form of each answer is ZooKeeper 3.9's, byte by byte, because collectors parse it by line and column.

#[cfg(test)]
mod ensemble_tests;
mod environment;
pub(crate) mod java;
mod mntr;
mod source;
#[cfg(test)]
mod tests;
mod text;
mod version;
mod whitelist;
mod word;

use std::sync::atomic::{AtomicI64, Ordering};

pub use environment::Environment;
pub(crate) use java::minute as civil_time;
pub use mntr::figures;
pub use source::{
    ConnectionView, DirectorySizes, Ensemble, Leading, Mode, Process, ProposalSizes, SessionExpiry,
    SessionView, Settings, Source, State, Traffic, WatchSummary,
};
pub use text::address as java_address;
pub use version::{COMPATIBLE_VERSION, version};
pub use whitelist::Whitelist;
pub use word::{Word, recognise};

/// The answer of the words that need a serving member, when it does not serve.
pub const NOT_SERVING: &str = "This ZooKeeper instance is not currently serving requests";

/// ZooKeeper's mask of what its trace log shows, at start. Nothing here is traced by it; tools may read and set it.
const DEFAULT_TRACE_MASK: i64 = 306;

/// Answers words: one for all listeners of a member.
#[derive(Debug)]
pub struct FourLetterWords {
    whitelist: Whitelist,
    version: String,
    environment: Environment,
    trace_mask: AtomicI64,
}

impl FourLetterWords {
    /// `version` is the text of [`version`](fn@version).
    pub fn new(whitelist: Whitelist, version: String, environment: Environment) -> Self {
        Self {
            whitelist,
            version,
            environment,
            trace_mask: AtomicI64::new(DEFAULT_TRACE_MASK),
        }
    }

    /// The version as the words show it.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// What `envi` shows, line by line.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        self.environment
            .pairs(&self.version, &environment::Memory::now())
    }

    /// What `mntr` shows, whether the word is allowed or not.
    pub fn mntr(&self, source: &dyn Source) -> String {
        mntr::answer(&self.version, source)
    }

    /// The trace mask in force.
    pub fn trace_mask(&self) -> i64 {
        self.trace_mask.load(Ordering::Relaxed)
    }

    /// Puts another one in force.
    pub fn set_trace_mask(&self, mask: i64) {
        self.trace_mask.store(mask, Ordering::Relaxed);
    }

    /// Bytes behind the name that the answer needs; none for a word that is not allowed.
    pub fn argument_len(&self, word: Word) -> usize {
        if self.whitelist.allows(word) {
            word.argument_len()
        } else {
            0
        }
    }

    /// The whole answer to `word`, behind which the connection is to be closed. `argument` are the
    /// [`Word::argument_len`] bytes behind the name.
    pub fn answer(&self, word: Word, argument: &[u8], source: &dyn Source) -> String {
        let is_local = word == Word::Qtop && source.asked_locally();
        if !is_local && !self.whitelist.allows(word) {
            return Whitelist::refusal(word);
        }
        match word {
            Word::TelnetClose => String::new(),
            Word::Ruok => "imok".to_owned(),
            Word::Qsta => source.status() + "\n",
            Word::Qtop => source.load() + "\n",
            Word::Envi => self
                .environment
                .text(&self.version, &environment::Memory::now()),
            Word::Gtmk => self.trace_mask().to_string(),
            Word::Stmk => self.take_trace_mask(argument),
            Word::Isro if !source.serving() => "null".to_owned(),
            Word::Hash if !source.serving() => NOT_SERVING.to_owned(),
            _ if !source.serving() => format!("{NOT_SERVING}\n"),
            Word::Isro => text::isro(source).to_owned(),
            Word::Hash => text::hash(source),
            Word::Srvr => text::srvr(&self.version, source),
            Word::Stat => text::stat(&self.version, source),
            Word::Cons => text::cons(source),
            Word::Conf => text::conf(source),
            Word::Dirs => text::dirs(source),
            Word::Dump => text::dump(source),
            Word::Mntr => mntr::answer(&self.version, source),
            Word::Wchs => text::wchs(source),
            Word::Wchc => text::wchc(source),
            Word::Wchp => text::wchp(source),
            Word::Srst => {
                source.reset_server_figures();
                "Server stats reset.\n".to_owned()
            }
            Word::Crst => {
                source.reset_connection_figures();
                "Connection stats reset.\n".to_owned()
            }
        }
    }

    /// Takes the eight bytes of a mask and answers with the mask in force, which is the old one if bytes are missing.
    fn take_trace_mask(&self, argument: &[u8]) -> String {
        if let Ok(mask) = argument.try_into().map(i64::from_be_bytes) {
            self.set_trace_mask(mask);
        }
        self.trace_mask().to_string()
    }
}
