//! How one simulation is set up: drawn from its seed.

use quenda_frontend::Settings;

use crate::client::Habits;
use crate::network::Weather;
use crate::rng::Rng;
use crate::schedule::{MS, Micros, SECOND};

/// A fault of the host that the checkers have to find. None of them exists in the product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// The log is reported durable before it is synced.
    AcknowledgeBeforeSync,
    /// Votes are not written down.
    ForgetVotes,
    /// sync is answered without a round through the leader.
    ReadWithoutBarrier,
    /// An image is installed without the position in the log that it belongs to.
    SnapshotWithoutPosition,
    /// A member that has lost its store starts as a voter, as if the cluster were new.
    LostStoreVotes,
}

impl Mutation {
    /// All, with their names on the command line.
    pub const ALL: [(&'static str, Mutation); 5] = [
        ("acknowledge-before-sync", Mutation::AcknowledgeBeforeSync),
        ("forget-votes", Mutation::ForgetVotes),
        ("read-without-barrier", Mutation::ReadWithoutBarrier),
        (
            "snapshot-without-position",
            Mutation::SnapshotWithoutPosition,
        ),
        ("lost-store-votes", Mutation::LostStoreVotes),
    ];
}

/// Weights of the faults, 0 for those that do not happen.
#[derive(Debug, Clone, Default)]
pub struct FaultMix {
    /// kill -9.
    pub kill: u64,
    /// Power cut of one member.
    pub power: u64,
    /// Power cut of all members.
    pub blackout: u64,
    /// A stopped process.
    pub pause: u64,
    /// A member cut off, in one direction or both.
    pub isolate: u64,
    /// One direction between two members.
    pub cut: u64,
    /// A slow disk.
    pub slow_disk: u64,
    /// A jump of the wall clock.
    pub wall_jump: u64,
    /// A client cut off from members.
    pub cut_client: u64,
    /// A graceful stop and start.
    pub stop: u64,
    /// A store is lost.
    pub wipe: u64,
    /// Several short deaths in a row.
    pub flaps: u64,
    /// A leader that is cut off as soon as it leads, while its voters start again.
    pub ambush: u64,
    /// A disk without room.
    pub full_disk: u64,
    /// A disk that stands still.
    pub hanging_disk: u64,
    /// A change of the membership.
    pub reconfig: u64,
    /// A snapshot, or a restore.
    pub restore: u64,
}

/// One simulation.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// Members at the beginning.
    pub members: u64,
    /// Observers among them, the last ones.
    pub observers: u64,
    /// Machines that may join later.
    pub spares: u64,
    /// Number of clients.
    pub clients: usize,
    /// Id of the cluster.
    pub cluster: u64,
    /// Secret of the cluster.
    pub secret: [u8; 32],
    /// A fault of the host.
    pub mutation: Option<Mutation>,
    /// Messages between members are small and few at a time.
    pub small_batches: bool,
    /// Time between two checkpoints.
    pub checkpoint_interval: Micros,
    /// Bytes of log that stay behind a checkpoint.
    pub log_retained: u64,
    /// Percent of the pieces of an image that do not arrive.
    pub transfer_breaks: u64,
    /// How long a sync takes when nothing is wrong.
    pub sync_delay: (Micros, Micros),
    /// Every read is linearizable.
    pub linearizable: bool,
    /// New sessions are known to their member alone, until they create an ephemeral znode.
    pub local_sessions: bool,
    /// Only faults that no session may notice.
    pub gentle: bool,
    /// Faults meet this member alone: the others go on without it.
    pub victim: Option<u64>,
    /// Disks hang, one at a time, and nothing else is wrong: nobody waits for long.
    pub hangs: bool,
    /// Faults happen from the first moment on.
    pub early: bool,
    /// Time in which faults happen.
    pub chaos: Micros,
    /// Mean time between two faults.
    pub gap: Micros,
    /// How well frames travel meanwhile.
    pub weather: Weather,
    /// Which faults happen.
    pub mix: FaultMix,
    /// Client timeouts in milliseconds.
    pub timeouts: (u64, u64),
    /// Bytes of padding in values.
    pub padding: u64,
    /// Mean time between two looks of a client.
    pub think: Micros,
    /// How long what connections hand over waits for the core at most: it has other work to do.
    pub core_delay: Micros,
}

