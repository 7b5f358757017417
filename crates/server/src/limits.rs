//! Bounds of the server, each with its unit and what happens there.

use std::time::Duration;

/// Bytes read from one socket before its frames are served. More waits in the kernel.
pub const READ_BYTES: usize = 64 << 10;

/// Bytes that a connection waiting for its turn keeps in a buffer of their own size; more stay where they were read.
pub const HELD_BYTES: usize = 4 << 10;

/// Bytes of commands in front of the core thread. Above it, connections with writes are not read until
/// the core has caught up.
pub const INBOX_BYTES: usize = 32 << 20;

/// How long a member that leads and stops waits for another one to take over.
pub const HANDOVER_PATIENCE: Duration = Duration::from_secs(2);

/// How long a member must have been without a quorum before it serves clients that only read.
pub const READ_ONLY_DELAY: Duration = Duration::from_secs(2);

/// How often a member that waits for others to found the ensemble with says so.
pub const FOUNDING_REPORT: Duration = Duration::from_secs(5);

/// How long a member with an empty store looks for voters that are not here yet, before it founds the ensemble with a
/// majority: one of them may have the data of an earlier one.
pub const FOUNDING_GRACE: Duration = Duration::from_secs(3);

/// How long a member has been without a quorum when it says which voters are here.
pub const LEADERLESS_REPORT: Duration = Duration::from_secs(5);

/// How often a member says that it has lost entries and cannot go on.
pub const LOST_ENTRIES_REPORT: Duration = Duration::from_secs(60);

/// How long a member counts as one with old data after another one has said so, ms: some heartbeats, which say it anew.
pub const LOST_ENTRIES_FRESH_MS: u64 = 2000;

/// How long a start waits before it tries the quorum port again that another process has; ZooKeeper's pause.
pub const QUORUM_BIND_PAUSE: Duration = Duration::from_secs(1);

/// How often the file with the SASL users is looked at.
pub const SASL_RELOAD_INTERVAL: Duration = Duration::from_secs(1);

/// Memory of audit records that wait for the disk. Those beyond are dropped, counted, and told of in the audit log.
pub const AUDIT_QUEUE_BYTES: usize = 32 << 20;

/// Audit lines written at once, at least that many bytes where so many wait.
pub const AUDIT_WRITE_BYTES: usize = 64 << 10;

/// How long the writer of the audit log waits before it tries a file anew that could not be written.
pub const AUDIT_RETRY: Duration = Duration::from_millis(500);

/// How long the end of the server waits for the last audit records.
pub const AUDIT_STOP_PATIENCE: Duration = Duration::from_secs(2);

/// How often images that no member fetches any more are looked for.
pub const IMAGE_INTERVAL: Duration = Duration::from_secs(10);

/// Open files that are kept for the store, where the system's limit allows twice as many: connections
/// beyond the rest are refused, or the log could not go on.
pub const STORE_FILES: u64 = 1024;

/// How long a connection that is to be closed may take to accept its last output.
pub const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// How long a client that has got its last output may take to end its side. Most do at once.
pub const LINGER_PATIENCE: Duration = Duration::from_secs(1);

/// How many connections are waited for in this way at one time. They are not counted as clients any more, and each has
/// an open file.
pub const LINGERING_MAX: usize = 256;

/// How much of what such a client still sends is read, and thrown away, at once.
pub const LINGER_BYTES: usize = 4096;

/// How long a four-letter word's answer may take to be accepted.
pub const WORD_PATIENCE: Duration = Duration::from_secs(10);

/// KiB of the long answers to four-letter words (`cons`, `dump`, …) that are being read at one time, those of
/// [`LISTING_ALWAYS_BYTES`] and less not counted. Who asks for one that does not fit is closed unanswered. A single one
/// always fits.
pub const LISTING_ROOM_KIB: u32 = 128 << 10;

/// Bytes of an answer that needs no room among them.
pub const LISTING_ALWAYS_BYTES: usize = 64 << 10;

/// How long the data directories may take to be looked at before the sizes seen last are shown.
pub const DIRECTORY_PATIENCE: Duration = Duration::from_millis(300);

