//! The one operation table. A new row breaks the build wherever an operation must be handled: no code
//! matches on [`Op`] with a wildcard.

/// Where a request is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpKind {
    /// From the local tree.
    Read,
    /// By the replicated log; takes a zxid, also when it fails.
    Write,
    /// By the connection itself, outside the order of requests.
    Connection,
    /// In the order of requests, but neither from the tree nor by the log.
    Ordering,
    /// Known by number, never accepted from a client by itself.
    Refused,
}

/// The permission an operation needs, and on which znode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// One permission bit (or either of several) on the znode itself.
    OnNode(i32),
    /// One permission bit on the parent.
    OnParent(i32),
    /// What each contained operation needs.
    OfEach,
}

/// What an operation that succeeds does to watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEffect {
    /// Nothing.
    None,
    /// May leave one.
    Leaves,
    /// Fires those on what it changed.
    Fires,
    /// Manages them directly.
    Manages,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct OpInfo {
    /// The operation.
    pub op: Op,
    /// Number on the wire.
    pub code: i32,
    /// Name as used in logs, metrics and errors.
    pub name: &'static str,
    /// Where it is served.
    pub kind: OpKind,
    /// Permission.
    pub needs: Needs,
    /// Effect on watches.
    pub watches: WatchEffect,
}

macro_rules! operations {
    ($($(#[$doc:meta])* $op:ident = $code:literal, $name:literal, $kind:ident, $needs:expr, $watches:ident;)*) => {
        /// An operation of the client protocol.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Op { $($(#[$doc])* $op,)* }

        impl Op {
            /// The table, in order of the numbers on the wire.
            pub const TABLE: &'static [OpInfo] = &[$(OpInfo {
                op: Op::$op,
                code: $code,
                name: $name,
                kind: OpKind::$kind,
                needs: $needs,
                watches: WatchEffect::$watches,
            },)*];

            /// The operation with this number, if there is one.
            pub const fn from_code(code: i32) -> Option<Op> {
                match code { $($code => Some(Op::$op),)* _ => None }
            }

            /// The row of this operation.
            pub const fn info(self) -> &'static OpInfo {
                &Op::TABLE[self as usize]
            }
        }
    };
}

use crate::acl::perms::{ADMIN, CREATE, DELETE, READ, WRITE};

operations! {
    /// End the session.
    CloseSession = -11, "closeSession", Write, Needs::Nothing, Fires;
    /// Internal to servers.
    CreateSession = -10, "createSession", Refused, Needs::Nothing, None;
    /// Create a znode; the reply is its path.
    Create = 1, "create", Write, Needs::OnParent(CREATE), Fires;
    /// Delete a znode.
    Delete = 2, "delete", Write, Needs::OnParent(DELETE), Fires;
    /// Metadata of a znode, or a watch for its creation.
    Exists = 3, "exists", Read, Needs::OnNode(READ), Leaves;
    /// Data and metadata.
    GetData = 4, "getData", Read, Needs::OnNode(READ), Leaves;
    /// Replace the data.
    SetData = 5, "setData", Write, Needs::OnNode(WRITE), Fires;
    /// The access control list; either permission suffices.
    GetAcl = 6, "getACL", Read, Needs::OnNode(READ | ADMIN), None;
    /// Replace the access control list.
    SetAcl = 7, "setACL", Write, Needs::OnNode(ADMIN), None;
    /// Names of the children.
    GetChildren = 8, "getChildren", Read, Needs::OnNode(READ), Leaves;
    /// A barrier: later reads see at least what was committed when it was served.
    Sync = 9, "sync", Ordering, Needs::Nothing, None;
    /// Keeps the session alive.
    Ping = 11, "ping", Ordering, Needs::Nothing, None;
    /// Names of the children and metadata of the parent.
    GetChildren2 = 12, "getChildren2", Read, Needs::OnNode(READ), Leaves;
    /// Compare a version; only inside a multi.
    Check = 13, "check", Refused, Needs::OnNode(READ), None;
    /// Several writes as one transaction.
    Multi = 14, "multi", Write, Needs::OfEach, Fires;
    /// Create a znode; the reply is its path and metadata.
    Create2 = 15, "create2", Write, Needs::OnParent(CREATE), Fires;
    /// Change the membership of the ensemble.
    Reconfig = 16, "reconfig", Write, Needs::OnNode(WRITE), Fires;
    /// Ask whether a watch exists.
    CheckWatches = 17, "checkWatches", Read, Needs::Nothing, Manages;
    /// Remove a watch.
    RemoveWatches = 18, "removeWatches", Read, Needs::Nothing, Manages;
    /// Create a container znode.
    CreateContainer = 19, "createContainer", Write, Needs::OnParent(CREATE), Fires;
    /// Internal to servers.
    DeleteContainer = 20, "deleteContainer", Refused, Needs::Nothing, Fires;
    /// Create a znode with a time to live.
    CreateTtl = 21, "createTTL", Write, Needs::OnParent(CREATE), Fires;
    /// Several reads as one request.
    MultiRead = 22, "multiRead", Read, Needs::OfEach, None;
    /// Prove an identity.
    Auth = 100, "auth", Connection, Needs::Nothing, None;
    /// Replay the watches after a reconnect.
    SetWatches = 101, "setWatches", Read, Needs::Nothing, Manages;
    /// One step of a SASL exchange.
    Sasl = 102, "sasl", Connection, Needs::Nothing, None;
    /// Paths of the session's own ephemeral znodes.
    GetEphemerals = 103, "getEphemerals", Read, Needs::Nothing, None;
    /// Number of descendants.
    GetAllChildrenNumber = 104, "getAllChildrenNumber", Read, Needs::OnNode(READ), None;
    /// Replay the watches, persistent ones included.
    SetWatches2 = 105, "setWatches2", Read, Needs::Nothing, Manages;
    /// Leave a persistent watch.
    AddWatch = 106, "addWatch", Read, Needs::Nothing, Manages;
    /// The identities of the connection.
    WhoAmI = 107, "whoAmI", Read, Needs::Nothing, None;
}

impl Op {
    /// Number on the wire.
    pub const fn code(self) -> i32 {
        self.info().code
    }

    /// Name as used in logs, metrics and errors.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// Where the operation is served.
    pub const fn kind(self) -> OpKind {
        self.info().kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_codes_lead_back() {
        for (index, info) in Op::TABLE.iter().enumerate() {
            assert_eq!(info.op as usize, index);
            assert_eq!(Op::from_code(info.code), Some(info.op));
        }
        assert!(Op::TABLE.is_sorted_by_key(|info| info.code));
    }

    #[test]
    fn unassigned_numbers_are_unknown() {
        for code in [-1, 0, 10, 23, 50, 99, 108, 500, i32::MIN, i32::MAX] {
            assert_eq!(Op::from_code(code), None);
        }
    }
}