impl Plan {
    /// The plan of a seed.
    pub fn new(seed: u64, mutation: Option<Mutation>) -> Plan {
        let mut rng = Rng::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x9e37);
        let gentle = rng.percent(15);
        let members = match rng.below(100) {
            0..8 if !gentle => 1,
            8..12 if !gentle => 2,
            0..70 => 3,
            70..80 => 4,
            _ => 5,
        };
        let observers = u64::from(members >= 4 && rng.percent(40));
        let spares = if members == 1 && rng.percent(50) {
            2
        } else if members >= 3 && !gentle && rng.percent(35) {
            rng.between(1, 2)
        } else {
            0
        };
        let victim = (!gentle && members >= 3 && rng.percent(20)).then(|| rng.between(1, members));
        let hangs = !gentle && victim.is_none() && members >= 3 && rng.percent(8);
        let quiet = gentle || victim.is_some() || hangs;
        let (weather, mix) = if gentle {
            (Weather::fair(), gentle_mix())
        } else if victim.is_some() {
            (Weather::fair(), victim_mix())
        } else if hangs {
            let mix = FaultMix {
                hanging_disk: 1,
                ..FaultMix::default()
            };
            (Weather::fair(), mix)
        } else {
            let weather = weather(&mut rng);
            // Sometimes nothing but the weather is bad.
            let mix = match rng.percent(12) {
                true => FaultMix::default(),
                false => FaultMix {
                    // Of its own chance, so that the other seeds stay what they are.
                    restore: if Rng::new(!seed).percent(30) { 6 } else { 0 },
                    ..mix(&mut rng, members, spares)
                },
            };
            (weather, mix)
        };
        let small_log = rng.percent(45);
        Plan {
            seed,
            members,
            observers,
            spares,
            clients: rng.between(3, 7) as usize,
            cluster: rng.bits(),
            secret: rng.bytes(),
            mutation,
            small_batches: rng.percent(20),
            checkpoint_interval: rng.between(200, 3_000) * MS,
            log_retained: if small_log { rng.below(4_000) } else { 1 << 20 },
            transfer_breaks: if rng.percent(30) { 40 } else { 2 },
            sync_delay: *rng.pick(match quiet {
                true => &[(MS / 5, MS), (MS / 2, 4 * MS)][..],
                false => &[(MS / 5, MS), (MS / 2, 4 * MS), (5 * MS, 60 * MS)],
            }),
            linearizable: rng.percent(12),
            // Of its own chance, so that the other seeds stay what they are.
            local_sessions: members > 1 && Rng::new(seed.rotate_left(32) ^ !0).percent(25),
            gentle,
            victim,
            hangs,
            early: !quiet && rng.percent(15),
            chaos: rng.between(6, if victim.is_some() || hangs { 25 } else { 16 }) * SECOND,
            gap: if gentle || hangs {
                4 * SECOND
            } else {
                rng.between(300, 2_500) * MS
            },
            weather,
            mix,
            timeouts: match (gentle, victim) {
                _ if hangs => (4_000, 12_000),
                (_, Some(_)) => (8_000, 12_000),
                (true, None) => (4_000, 8_000),
                (false, None) => (1_500, 6_000),
            },
            padding: *rng.pick(&[0, 0, 50, 50, 2_000, 2_000, 40_000][..if quiet { 6 } else { 7 }]),
            think: rng.between(10, 70) * MS,
            core_delay: *rng.pick(&[MS / 2, MS / 2, 5 * MS, 40 * MS]),
        }
    }

    /// All machines.
    pub fn hosts(&self) -> impl Iterator<Item = u64> + use<> {
        1..=self.members + self.spares
    }

    /// Voters at the beginning.
    pub fn voters(&self) -> Vec<u64> {
        (1..=self.members - self.observers).collect()
    }

    /// Observers at the beginning.
    pub fn learners(&self) -> Vec<u64> {
        (self.members - self.observers + 1..=self.members).collect()
    }

    /// Stands for whatever start of a member there is.
    pub fn any_boot(&self) -> u64 {
        0
    }

    /// The `server.N` line of a member.
    pub fn server_line(id: u64, observer: bool) -> String {
        let role = if observer { "observer" } else { "participant" };
        format!("server.{id}=m{id}:2888:3888:{role};0.0.0.0:2181")
    }

    /// The configuration that the founder writes down.
    pub fn config_text(&self) -> String {
        if self.members + self.spares == 1 {
            return String::new();
        }
        let voters = self.voters();
        let lines: Vec<String> = (1..=self.members)
            .map(|id| Plan::server_line(id, !voters.contains(&id)))
            .collect();
        lines.join("\n")
    }

    /// Settings of the client protocol.
    pub fn settings(&self) -> Settings {
        Settings {
            session_timeout_min_ms: 1_500,
            skip_acl: true,
            reconfig_enabled: true,
            standalone_enabled: false,
            linearizable_reads: self.linearizable,
            local_sessions_upgrading: self.local_sessions,
            ..Settings::default()
        }
    }

    /// Habits of a client; the first may be the administrator.
    pub fn habits(&self, rng: &mut Rng, is_admin: bool) -> Habits {
        Habits {
            timeout_ms: rng.between(self.timeouts.0, self.timeouts.1) as i32,
            window: *rng.pick(&[1, 2, 3, 6, 40]),
            think: self.think,
            padding: self.padding,
            moves: if rng.percent(50) { 40 } else { 0 },
            sleeps: if self.gentle || self.victim.is_some() || self.hangs {
                0
            } else {
                30
            },
            closes: if rng.percent(50) { 20 } else { 0 },
            vanishes: if rng.percent(50) { 20 } else { 0 },
            linearizable: self.linearizable,
            is_reader: !is_admin && rng.percent(20),
            is_admin,
            watches_below: *rng.pick(&[None, None, Some("/"), Some("/r1"), Some("/l")]),
        }
    }
}

