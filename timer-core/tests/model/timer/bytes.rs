//! Cases made of bytes, which a fuzzer or proptest chooses. Any bytes are a case, which ends when
//! they are used up.
//!
//! Each choice takes as few bytes as it needs, so that a changed byte changes one operation and not
//! the whole case.

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
        let op = if bytes.ratio(1, 5)? { op_of_years } else { op };
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
    Ok(match bytes.int_in_range(0u8..=41)? {
        0..=11 => Op::Schedule(spawn(bytes, 2)?),
        12..=15 => Op::Cancel(target(bytes)?),
        16..=20 => Op::Reset(target(bytes)?, when(bytes)?),
        21 => Op::Forget(target(bytes)?),
        22 => Op::Stop,
        23..=27 => Op::Advance(jump(bytes)?),
        28..=31 => Op::AdvanceToNext(bytes.int_in_range(-1..=1)?),
        32..=34 => Op::RunQueued(index(bytes)?),
        35 => Op::DropQueued(index(bytes)?),
        36 => Op::ExpireNow(target(bytes)?),
        37 => Op::ResetAt(target(bytes)?, when(bytes)?),
        38 => Op::ResetPeriod(target(bytes)?, delay(bytes)?),
        39 => Op::CancelAll(targets(bytes)?),
        _ => {
            let len = bytes.int_in_range(0..=5)?;
            let spawns = (0..len).map(|_| Ok(Spawn { kind: Kind::Once, ..spawn(bytes, 1)? }));
            Op::ScheduleAll(spawns.collect::<Result<_>>()?)
        }
    })
}

/// Decodes an outer operation of a case that lasts for years. Timeouts have delays of all
/// magnitudes, and many are moved before they run. Time hops from expiry to expiry, and jumps over
/// up to two months.
fn op_of_years(bytes: &mut Unstructured<'_>) -> Result<Op> {
    Ok(match bytes.int_in_range(0u8..=21)? {
        0..=5 => {
            let run = if bytes.ratio(1, 2)? { vec![Op::Schedule(far_spawn(bytes, Vec::new())?)] } else { Vec::new() };
            Op::Schedule(far_spawn(bytes, run)?)
        }
        6 => Op::Cancel(target(bytes)?),
        7..=10 => Op::Reset(target(bytes)?, When::In(magnitude(bytes, 10, 57)?)),
        11..=18 => Op::AdvanceToNext(0),
        19..=20 => Op::Advance(magnitude(bytes, 10, 40)?),
        _ => Op::Advance(magnitude(bytes, 41, 51)?),
    })
}

fn far_spawn(bytes: &mut Unstructured<'_>, run: Vec<Op>) -> Result<Spawn> {
    let kind = match bytes.int_in_range(0u8..=7)? {
        0..=5 => Kind::Once,
        6 => Kind::Rate(magnitude(bytes, 44, 53)?),
        _ => Kind::Delay(magnitude(bytes, 44, 53)?),
    };
    let when = When::In(magnitude(bytes, 10, 57)?);
    let runs = bytes.int_in_range(1..=8)?;
    Ok(Spawn { kind, when, run, end: Vec::new(), panics: false, hook_panics: false, runs })
}

/// Draws a duration from 2^`least` ns to below 2^(`most` + 1) ns, every magnitude with the same
/// probability.
fn magnitude(bytes: &mut Unstructured<'_>, least: u32, most: u32) -> Result<Duration> {
    let bit = bytes.int_in_range(least..=most)?;
    Ok(edges::nanos((1u128 << bit) + (u128::from(bytes.arbitrary::<u16>()?) << bit >> 16)))
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
            let most = if depth > 0 { 23 } else { 11 };
            Ok(match bytes.int_in_range(0u8..=most)? {
                0..=2 => Op::Cancel(target(bytes)?),
                3..=5 => Op::Reset(target(bytes)?, when(bytes)?),
                6 => Op::ResetPeriod(target(bytes)?, delay(bytes)?),
                7 => Op::Forget(target(bytes)?),
                8 => Op::Stop,
                9 => Op::ExpireNow(target(bytes)?),
                10 => Op::ResetAt(target(bytes)?, when(bytes)?),
                11 => Op::CancelAll(targets(bytes)?),
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
    let k = bytes.int_in_range(0..=edges::TOP)?;
    let in_units = bytes.ratio(1, 2)?;
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
