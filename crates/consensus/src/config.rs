use crate::error::ConfigError;
use crate::limits;

/// Settings of one member. Times are in ticks; the host decides how long a tick is.
#[derive(Clone, Debug)]
pub struct Config {
    /// This member; not 0.
    pub id: u64,
    /// Ticks without a leader's sign of life before an election. The actual timeout is drawn between
    /// this and twice this.
    pub election_tick: usize,
    /// Ticks between two heartbeats of a leader.
    pub heartbeat_tick: usize,
    /// Source of the election timeouts. Members of one ensemble need not differ in it.
    pub seed: u64,
    /// Bytes of entries in one append message.
    pub max_message_bytes: u64,
    /// Append messages on their way to one follower.
    pub max_inflight_messages: usize,
    /// Bytes of uncommitted proposals before more are refused.
    pub max_uncommitted_bytes: u64,
    /// Bytes of committed entries in one [`crate::Ready`].
    pub max_committed_bytes: u64,
}

impl Config {
    /// The defaults for member `id`: elections after 10 to 20 ticks, heartbeats every 2.
    pub fn new(id: u64) -> Config {
        Config {
            id,
            election_tick: 10,
            heartbeat_tick: 2,
            seed: id,
            max_message_bytes: limits::MAX_MESSAGE_BYTES,
            max_inflight_messages: limits::MAX_INFLIGHT_MESSAGES,
            max_uncommitted_bytes: limits::MAX_UNCOMMITTED_BYTES,
            max_committed_bytes: limits::MAX_COMMITTED_BYTES,
        }
    }

    pub(crate) fn to_raft(&self, applied: u64) -> Result<raft::Config, ConfigError> {
        let config = raft::Config {
            id: self.id,
            election_tick: self.election_tick,
            heartbeat_tick: self.heartbeat_tick,
            applied,
            max_size_per_msg: self.max_message_bytes,
            max_inflight_msgs: self.max_inflight_messages,
            max_uncommitted_size: self.max_uncommitted_bytes,
            max_committed_size_per_ready: self.max_committed_bytes,
            check_quorum: true,
            pre_vote: true,
            // Off: raft 0.7.0 glues entries to a waiting append message without looking at the index that
            // the message continues, and the follower then acknowledges entries that do not exist.
            batch_append: false,
            ..raft::Config::default()
        };
        config
            .validate()
            .map_err(|error| ConfigError(error.to_string()))?;
        Ok(config)
    }
}