fn weather(rng: &mut Rng) -> Weather {
    let mut weather = Weather::fair();
    match rng.below(11) {
        // Slower than elections: several are under way at a time.
        10 => {
            weather.delay = (5 * MS, rng.between(300, 900) * MS);
            weather.datagrams = true;
            weather.loss = rng.below(500);
            weather.doubled = rng.below(500);
        }
        0..4 => {}
        4..6 => {
            weather.delay = (MS, rng.between(5, 80) * MS);
            weather.breaks = rng.below(30);
        }
        6..8 => {
            weather.delay = (MS / 5, rng.between(2, 40) * MS);
            weather.datagrams = true;
            weather.loss = rng.below(400);
            weather.doubled = rng.below(400);
        }
        _ => {
            weather.delay = (MS / 5, rng.between(2, 200) * MS);
            weather.datagrams = true;
            weather.loss = rng.below(2_000);
            weather.doubled = rng.below(1_000);
        }
    }
    weather
}

fn gentle_mix() -> FaultMix {
    FaultMix {
        stop: 4,
        kill: 4,
        blackout: 1,
        hanging_disk: 1,
        wall_jump: 1,
        ..FaultMix::default()
    }
}

fn victim_mix() -> FaultMix {
    FaultMix {
        kill: 3,
        power: 3,
        pause: 3,
        isolate: 8,
        cut: 6,
        slow_disk: 2,
        hanging_disk: 3,
        wall_jump: 1,
        stop: 2,
        ..FaultMix::default()
    }
}

fn mix(rng: &mut Rng, members: u64, spares: u64) -> FaultMix {
    let mut some = |weight: u64, percent: u64| if rng.percent(percent) { weight } else { 0 };
    FaultMix {
        kill: some(3, 60),
        power: some(3, 60),
        blackout: some(2, 40),
        pause: some(3, 60),
        isolate: some(4, 60),
        cut: some(4, 50),
        slow_disk: some(2, 40),
        wall_jump: some(2, 40),
        cut_client: some(3, 40),
        stop: some(2, 50),
        wipe: if members >= 3 { some(4, 40) } else { 0 },
        flaps: some(3, 40),
        ambush: some(3, 40),
        full_disk: some(1, 20),
        hanging_disk: some(3, 30),
        reconfig: if spares > 0 { some(4, 90) } else { 0 },
        restore: 0,
    }
}
