//! All boundaries of levels one by one, of which the random cases test some: uptimes just below
//! them, and timeouts a whole rotation of a level away, which have hidden nearer ones in other
//! wheels.

use super::edges::nanos;
use super::executors::Mode;
use super::ops::{Kind, Op, Spawn, Target, When};
use super::run::{End, Setup, run};
use super::slot::END_OF_TIME;
use std::time::Duration;
use timer_core::{MissedTickBehavior, WheelKind};

/// Returns the uptimes just below the boundary of each level, of half a level and of the round of
/// 512 ticks.
fn uptimes_below_boundaries() -> impl Iterator<Item = Duration> {
    (0..62).step_by(3).map(|k| Duration::from_nanos((1u64 << k).saturating_sub(k)))
}

/// Returns delays at each of the 64 slots of the level that `uptime` ends, and at other whole
/// rotations.
fn rotations(uptime: Duration) -> impl Iterator<Item = u128> {
    let level = uptime.as_nanos().max(1).ilog2().div_ceil(6).max(1);
    let slot = 1u128 << (6 * (level - 1));
    let residues = (0..64).map(move |residue| 64 * slot + residue * slot);
    let whole =
        (1..=10).flat_map(|level| [-1, 0, 1].map(|beside| (1u128 << (6 * level)).saturating_add_signed(beside)));
    residues.chain(whole).filter(move |far| far + uptime.as_nanos() < END_OF_TIME / 2)
}

fn once(delay: u128) -> Spawn {
    let when = When::In(nanos(delay));
    let run = Vec::new();
    let end = Vec::new();
    Spawn { kind: Kind::Once, when, run, end, panics: false, hook_panics: false, runs: 1 }
}

// Guards against tokio-rs/tokio#8334 and glommio/glommio#44, in which an entry a rotation away was
// in the current slot and hid nearer ones, and against tokio-rs/tokio#849, in which wake-ups were
// lost after a reset to an earlier deadline and after a removal.
#[test]
fn timeouts_a_rotation_away_hide_none() {
    for wheel in [WheelKind::Hierarchical, WheelKind::Hashed { ticks_per_wheel: 512 }] {
        for uptime in uptimes_below_boundaries() {
            let far: Vec<u128> = rotations(uptime).collect();
            let all = far.iter().copied().chain(1..=30).map(once).collect();
            let mut ops = vec![Op::ScheduleAll(all), Op::Advance(Duration::from_nanos(15))];
            ops.extend((0..far.len()).step_by(6).map(|id| Op::Reset(Target::Any(id), When::In(nanos(id as u128 + 1)))));
            ops.push(Op::CancelAll((3..far.len()).step_by(6).map(Target::Any).collect()));
            let mode = Mode::Immediate;
            let missed_runs = MissedTickBehavior::Skip;
            run(&Setup { wheel, mode, uptime, bound: None, missed_runs, end: End::RunDry }, &ops);
        }
    }
}
