//! Cases made of bytes, for the fuzz target and for `fuzz_inputs`. Any bytes are a case, which ends
//! when they are used up.
//!
//! The choices are those of `strategies`. Each takes as few bytes as it needs, so that a changed
//! byte changes one operation and not the whole case.

use super::edges;
use super::executors::Mode;
use super::ops::{self, Kind, Spawn, Target, When};
use super::run::{self, End, SLOTS, Setup};
use arbitrary::{Result, Unstructured};
use std::time::Duration;
use timer_core::{MissedTickBehavior, WheelKind};

pub(crate) use ops::Op;

/// The largest number of outer operations. More would be slow, because everything is compared after
/// each.
const MOST_OPS: usize = 100;

/// The case that `data` encodes.
#[derive(Debug)]
pub(crate) struct Case {
    setup: Setup,
    pub(crate) ops: Vec<Op>,
}

impl Case {
    pub(crate) fn new(data: &[u8]) -> Result<Self> {
        let mut bytes = Unstructured::new(data);
        let setup = setup(&mut bytes)?;
        let mut ops = Vec::new();
        while !bytes.is_empty() && ops.len() < MOST_OPS {
            ops.push(op(&mut bytes)?);
        }
        Ok(Self { setup, ops })
    }

    pub(crate) fn run(&self) {
        run::run(&self.setup, &self.ops);
    }
}

fn setup(bytes: &mut Unstructured<'_>) -> Result<Setup> {
    let hashed = WheelKind::Hashed { ticks_per_wheel: *bytes.choose(&SLOTS)? };
    Ok(Setup {
        wheel: if bytes.ratio(1, 2)? { hashed } else { WheelKind::Hierarchical },
        mode: *bytes.choose(&Mode::ALL)?,
        uptime: uptime(bytes)?,
        bound: if bytes.ratio(1, 3)? { Some(bytes.int_in_range(1..=11)?) } else { None },
        missed_runs: *bytes.choose(&[
            MissedTickBehavior::Skip,
            MissedTickBehavior::Burst,
            MissedTickBehavior::Delay,
        ])?,
        end: *bytes.choose(&End::ALL)?,
    })
}

/// Decodes an outer operation.
fn op(bytes: &mut Unstructured<'_>) -> Result<Op> {
    // Newer operations share the values of others, so that kept inputs keep their meaning.
    let choice = bytes.arbitrary::<u8>()?;
    Ok(match choice % 36 {
        0..=11 => Op::Schedule(spawn(bytes, 2)?),
        12..=15 => Op::Cancel(target(bytes)?),
        16..=20 => Op::Reset(target(bytes)?, when(bytes)?),
        21 if choice > 57 => return later_op(bytes, choice / 36),
        21 => Op::Forget(target(bytes)?),
        22 => Op::Stop,
        23..=27 => Op::Advance(jump(bytes)?),
        28..=31 => Op::AdvanceToNext(bytes.int_in_range(-1..=1)?),
        32..=34 => Op::RunQueued(index(bytes)?),
        _ => Op::DropQueued(index(bytes)?),
    })
}

fn later_op(bytes: &mut Unstructured<'_>, choice: u8) -> Result<Op> {
    Ok(match choice {
        2 => Op::ExpireNow(target(bytes)?),
        3 => Op::ResetAt(target(bytes)?, when(bytes)?),
        4 => Op::CancelAll(targets(bytes)?),
        _ => {
            let len = bytes.int_in_range(0..=5)?;
            Op::ScheduleAll(
                (0..len).map(|_| Ok(Spawn { kind: Kind::Once, ..spawn(bytes, 1)? })).collect::<Result<_>>()?,
            )
        }
    })
}

fn targets(bytes: &mut Unstructured<'_>) -> Result<Vec<Target>> {
    let len = bytes.int_in_range(0..=4)?;
    (0..len).map(|_| target(bytes)).collect()
}

