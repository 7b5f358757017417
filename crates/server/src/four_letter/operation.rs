//! Short names of operations, for the `lop` field of `cons`.

/// What [`super::SessionView::last_operation`] is before the first request.
pub const NO_OPERATION: &str = "NA";

/// The short name that ZooKeeper prints for the operation with this request type. `None` for the types that leave the
/// last operation of a connection as it was: auth, sasl and those it does not know.
pub fn operation_name(request_type: i32) -> Option<&'static str> {
    Some(match request_type {
        1 | 15 | 19 | 21 => "CREA",
        2 | 20 => "DELE",
        3 => "EXIS",
        4 => "GETD",
        5 => "SETD",
        6 => "GETA",
        7 => "SETA",
        8 | 12 => "GETC",
        9 => "SYNC",
        11 => "PING",
        13 => "CHEC",
        14 => "MULT",
        16 => "RECO",
        17 => "CHKW",
        18 => "REMW",
        22 => "MLTR",
        101 => "SETW",
        103 => "GETE",
        104 => "GETACN",
        105 => "STW2",
        106 => "ADDW",
        107 => "HOMI",
        -10 => "SESS",
        -11 => "CLOS",
        _ => return None,
    })
}