/// Namespaces whose refusals by quotas are counted: each is a line of `mntr`. More are not counted.
pub const QUOTA_NAMESPACES_MAX: usize = 1000;

/// Znodes below `/zookeeper/quota` that are looked at to tell the quotas in figures.
pub const QUOTA_ZNODES_MAX: usize = 10_000;

/// How long figures wait for the tree, which may be locked for a large batch or a snapshot.
pub const TREE_PATIENCE: Duration = Duration::from_millis(200);

/// How often a checkpoint is taken at least, when anything has changed.
pub const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(5);

/// Bytes of changed rows that bring a checkpoint about before its time. Bounds the memory of one
/// checkpoint, the time the tree is locked to collect it, and what an append may wait behind.
pub const CHECKPOINT_BYTES: usize = 4 << 20;

/// Bytes of log in memory that bring a checkpoint about before its time, however few znodes they
/// changed, on top of what is kept for members that lag
/// ([`quenda_consensus::limits::RETAINED_LOG_BYTES`]). Bounds that memory and what a restart replays.
pub const CHECKPOINT_LOG_BYTES: u64 = 12 << 20;

/// How often the free space of the disk is looked at.
pub const DISK_INTERVAL: Duration = Duration::from_millis(200);

/// How long the log writer waits before it tries a failed store again.
pub const STORE_RETRY: Duration = Duration::from_millis(500);

/// Bytes that one block of a snapshot compressed by snappy may hold; ZooKeeper's have 32 KiB.
pub const SNAPPY_BLOCK_MAX: usize = 1 << 20;

/// Greatest `flushDelay`, ms. Below [`quenda_node::limits::STALL_MS`], after which the log counts as standing still.
pub const FLUSH_DELAY_MAX_MS: i64 = 250;

/// How long a question to the core thread may wait for its answer.
pub const ASK_PATIENCE: Duration = Duration::from_millis(300);

/// How long a stop waits for what was already accepted to become durable, at most, while the log cannot be written: a few
/// attempts. Clients whose writes are on their way are gone already.
pub const STOP_FAILING_PATIENCE: Duration = Duration::from_secs(2);

/// How long a stop waits then for the last checkpoint, and for the store to close. A disk that takes longer does not answer.
pub const FINISH_PATIENCE: Duration = Duration::from_secs(10);

/// How often at most a line is logged about what clients can bring about as often as they like.
pub const CALM_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes of output, over all connections, that clients have not taken. Above it, connections with more than
/// [`OUTPUT_SHARE`] of it are closed when more is added: their clients do not read. (One connection alone is
/// closed at the frontend's `output_max`.)
pub const OUTPUT_TOTAL_MAX: usize = 512 << 20;

/// Bytes of waiting output that any connection may have, whatever the sum is.
pub const OUTPUT_SHARE: usize = 1 << 20;

/// Bytes of one frame between members: beyond any log entry with its envelope. A longer one is not sent;
/// one that is announced closes the connection before memory is taken for it.
pub const PEER_FRAME_MAX: usize = 128 << 20;

/// Bytes that wait for one peer's connection. At the bound further frames are dropped and the member told
/// that the peer is unreachable; one frame is always admitted to an empty queue.
pub const PEER_QUEUE_BYTES: usize = 32 << 20;

/// Bytes of frames from one peer that the core has not dealt with. At the bound that peer's connection is not
/// read; the others are.
pub const PEER_DELIVERED_BYTES: usize = 16 << 20;

/// Bytes of queued frames that go to a peer's socket in one turn.
pub const PEER_WRITE_BYTES: usize = 1 << 20;

/// Longest frame that its sender writes into an idle peer's socket itself; longer ones are left to the connection's task.
pub const PEER_DIRECT_BYTES: usize = 32 << 10;

/// Bytes of room for one read from a peer's socket.
pub const PEER_READ_BYTES: usize = 256 << 10;

/// Members that may be connected at one time. Those beyond are refused.
pub const PEERS_MAX: usize = 256;

