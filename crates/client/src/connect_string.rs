//! Where a session may go: `host:port,host:port/chroot`.

use std::fmt;
use std::str::FromStr;

/// The port of an entry that names none.
const DEFAULT_PORT: u16 = 2181;

/// A list of servers of one ensemble, and the znode that is the root for this client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectString {
    hosts: Vec<String>,
    chroot: String,
}

/// Why a text is no connect string.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectStringError {
    /// There is no server in it.
    #[error("\"{0}\" names no server; wanted host:port,host:port/chroot")]
    NoHost(String),
    /// A port is no number.
    #[error("\"{0}\" has no port from 1 to 65535 behind its colon")]
    Port(String),
    /// What stands behind the servers is no path.
    #[error(
        "\"{0}\" cannot be a root: wanted /path without empty parts and without a slash at its end"
    )]
    Chroot(String),
}

impl ConnectString {
    /// The servers as `host:port`, at least one, in the order in which they were given.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// The root without a slash at its end; empty if it is that of the server.
    pub fn chroot(&self) -> &str {
        &self.chroot
    }
}

impl FromStr for ConnectString {
    type Err = ConnectStringError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (hosts, chroot) = match text.find('/') {
            Some(start) => (&text[..start], &text[start..]),
            None => (text, ""),
        };
        let hosts: Vec<String> = hosts
            .split(',')
            .map(str::trim)
            .filter(|host| !host.is_empty())
            .map(with_port)
            .collect::<Result<_, _>>()?;
        if hosts.is_empty() {
            return Err(ConnectStringError::NoHost(text.to_owned()));
        }
        let chroot = chroot.trim_end();
        let bad = chroot.len() > 1
            && chroot[1..]
                .split('/')
                .any(|part| matches!(part, "" | "." | ".."));
        if bad {
            return Err(ConnectStringError::Chroot(chroot.to_owned()));
        }
        let chroot = if chroot == "/" { "" } else { chroot };
        Ok(ConnectString {
            hosts,
            chroot: chroot.to_owned(),
        })
    }
}

/// An IPv6 address stands in brackets if a port follows, and may stand bare if none does.
fn with_port(host: &str) -> Result<String, ConnectStringError> {
    let behind_brackets = host.rsplit(']').next().unwrap_or(host);
    if !host.contains(']') && host.matches(':').count() > 1 {
        return Ok(format!("[{host}]:{DEFAULT_PORT}"));
    }
    let Some((name, port)) = behind_brackets.rsplit_once(':') else {
        return Ok(format!("{host}:{DEFAULT_PORT}"));
    };
    let bare = name.is_empty() && !host.contains(']');
    match port.parse::<u16>() {
        Ok(1..) if !bare => Ok(host.to_owned()),
        _ => Err(ConnectStringError::Port(host.to_owned())),
    }
}

impl fmt::Display for ConnectString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.hosts.join(","), self.chroot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (Vec<String>, String) {
        let parsed: ConnectString = text.parse().expect("a connect string");
        (parsed.hosts, parsed.chroot)
    }

    #[test]
    fn hosts_ports_and_root_are_taken_apart() {
        let (hosts, chroot) = parsed("a:1, b,[::1]:3,::2,/app/one");
        assert_eq!(hosts, ["a:1", "b:2181", "[::1]:3", "[::2]:2181"]);
        assert_eq!(chroot, "/app/one");
        assert_eq!(parsed("a/"), (vec!["a:2181".to_owned()], String::new()));
        assert_eq!(parsed("[::1]").0, ["[::1]:2181"]);
        let text = "a:1,b:2/x";
        assert_eq!(
            text.parse::<ConnectString>().expect("one").to_string(),
            text
        );
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in ["", ",", "/app", "a:", "a:0", "a:x", ":1", "a:70000"] {
            assert!(text.parse::<ConnectString>().is_err(), "{text}");
        }
        for text in ["a//b", "a/b/", "a/b/../c", "a/./b"] {
            let error = text.parse::<ConnectString>().expect_err(text);
            assert!(matches!(error, ConnectStringError::Chroot(_)), "{text}");
        }
    }
}