/// Decodes a timeout whose task may perform operations. `depth` limits the tasks of tasks.
fn spawn(bytes: &mut Unstructured<'_>, depth: u32) -> Result<Spawn> {
    let kind = match bytes.int_in_range(0u8..=13)? {
        0..=3 => Kind::Once,
        4..=6 => Kind::At,
        7..=9 => Kind::Task,
        10..=11 => Kind::Rate(delay(bytes)?),
        _ => Kind::Delay(delay(bytes)?),
    };
    let traits = bytes.arbitrary::<u8>()?;
    Ok(Spawn {
        kind,
        when: when(bytes)?,
        run: inner_ops(bytes, depth, if depth == 2 { 3 } else { 2 })?,
        end: inner_ops(bytes, depth.min(1), if depth == 2 { 2 } else { 1 })?,
        panics: traits % 12 == 11,
        hook_panics: traits / 12 % 12 == 11,
        runs: bytes.int_in_range(1..=8)?,
    })
}

/// Decodes the operations of a task or a hook. At depth 0 they schedule nothing.
fn inner_ops(bytes: &mut Unstructured<'_>, depth: u32, most: usize) -> Result<Vec<Op>> {
    let len = bytes.int_in_range(0..=2 * most)?.saturating_sub(most);
    (0..len)
        .map(|_| {
            let schedules = if depth > 0 { 9 } else { 0 };
            let choice = bytes.arbitrary::<u8>()?;
            Ok(match choice % (9 + schedules) {
                0..=2 => Op::Cancel(target(bytes)?),
                3..=6 => Op::Reset(target(bytes)?, when(bytes)?),
                7 if choice >= 200 => Op::ExpireNow(target(bytes)?),
                7 if choice >= 160 => Op::ResetAt(target(bytes)?, when(bytes)?),
                7 if choice >= 128 => Op::CancelAll(targets(bytes)?),
                7 => Op::Forget(target(bytes)?),
                8 => Op::Stop,
                _ => Op::Schedule(spawn(bytes, depth - 1)?),
            })
        })
        .collect()
}

fn target(bytes: &mut Unstructured<'_>) -> Result<Target> {
    Ok(match bytes.int_in_range(0u8..=10)? {
        0..=2 => Target::Any(index(bytes)?),
        3..=8 => Target::Waiting(index(bytes)?),
        _ => Target::Own,
    })
}

fn when(bytes: &mut Unstructured<'_>) -> Result<When> {
    Ok(match bytes.int_in_range(0u8..=9)? {
        0..=5 => When::In(delay(bytes)?),
        6..=8 => When::Beside(index(bytes)?, bytes.int_in_range(-1..=1)?),
        _ => When::Ago(delay(bytes)?),
    })
}

/// Draws a number that fits into a byte.
fn index(bytes: &mut Unstructured<'_>) -> Result<usize> {
    Ok(bytes.arbitrary::<u8>()?.into())
}

fn edge(bytes: &mut Unstructured<'_>) -> Result<Duration> {
    let unit = *bytes.choose(&edges::UNITS)?;
    let (k, in_units) = (bytes.int_in_range(0..=edges::TOP)?, bytes.ratio(1, 2)?);
    Ok(edges::edge(unit, k, bytes.int_in_range(-1..=1)?, in_units))
}

fn delay(bytes: &mut Unstructured<'_>) -> Result<Duration> {
    Ok(match bytes.int_in_range(0u8..=20)? {
        0..=1 => Duration::ZERO,
        2..=9 => Duration::from_nanos(bytes.int_in_range(0..=149)?),
        10..=11 => Duration::from_millis(bytes.int_in_range(0..=4)?),
        12..=19 => edge(bytes)?,
        _ => Duration::MAX,
    })
}

fn jump(bytes: &mut Unstructured<'_>) -> Result<Duration> {
    Ok(match bytes.int_in_range(0u8..=63)? {
        0..=8 => Duration::ZERO,
        9..=40 => Duration::from_nanos(bytes.int_in_range(0..=69)?),
        41..=49 => Duration::from_nanos(bytes.int_in_range(0..=2_999_999)?),
        50..=62 => edge(bytes)?,
        // Time stands still at the end of time.
        _ => Duration::MAX,
    })
}

fn uptime(bytes: &mut Unstructured<'_>) -> Result<Duration> {
    Ok(match bytes.int_in_range(0u8..=9)? {
        0..=1 => Duration::ZERO,
        2..=7 => edge(bytes)?.saturating_sub(Duration::from_nanos(bytes.int_in_range(0..=69)?)),
        _ => edge(bytes)?,
    })
}
