//! The protocol's error codes.

macro_rules! error_codes {
    ($($(#[$doc:meta])* $code:ident = $number:literal,)*) => {
        /// What a reply's header says about a request. Source: the client protocol's error table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(i32)]
        pub enum ErrorCode { $($(#[$doc])* $code = $number,)* }

        impl ErrorCode {
            /// The code with this number, if there is one.
            pub const fn from_code(number: i32) -> Option<ErrorCode> {
                match number { $($number => Some(ErrorCode::$code),)* _ => None }
            }
        }
    };
}

error_codes! {
    /// Success; also the header of a multi that failed.
    Ok = 0,
    /// The member cannot take the write now: its disk is nearly full or fails. Reads go on.
    SystemError = -1,
    /// In the results of a failed multi: operations behind the one that failed.
    RuntimeInconsistency = -2,
    /// The request does not decode, or holds a value no handler can take.
    MarshallingError = -5,
    /// Unknown or unavailable operation.
    Unimplemented = -6,
    /// Bad path, create flags, TTL or reconfiguration text.
    BadArguments = -8,
    /// No synced quorum of a new configuration.
    NewConfigNoQuorum = -13,
    /// Another reconfiguration is under way.
    ReconfigInProgress = -14,
    /// The znode or its parent is missing.
    NoNode = -101,
    /// A permission is missing.
    NoAuth = -102,
    /// The expected version is not the current one.
    BadVersion = -103,
    /// An ephemeral znode cannot have children.
    NoChildrenForEphemerals = -108,
    /// The znode exists.
    NodeExists = -110,
    /// The znode has children.
    NotEmpty = -111,
    /// The session is gone.
    SessionExpired = -112,
    /// The access control list is empty or holds something unknown.
    InvalidAcl = -114,
    /// Authentication was rejected.
    AuthFailed = -115,
    /// The session has moved; on the wire the connection is closed instead.
    SessionMoved = -118,
    /// A write on a read-only member.
    NotReadOnly = -119,
    /// An ephemeral znode for a session that only its member knows.
    EphemeralOnLocalSession = -120,
    /// No such watch.
    NoWatcher = -121,
    /// Reconfiguration is switched off.
    ReconfigDisabled = -123,
    /// The connection must authenticate first.
    SessionClosedRequireSaslAuth = -124,
    /// A hard quota forbids it.
    QuotaExceeded = -125,
    /// The operation waited too long in a queue.
    ThrottledOp = -127,
}

impl ErrorCode {
    /// The number on the wire.
    pub const fn code(self) -> i32 {
        self as i32
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?} ({})", self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back_to_codes() {
        for number in -200..=10 {
            let code = ErrorCode::from_code(number);
            assert!(code.is_none_or(|code| code.code() == number), "{number}");
        }
        assert_eq!(ErrorCode::from_code(0), Some(ErrorCode::Ok));
        assert_eq!(ErrorCode::from_code(-127), Some(ErrorCode::ThrottledOp));
        assert_eq!(ErrorCode::from_code(-3), None);
    }
}
