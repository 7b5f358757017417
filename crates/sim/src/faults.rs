//! What goes wrong, when, and for how long.

use crate::plan::Plan;
use crate::rng::Rng;
use crate::schedule::{MS, Micros, SECOND};

/// Whom a fault meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Whoever leads.
    Leader,
    /// This one.
    Member(u64),
}

/// One fault.
#[derive(Debug, Clone)]
pub enum Fault {
    /// The process dies, and starts again later.
    Crash {
        /// Who.
        target: Target,
        /// Nobody is told, and what was not synced may be lost.
        power_cut: bool,
        /// How long it stays away.
        down: Micros,
    },
    /// All lose power.
    Blackout {
        /// How long they stay away, about.
        down: Micros,
    },
    /// The process stands still.
    Pause {
        /// Who.
        target: Target,
        /// For how long.
        time: Micros,
    },
    /// A member is cut off from the other members.
    Isolate {
        /// Who.
        target: Target,
        /// It hears nobody.
        deaf: bool,
        /// Nobody hears it.
        mute: bool,
        /// For how long.
        time: Micros,
    },
    /// One direction between two members.
    Cut {
        /// From here nothing comes
        from: u64,
        /// to there.
        to: u64,
        /// For how long.
        time: Micros,
    },
    /// Syncs take long.
    SlowDisk {
        /// Who.
        target: Target,
        /// At most so long.
        sync: Micros,
        /// For how long.
        time: Micros,
    },
    /// What is being synced, and whatever comes behind it, becomes durable only when this is over.
    HangingDisk {
        /// Who.
        target: Target,
        /// For how long.
        time: Micros,
    },
    /// The disk has no room for growth.
    FullDisk {
        /// Who.
        target: Target,
        /// For how long.
        time: Micros,
    },
    /// The wall clock jumps.
    WallJump {
        /// Who.
        target: Target,
        /// Milliseconds.
        by: i64,
    },
    /// A client does not reach a member.
    CutClient {
        /// The client.
        client: usize,
        /// The member.
        member: u64,
        /// For how long.
        time: Micros,
    },
    /// A graceful stop, and a start later.
    Stop {
        /// Who.
        target: Target,
        /// How long it stays away.
        down: Micros,
    },
    /// The store is lost.
    Wipe {
        /// Who.
        target: Target,
        /// How long it stays away.
        down: Micros,
    },
    /// Processes die one after the other, and start again at once, while the leader changes.
    Flaps {
        /// How many die.
        count: u64,
        /// At most so long from one to the next.
        gap: Micros,
    },
    /// The leader dies; as soon as another leads it is cut off, and those who chose it die and start again
    /// at once.
    Ambush {
        /// How long the old leader stays away.
        down: Micros,
        /// For how long the new one is cut off.
        time: Micros,
    },
    /// The administrator changes the membership.
    Reconfig,
    /// A snapshot is taken, or the last one restored.
    Restore,
    /// A member that is none any more loses its store.
    Clear {
        /// Who.
        member: u64,
    },
}

/// The faults of a plan, with the times at which they begin.
pub fn draw(plan: &Plan, rng: &mut Rng) -> Vec<(Micros, Fault)> {
    let mut faults = Vec::new();
    let mut at = match plan.early {
        true => rng.below(SECOND),
        false => 2 * SECOND + rng.below(SECOND),
    };
    while at < plan.chaos {
        match draw_one(plan, rng) {
            // Nobody can tell a store that was lost from one that was never used before there is a cluster.
            Some(Fault::Wipe { .. }) if at < 2 * SECOND => {}
            Some(fault) => faults.push((at, fault)),
            None => {}
        }
        let rest = faults
            .last()
            .map_or(0, |(_, fault)| match (plan.hangs, fault) {
                (true, Fault::HangingDisk { time, .. }) => *time,
                _ => 0,
            });
        at += rest + rng.between(plan.gap / 2, plan.gap * 3 / 2);
    }
    faults
}

fn draw_one(plan: &Plan, rng: &mut Rng) -> Option<Fault> {
    let mix = &plan.mix;
    let hosts: Vec<u64> = plan.hosts().collect();
    let leader = if plan.hangs { 70 } else { 45 };
    let target = match (plan.victim, rng.percent(leader)) {
        (Some(victim), _) => Target::Member(victim),
        (None, true) => Target::Leader,
        (None, false) => Target::Member(*rng.pick(&hosts)),
    };
    let short = plan.gentle;
    let time = match short {
        true => rng.between(100, 900) * MS,
        false if plan.victim.is_some() || plan.hangs => {
            *rng.pick(&[200, 700, 1_500, 4_000, 14_000]) * MS
        }
        false => *rng.pick(&[200, 700, 1_500, 4_000]) * MS + rng.below(500 * MS),
    };
    let weights = [
        mix.kill,
        mix.power,
        mix.blackout,
        mix.pause,
        mix.isolate,
        mix.cut,
        mix.slow_disk,
        mix.wall_jump,
        mix.cut_client,
        mix.stop,
        mix.wipe,
        mix.flaps,
        mix.ambush,
        mix.full_disk,
        mix.reconfig,
        mix.hanging_disk,
        mix.restore,
    ];
    let mut draw = rng.below(weights.iter().sum());
    let kind = weights.iter().position(|weight| {
        let hit = draw < *weight;
        draw = draw.saturating_sub(*weight);
        hit
    })?;
    let fault = match kind {
        0 | 1 => Fault::Crash {
            target,
            power_cut: kind == 1,
            down: time,
        },
        // Sessions outlive that, however long it lasts.
        2 if short => Fault::Blackout {
            down: *rng.pick(&[500, 4_000, 10_000]) * MS,
        },
        2 => Fault::Blackout { down: time },
        3 => Fault::Pause { target, time },
        4 => {
            let way = rng.below(4);
            Fault::Isolate {
                target,
                deaf: way != 0,
                mute: way != 1,
                time,
            }
        }
        5 => {
            let (one, other) = (*rng.pick(&hosts), *rng.pick(&hosts));
            let one = plan.victim.unwrap_or(one);
            let (from, to) = match rng.percent(50) {
                true => (one, other),
                false => (other, one),
            };
            Fault::Cut { from, to, time }
        }
        6 => Fault::SlowDisk {
            target,
            sync: *rng.pick(&[30, 100, 600, 3_000, 6_000]) * MS,
            time,
        },
        7 => Fault::WallJump {
            target,
            by: rng.below(200_000) as i64 - 100_000,
        },
        8 => Fault::CutClient {
            client: rng.below(plan.clients as u64) as usize,
            member: *rng.pick(&hosts),
            time,
        },
        9 => Fault::Stop { target, down: time },
        10 => Fault::Wipe { target, down: time },
        11 => Fault::Flaps {
            count: rng.between(2, 8),
            gap: rng.between(20, 250) * MS,
        },
        12 => Fault::Ambush {
            down: rng.between(50, 1_500) * MS,
            time,
        },
        13 => Fault::FullDisk { target, time },
        14 => Fault::Reconfig,
        16 => Fault::Restore,
        _ => Fault::HangingDisk { target, time },
    };
    Some(fault)
}
