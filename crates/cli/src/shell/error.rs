//! Why a command failed, in the words that zkCli prints.

use std::borrow::Cow;

use quenda_client::Error;
use quenda_proto::{ErrorCode, Op};

/// Exit code of any failure of a command.
const FAILURE: u8 = 1;
/// Exit code of a command that does not exist; what POSIX shells use.
const NOT_FOUND: u8 = 127;
/// Exit code of a command that Ctrl-C ended: 128 and the number of SIGINT.
const INTERRUPTED: u8 = 130;

/// The code that clients give a request whose connection broke. It is never on the wire.
pub const CONNECTION_LOSS: i32 = -4;

/// Why a command failed. Its text goes to standard error, its code is that of the program in one-shot mode.
#[derive(Debug)]
pub enum CommandError {
    /// The arguments do not fit, or something else that a sentence says.
    Failed(String),
    /// A request failed; the path is the one the user gave.
    Request {
        /// What the client reports.
        error: Error,
        /// What it was about, if it was about a znode.
        path: Option<String>,
    },
    /// No command of that name.
    NotFound(String),
    /// Ctrl-C.
    Interrupted,
    /// Standard output cannot be written to, for instance because its reader has ended.
    Output(std::io::Error),
}

impl CommandError {
    /// A failure that one sentence tells.
    pub fn failed(text: impl Into<String>) -> Self {
        CommandError::Failed(text.into())
    }

    /// The server's error code, if a request failed by one.
    pub fn code(&self) -> Option<i32> {
        match self {
            CommandError::Request { error, .. } => error.code(),
            _ => None,
        }
    }

    /// The error of a znode that is not there.
    pub fn no_node(path: &str) -> Self {
        CommandError::Request {
            error: Error::Server {
                op: Op::Exists,
                code: ErrorCode::NoNode.code(),
            },
            path: Some(path.to_owned()),
        }
    }

    /// The code that a Java client has for this failure, if it is that of a request.
    pub fn keeper_code(&self) -> Option<i32> {
        match self {
            CommandError::Request { error, .. } => keeper_code(error),
            _ => None,
        }
    }

    /// The message of Java's exception for this failure, where that is not what is printed.
    pub fn exception(&self) -> String {
        match (self, self.keeper_code()) {
            (CommandError::Request { path, .. }, Some(code)) => {
                exception_text(code, path.as_deref())
            }
            _ => self.to_string(),
        }
    }

    /// What the program exits with.
    pub fn exit_code(&self) -> u8 {
        match self {
            CommandError::NotFound(_) => NOT_FOUND,
            CommandError::Interrupted => INTERRUPTED,
            _ => FAILURE,
        }
    }
}

impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> Self {
        CommandError::Output(error)
    }
}

/// Says which znode a request was about.
pub trait AtPath<T> {
    /// The error with the path that its text names.
    fn at(self, path: &str) -> Result<T, CommandError>;
    /// The error of a request that is about no znode.
    fn anywhere(self) -> Result<T, CommandError>;
}

impl<T> AtPath<T> for Result<T, Error> {
    fn at(self, path: &str) -> Result<T, CommandError> {
        self.map_err(|error| CommandError::Request {
            error,
            path: Some(path.to_owned()),
        })
    }

    fn anywhere(self) -> Result<T, CommandError> {
        self.map_err(|error| CommandError::Request { error, path: None })
    }
}

impl std::fmt::Display for CommandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CommandError::Failed(text) => f.write_str(text),
            CommandError::Request { error, path } => {
                f.write_str(&request_text(error, path.as_deref()))
            }
            CommandError::NotFound(name) => {
                write!(f, "Command not found: {name}")
            }
            CommandError::Interrupted => f.write_str("Interrupted"),
            CommandError::Output(error) => write!(f, "cannot write the output: {error}"),
        }
    }
}

