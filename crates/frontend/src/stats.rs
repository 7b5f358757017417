//! What a connection counts for the operator's commands.

use quenda_proto::Op;

/// Counters of one connection, as `cons` and `stat` show them. Times are milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets received, the handshake included.
    pub received: u64,
    /// Packets sent, events included.
    pub sent: u64,
    /// Last operation that was answered; `None` until there is one.
    pub last_op: Option<Op>,
    /// xid of the last operation; negative for pings and the like.
    pub last_xid: Option<i32>,
    /// zxid of the last reply.
    pub last_zxid: Option<i64>,
    /// Monotonic time of the last reply.
    pub last_response_ms: u64,
    /// Latency of the last request.
    pub last_latency_ms: u32,
    /// Shortest latency; 0 until there is one.
    pub min_latency_ms: u32,
    /// Longest latency.
    pub max_latency_ms: u32,
    /// Sum of all latencies.
    pub total_latency_ms: u64,
    /// Requests that the latencies belong to.
    pub answered: u64,
    /// Wall time when the session was confirmed on this connection, milliseconds since 1970.
    pub established_ms: i64,
}

impl Stats {
    /// Mean latency, rounded down.
    pub fn avg_latency_ms(&self) -> u64 {
        self.total_latency_ms
            .checked_div(self.answered)
            .unwrap_or(0)
    }

    /// Short name of the last operation as `cons` prints it.
    pub fn last_op_name(&self) -> &'static str {
        self.last_op.map_or("NA", short_name)
    }

    /// Starts all counters again (`crst`).
    pub fn reset(&mut self) {
        *self = Stats {
            established_ms: self.established_ms,
            ..Stats::default()
        };
    }

    pub(crate) fn answered(&mut self, op: Op, xid: i32, zxid: i64, received_ms: u64, now_ms: u64) {
        self.sent += 1;
        self.timed(op, xid, zxid, received_ms, now_ms);
    }

    /// A new session is an operation as well, of xid 0; its answer is counted with the handshakes.
    pub(crate) fn opened_session(&mut self, zxid: i64, received_ms: u64, now_ms: u64) {
        self.timed(Op::CreateSession, 0, zxid, received_ms, now_ms);
    }

    fn timed(&mut self, op: Op, xid: i32, zxid: i64, received_ms: u64, now_ms: u64) {
        let latency = u32::try_from(now_ms.saturating_sub(received_ms)).unwrap_or(u32::MAX);
        self.last_op = Some(op);
        self.last_xid = Some(xid);
        self.last_zxid = Some(zxid);
        self.last_response_ms = now_ms;
        self.last_latency_ms = latency;
        self.min_latency_ms = match self.answered {
            0 => latency,
            _ => self.min_latency_ms.min(latency),
        };
        self.max_latency_ms = self.max_latency_ms.max(latency);
        self.total_latency_ms += u64::from(latency);
        self.answered += 1;
    }
}

/// The four-letter names that operators' tools know.
fn short_name(op: Op) -> &'static str {
    match op {
        Op::CreateSession => "SESS",
        Op::CloseSession => "CLOS",
        Op::Create | Op::Create2 | Op::CreateContainer | Op::CreateTtl => "CREA",
        Op::Delete | Op::DeleteContainer => "DELE",
        Op::Exists => "EXIS",
        Op::GetData => "GETD",
        Op::SetData => "SETD",
        Op::GetAcl => "GETA",
        Op::SetAcl => "SETA",
        Op::GetChildren | Op::GetChildren2 => "GETC",
        Op::GetAllChildrenNumber => "GETACN",
        Op::GetEphemerals => "GETE",
        Op::Sync => "SYNC",
        Op::Ping => "PING",
        Op::Multi => "MULT",
        Op::MultiRead => "MLTR",
        Op::Check => "CHEC",
        Op::CheckWatches => "CHKW",
        Op::RemoveWatches => "REMW",
        Op::AddWatch => "ADDW",
        Op::SetWatches => "SETW",
        Op::SetWatches2 => "STW2",
        Op::Reconfig => "RECO",
        Op::WhoAmI => "HOMI",
        Op::Auth | Op::Sasl => "NA",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_summed_and_reset() {
        let mut stats = Stats {
            established_ms: 7,
            ..Stats::default()
        };
        stats.answered(Op::GetData, 1, 9, 100, 104);
        stats.answered(Op::SetData, 2, 10, 100, 109);
        assert_eq!(
            (
                stats.min_latency_ms,
                stats.avg_latency_ms(),
                stats.max_latency_ms
            ),
            (4, 6, 9)
        );
        assert_eq!((stats.last_op_name(), stats.last_latency_ms), ("SETD", 9));
        stats.reset();
        assert_eq!((stats.last_op_name(), stats.avg_latency_ms()), ("NA", 0));
        assert_eq!(stats.established_ms, 7);
    }
}
