//! The commands themselves and how their names are told from a frame's length.

/// A four-letter word: an administrative command in the first four bytes of a client connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Word {
    /// `conf`: the settings in force.
    Conf,
    /// `cons`: every connection with its session's figures.
    Cons,
    /// `crst`: zeroes the figures of every connection.
    Crst,
    /// `dirs`: bytes under the data directories.
    Dirs,
    /// `dump`: sessions by expiry and their ephemeral znodes.
    Dump,
    /// `envi`: the process's surroundings and the version.
    Envi,
    /// `gtmk`: reads the trace mask.
    Gtmk,
    /// `hash`: remembered digests of the tree.
    Hash,
    /// `isro`: read-write, read-only or not serving.
    Isro,
    /// `mntr`: metrics, a line each.
    Mntr,
    /// `qsta`: the member's state in JSON. Quenda's own word: `quenda status` asks it.
    Qsta,
    /// `qtop`: who loads the member, in JSON. Quenda's own word; it names clients and paths.
    Qtop,
    /// `ruok`: whether the process is alive.
    Ruok,
    /// `srst`: zeroes the server's figures.
    Srst,
    /// `srvr`: the server's figures.
    Srvr,
    /// `stat`: the server's figures and its clients.
    Stat,
    /// `stmk`: sets the trace mask to the eight bytes that follow.
    Stmk,
    /// `wchc`: watched paths by session.
    Wchc,
    /// `wchp`: watching sessions by path.
    Wchp,
    /// `wchs`: how many watches there are.
    Wchs,
    /// The bytes a telnet client sends when it is interrupted: answered by closing.
    TelnetClose,
}

/// Every word that has a name, with the name.
const NAMES: [(&[u8; 4], &str, Word); 20] = [
    (b"conf", "conf", Word::Conf),
    (b"cons", "cons", Word::Cons),
    (b"crst", "crst", Word::Crst),
    (b"dirs", "dirs", Word::Dirs),
    (b"dump", "dump", Word::Dump),
    (b"envi", "envi", Word::Envi),
    (b"gtmk", "gtmk", Word::Gtmk),
    (b"hash", "hash", Word::Hash),
    (b"isro", "isro", Word::Isro),
    (b"mntr", "mntr", Word::Mntr),
    (b"qsta", "qsta", Word::Qsta),
    (b"qtop", "qtop", Word::Qtop),
    (b"ruok", "ruok", Word::Ruok),
    (b"srst", "srst", Word::Srst),
    (b"srvr", "srvr", Word::Srvr),
    (b"stat", "stat", Word::Stat),
    (b"stmk", "stmk", Word::Stmk),
    (b"wchc", "wchc", Word::Wchc),
    (b"wchp", "wchp", Word::Wchp),
    (b"wchs", "wchs", Word::Wchs),
];

/// Interrupt process, then "do timing mark", in telnet's terms.
const TELNET_CLOSE: [u8; 4] = [0xff, 0xf4, 0xff, 0xfd];

/// Tells a word from a frame's length: `first4` are the first bytes of a connection that has not sent its connect
/// request. `None` means that they are a length (every name, read as one, is beyond any allowed frame).
pub fn recognise(first4: &[u8; 4]) -> Option<Word> {
    if *first4 == TELNET_CLOSE {
        return Some(Word::TelnetClose);
    }
    NAMES
        .iter()
        .find(|(bytes, _, _)| *bytes == first4)
        .map(|&(_, _, word)| word)
}

impl Word {
    /// Whether the answer is as long as there are connections, sessions, ephemeral znodes or watches.
    pub fn is_listing(self) -> bool {
        matches!(
            self,
            Word::Cons | Word::Dump | Word::Stat | Word::Wchc | Word::Wchp
        )
    }

    /// The name as clients type it; `telnet close` for the telnet interrupt.
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|&&(_, _, word)| word == self)
            .map_or("telnet close", |&(_, name, _)| name)
    }

    /// How many bytes of argument follow the four of the name.
    pub fn argument_len(self) -> usize {
        if self == Word::Stmk { 8 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_recognised_in_lower_case_only() {
        for (bytes, name, word) in NAMES {
            assert_eq!(recognise(bytes), Some(word));
            assert_eq!(word.name(), name);
            let upper: [u8; 4] = bytes
                .to_ascii_uppercase()
                .try_into()
                .expect("four bytes stay four");
            assert_eq!(recognise(&upper), None, "{name} in capitals is a length");
        }
        assert_eq!(recognise(&TELNET_CLOSE), Some(Word::TelnetClose));
    }

    #[test]
    fn names_of_the_admin_server_are_lengths_on_the_socket() {
        for name in [
            b"lead", b"orst", b"obsr", b"sysp", b"lsnp", b"icfg", b"snap", b"rest", b"shed",
            b"kill", b"reqs",
        ] {
            assert_eq!(recognise(name), None);
        }
    }

    #[test]
    fn a_name_is_no_possible_frame_length() {
        for (bytes, name, _) in NAMES {
            assert!(
                i32::from_be_bytes(*bytes) > 0x3fff_ffff,
                "{name} could be a frame"
            );
        }
    }

    #[test]
    fn only_stmk_has_an_argument() {
        for (_, _, word) in NAMES {
            assert_eq!(word.argument_len(), if word == Word::Stmk { 8 } else { 0 });
        }
    }
}