fn keeper_code(error: &Error) -> Option<i32> {
    match error {
        Error::Server { code, .. } => Some(*code),
        Error::ConnectionLost(_)
        | Error::Connect { .. }
        | Error::NotConnected { .. }
        | Error::HandshakeTimeout { .. }
        | Error::HandshakeClosed { .. } => Some(CONNECTION_LOSS),
        Error::SessionExpired(_) | Error::Closed => Some(ErrorCode::SessionExpired.code()),
        Error::AuthFailed(_) => Some(ErrorCode::AuthFailed.code()),
        _ => None,
    }
}

/// zkCli's own sentence where it has one, else the text of Java's exception.
fn request_text(error: &Error, path: Option<&str>) -> String {
    let Some(code) = keeper_code(error) else {
        return error.to_string();
    };
    let known = ErrorCode::from_code(code);
    let named = path.unwrap_or("null");
    match known.and_then(sentence) {
        Some(sentence) => format!("{sentence}{named}"),
        None => fixed_sentence(known).map_or_else(|| exception_text(code, path), str::to_owned),
    }
}

/// The sentences that end with the path.
fn sentence(code: ErrorCode) -> Option<&'static str> {
    Some(match code {
        ErrorCode::NoNode => "Node does not exist: ",
        ErrorCode::NoChildrenForEphemerals => "Ephemerals cannot have children: ",
        ErrorCode::NodeExists => "Node already exists: ",
        ErrorCode::NotEmpty => "Node not empty: ",
        ErrorCode::NotReadOnly => "Not a read-only call: ",
        ErrorCode::InvalidAcl => "Acl is not valid : ",
        ErrorCode::NoAuth => "Insufficient permission : ",
        ErrorCode::BadArguments => "Arguments are not valid : ",
        ErrorCode::BadVersion => "version No is not valid : ",
        ErrorCode::QuotaExceeded => "Quota has exceeded : ",
        _ => return None,
    })
}

/// The sentences without a path.
fn fixed_sentence(code: Option<ErrorCode>) -> Option<&'static str> {
    match code? {
        ErrorCode::ReconfigInProgress => Some(
            "Another reconfiguration is in progress -- concurrent reconfigs not supported (yet)",
        ),
        ErrorCode::NewConfigNoQuorum => Some(
            "No quorum of new config is connected and up-to-date with the leader of last commmitted config - \
             try invoking reconfiguration after new servers are connected and synced",
        ),
        _ => None,
    }
}

/// The message of Java's KeeperException.
pub fn exception_text(code: i32, path: Option<&str>) -> String {
    let name = java_name(code);
    match path.filter(|path| !path.is_empty()) {
        Some(path) => format!("KeeperErrorCode = {name} for {path}"),
        None => format!("KeeperErrorCode = {name}"),
    }
}

fn java_name(code: i32) -> Cow<'static, str> {
    JAVA_NAMES
        .iter()
        .find(|(number, _)| *number == code)
        .map_or_else(
            || format!("Unknown error {code}").into(),
            |(_, name)| (*name).into(),
        )
}

/// Words of Java's client for the codes, those included that only a client makes.
const JAVA_NAMES: &[(i32, &str)] = &[
    (0, "ok"),
    (-1, "SystemError"),
    (-2, "RuntimeInconsistency"),
    (-3, "DataInconsistency"),
    (CONNECTION_LOSS, "ConnectionLoss"),
    (-5, "MarshallingError"),
    (-6, "Unimplemented"),
    (-7, "OperationTimeout"),
    (-8, "BadArguments"),
    (-13, "NewConfigNoQuorum"),
    (-14, "ReconfigInProgress"),
    (-100, "APIError"),
    (-101, "NoNode"),
    (-102, "NoAuth"),
    (-103, "BadVersion"),
    (-108, "NoChildrenForEphemerals"),
    (-110, "NodeExists"),
    (-111, "Directory not empty"),
    (-112, "Session expired"),
    (-113, "Invalid callback"),
    (-114, "InvalidACL"),
    (-115, "AuthFailed"),
    (-118, "Session moved"),
    (-119, "Not a read-only call"),
    (-120, "Ephemeral node on local session"),
    (-121, "No such watcher"),
    (-123, "Reconfig is disabled"),
    (-124, "Session closed because client failed to authenticate"),
    (-125, "Quota has exceeded"),
    (-127, "Op throttled due to high load"),
];