/// Connections on the quorum port that have not said who they are. At the bound the oldest gives way.
pub const PEER_HANDSHAKES_MAX: usize = 64;

/// How long a connection on the quorum port may take to say who it is.
pub const PEER_HANDSHAKE_PATIENCE: Duration = Duration::from_secs(3);

/// How long one address of a peer may take to answer a dial, and its name to be looked up.
pub const PEER_DIAL_PATIENCE: Duration = Duration::from_secs(1);

/// The pause between two dials of a peer: at first, doubled each time up to [`PEER_DIAL_PAUSE_MAX`].
pub const PEER_DIAL_PAUSE_MIN: Duration = Duration::from_millis(50);

/// The longest pause between two dials of a peer.
pub const PEER_DIAL_PAUSE_MAX: Duration = Duration::from_secs(1);

/// The pause before a quorum port that the configuration gives this member, and that cannot be opened, is tried again.
pub const QUORUM_PORT_RETRY: Duration = Duration::from_secs(2);

/// Silence of our own on a peer's connection after which a ping is sent.
pub const PEER_PING_INTERVAL: Duration = Duration::from_secs(1);

/// Silence of the peer after which its connection is closed.
pub const PEER_IDLE_MAX: Duration = Duration::from_secs(5);

/// How long what was sent to a peer may stay unacknowledged before the system breaks the connection.
pub const PEER_UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(3);

/// How long a stop waits for frames that are queued for peers.
pub const PEER_STOP_PATIENCE: Duration = Duration::from_secs(1);

/// How long a connection with a peer lasts at least, unless something is wrong.
pub const PEER_BRIEF: Duration = Duration::from_secs(1);

/// Connections with a peer that end sooner, one after the other, whose begin and end are logged. Of more nothing is
/// said until one lasts.
pub const PEER_BRIEF_LOGGED: u32 = 3;

/// Complaints about peers that are remembered. At the bound new ones are not logged.
pub const PEER_COMPLAINTS_MAX: usize = 256;

/// How long the same complaint about the same peer is not repeated in the log.
pub const PEER_COMPLAINT_INTERVAL: Duration = Duration::from_secs(300);

/// Members that are sent an image at one time, if no setting says otherwise.
pub const IMAGE_FEEDS: usize = 1;

/// Bytes of an image in one frame.
pub const IMAGE_CHUNK_BYTES: usize = 1 << 20;

/// Silence on the connection that carries an image after which it is closed; the receiver dials again and
/// goes on where it was.
pub const IMAGE_IDLE_MAX: Duration = Duration::from_secs(10);

/// How long an image may make no progress, over all attempts, before its transfer is given up.
pub const IMAGE_PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of output, in one connection over TLS, that are encrypted and wait for room in the socket. At the bound nothing
/// more is encrypted.
pub const TLS_UNSENT_BYTES: usize = 64 << 10;

/// Certificates that a client may send: its own and those that lead to a trusted one. Java has the same bound. Who sends more
/// is refused before a way through them is looked for: where many of them have one name, that takes minutes.
pub const CLIENT_CERTIFICATES_MAX: usize = 8;

/// How often over the key of a store is derived from its password. A store that asks for more is not read; Java has the same
/// bound.
pub const STORE_ITERATIONS_MAX: u32 = 5_000_000;

/// Bytes that deriving the key of a store by scrypt may go over. A store that asks for more is not read; OpenSSL asks for
/// 16 MiB.
pub const STORE_SCRYPT_BYTES_MAX: u64 = 128 << 20;

/// How often the files with keys and trusted certificates are looked at.
pub const TLS_RELOAD_INTERVAL: Duration = Duration::from_secs(1);

/// Connections of one HTTP server (administration, metrics) at one time. At the bound one that waits for a request gives
/// way, else one whose caller has not taken its answer, else one that is being answered; of the address that has most.
pub const HTTP_CONNECTIONS_MAX: usize = 64;

/// How long the head of an HTTP request, or a TLS handshake in front of it, may take; a shorter idle time counts instead.
pub const HTTP_HEAD_PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of an HTTP request's head. A longer one is answered with 431.
pub const HTTP_HEAD_BYTES: usize = 16 << 10;

/// Threads of one HTTP server that may wait for a lock or a disk. Further answers wait for one of them.
pub const HTTP_BLOCKING_THREADS: usize = 8;

/// How long a stop waits for HTTP answers that were begun.
pub const HTTP_STOP_PATIENCE: Duration = Duration::from_secs(1);

/// Long answers of administration over HTTP (`connections`, `dump`, …) that are made or sent at one time: each may be many
/// megabytes. More wait their turn, [`ADMIN_LISTING_PATIENCE`] at most; then they are answered with 503.
pub const ADMIN_LISTINGS_MAX: usize = 4;

/// How long such an answer may wait for its turn.
pub const ADMIN_LISTING_PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of the body of a request that is no restore. A longer one is answered with 400.
pub const ADMIN_BODY_BYTES: usize = 64 << 10;

/// How long a member to which the leadership is handed over may take to lead.
pub const TRANSFER_PATIENCE: Duration = Duration::from_secs(10);
/// How long a snapshot waits until what is applied is in the stored checkpoint.
pub const BACKUP_CHECKPOINT_PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of a snapshot that are read at a time to be sent away.
pub const BACKUP_READ_BYTES: u64 = 256 << 10;

/// Bytes of a snapshot that are collected before they are written to the file they are received in.
pub const BACKUP_WRITE_BYTES: usize = 256 << 10;

/// Bytes of one piece of a snapshot that is restored: one entry of the log, which others wait behind.
pub const RESTORE_PIECE_BYTES: u64 = 256 << 10;

/// Pieces of a snapshot that are on their way at a time.
pub const RESTORE_WINDOW: usize = 8;

/// How long a piece may be on its way before it is sent again.
pub const RESTORE_ANSWER_PATIENCE: Duration = Duration::from_secs(15);

/// How long a restore may make no progress before it is given up, and how long its last command may take.
pub const RESTORE_PATIENCE: Duration = Duration::from_secs(60);

/// How long pieces of a snapshot may lie there without another one coming before the leader has them dropped: whoever
/// sent them is gone.
pub const RESTORE_IDLE: Duration = Duration::from_secs(120);
/// Length of one slot of what is told about the load, ms.
pub const LOAD_SLOT_MS: u64 = 5000;

/// Slots of the window.
pub const LOAD_SLOTS: u64 = 12;

/// The window itself, ms.
pub const LOAD_WINDOW_MS: u64 = LOAD_SLOT_MS * LOAD_SLOTS;

/// Clients, sessions, paths and so on that one slot tells apart. Those with more than this part of its requests are
/// always among them.
pub const LOAD_TABLE_MAX: usize = 200;

/// Requests in a second, over all connections, whose paths are noted one by one before samples are taken; each connection
/// may have 2.
pub const LOAD_EXACT_PER_SECOND: u32 = 20_000;

/// How old a report on the load may be when it is given again, ms.
pub const LOAD_REPORT_MS: u64 = 500;

/// Slow requests, and herds, that are remembered one by one: the newest.
pub const LOAD_NAMED_MAX: usize = 64;

/// Cases of misuse that are remembered. At the bound new ones are neither told nor logged until old ones are a minute old.
pub const LOAD_MISUSE_MAX: usize = 64;

/// Turns of the core thread that are remembered, to tell how long a request waited for one.
pub const LOAD_TURNS_MAX: usize = 8192;

/// Watched paths that are looked at while the watch table is locked, when those with most watchers are looked for.
pub const WATCHED_PATHS_A_TURN: usize = 16_384;

/// Rows of each table on the load that Prometheus is shown: each is a time series.
pub const LOAD_SERIES_MAX: usize = 10;

/// How often it is said of one quota that it is exceeded.
pub const QUOTA_REPORT: Duration = Duration::from_secs(60);

/// Bytes of a file with settings. A longer one is none: the start, or the check, ends with a message.
pub const CONFIG_FILE_MAX: u64 = 1 << 20;

/// Settings of one file. One with more is none, either.
pub const CONFIG_SETTINGS_MAX: usize = 5000;
