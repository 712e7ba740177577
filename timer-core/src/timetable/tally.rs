//! The reading of the wheels for a timetable.
//!
//! Nothing is kept for a timetable while timeouts come and go. The reader takes the numbers of
//! values of all buckets of a shard under one lock. If all ticks of a bucket belong to one
//! [`cell`], its number is enough. The ticks of other buckets are read, a few chunks under each
//! lock, so no lock is held for long.
//!
//! A timeout that was moved to a later deadline stays under its former tick until the turn of that
//! tick. Its deadline is in its entry, which is not in the cache. The reader compares slots with
//! their entries, and corrects the cells.
//!
//! *Samples.* The reader reads all ticks and compares all slots of the buckets that are due first.
//! In later buckets it chooses one in n [groups](GROUP) of slots, each of which counts n times. The
//! step n grows in proportion to the number of timeouts that are due before. So the error of a
//! number is a share of that number, and the cost grows with the logarithm of the number of
//! timeouts. Only timeouts that were moved cause an error of the comparison, so it takes a larger
//! sample once it has met many of them. The lists of a hashed wheel are in no order, so all of
//! their ticks are read. A round of that wheel reads as much.

use super::{DAY, HOUR, MINUTE, QUARTER, SECOND, Timetable};
use crate::deadline::Nanos;
use crate::resolution::Resolution;
use crate::shard::{COMPARISON, Part, Shard};
use crate::wheel::BucketSpan;

/// The length of a cell in the next minute.
const SHORT: Nanos = 5_000_000;
/// The cells of one second.
const PER_SECOND: usize = (SECOND / SHORT) as usize;

/// The last cells of the next minute, hour and day.
const LAST_OF_MINUTE: usize = 60 * PER_SECOND;
const LAST_OF_HOUR: usize = LAST_OF_MINUTE + 59;
const LAST_OF_DAY: usize = LAST_OF_HOUR + 92;
/// The cell of all later timeouts.
const LATER: usize = LAST_OF_DAY + 1;

/// The number of timeouts up to which all ticks are read.
const READ: u64 = 1 << 15;
/// The number of timeouts up to which all are compared with their entries, if none was moved.
const COMPARED: u64 = 1 << 13;
/// The largest value of that number. Each timeout that was moved adds [`MOVED`] to it.
const MAX_COMPARED: u64 = 1 << 15;
const MOVED: u64 = 8;
/// The number of consecutive slots that are read together. Their entries are often next to each
/// other in memory as well.
const GROUP: usize = 32;

/// Returns the cell of the timeouts that run after `delay`. Cell 0 has the ones that are due. Each
/// further cell ends with a multiple of its length, which belongs to it.
#[inline]
fn cell(delay: Nanos) -> usize {
    if delay <= MINUTE {
        delay.div_ceil(SHORT) as usize
    } else if delay <= HOUR {
        LAST_OF_MINUTE + delay.div_ceil(MINUTE) as usize - 1
    } else if delay <= DAY {
        LAST_OF_HOUR + delay.div_ceil(QUARTER) as usize - 4
    } else {
        LATER
    }
}

/// A choice of every n-th group of slots, evenly over all chunks that are read.
struct Sample {
    /// The number of timeouts up to which all groups are chosen.
    all: u64,
    /// One in this many groups is chosen.
    step: usize,
    /// The number of groups before the next one that is chosen.
    skip: usize,
}

impl Sample {
    fn new(all: u64) -> Self {
        Sample { all, step: 1, skip: 0 }
    }

    /// Begins a bucket of timeouts that are due after `count` others.
    fn begin(&mut self, count: u64) {
        self.step = 1 + (count / self.all) as usize;
        self.skip %= self.step;
    }

    /// Returns the groups among the next slots that are chosen.
    fn groups<'a>(&mut self, slots: &Part<'a>) -> impl Iterator<Item = Part<'a>> + use<'a> {
        let groups = slots.len().div_ceil(GROUP);
        let first = self.skip;
        let chosen = groups.saturating_sub(first).div_ceil(self.step);
        self.skip = first + chosen * self.step - groups;
        slots.groups(GROUP).skip(first).step_by(self.step)
    }
}

/// The cells of a timetable while the wheels are being read.
pub(crate) struct Tally {
    now: Nanos,
    resolution: Resolution,
    /// The number of pending timeouts of all shards.
    pending: u64,
    /// An estimate may leave a number below zero.
    cells: Box<[i64]>,
    read: Sample,
    compared: Sample,
}

impl Tally {
    /// Creates an empty tally of a timer with about `pending` timeouts.
    pub(crate) fn new(now: Nanos, resolution: Resolution, pending: u64) -> Self {
        let read = Sample::new(READ);
        let compared = Sample::new(COMPARED);
        Tally { now, resolution, pending, cells: vec![0; LATER + 1].into(), read, compared }
    }

    #[inline]
    fn cell_of(&self, tick: u64) -> usize {
        cell(self.resolution.start_of(tick).saturating_sub(self.now))
    }

    /// Adds the timeouts of a shard. `spans` is a buffer.
    pub(crate) fn add(&mut self, shard: &Shard, spans: &mut Vec<BucketSpan>) {
        shard.read_spans(spans);
        let all = spans.iter().map(|span| u64::from(span.values)).sum::<u64>().max(1);
        // As if all shards had the same spread.
        let pending = self.pending.max(all);
        let of_timer = |count: u64| count * pending / all;
        let mut before = 0;
        for span in spans.iter() {
            let first = self.cell_of(span.first);
            let last = self.cell_of(span.last);
            let size = u64::from(span.values);
            let mut left = i64::from(span.values);
            // A timeout that is moved from there to later changes no number.
            if first < LATER {
                // The lists of a hashed wheel are in no order.
                let is_list = (first, last) == (0, LATER);
                self.read.begin(if is_list { 0 } else { of_timer(before) });
                self.compared.begin(if is_list { pending } else { of_timer(before + size) });
                shard.read_bucket(span.bucket, |slots| {
                    let read = if first < last { self.read(&slots) } else { 0 };
                    left -= read * self.read.step as i64;
                    let compared = self.compare(&slots);
                    (read as usize + compared * COMPARISON, self.skip(first < last))
                });
            }
            // The numbers of whole buckets are known.
            self.cells[last] += left;
            before += size;
        }
    }

    /// Passes the groups of which none is chosen, and returns the number of their slots.
    fn skip(&mut self, is_read: bool) -> usize {
        let groups = if is_read { self.read.skip.min(self.compared.skip) } else { self.compared.skip };
        self.compared.skip -= groups;
        self.read.skip -= if is_read { groups } else { 0 };
        groups * GROUP
    }

    /// Reads some groups of slots, and returns the number of timeouts in them.
    fn read(&mut self, slots: &Part<'_>) -> i64 {
        let mut count = 0;
        let step = self.read.step as i64;
        for (tick, _) in self.read.groups(slots).flat_map(|group| group.iter()) {
            let cell = self.cell_of(tick);
            self.cells[cell] += step;
            count += 1;
        }
        count
    }

    /// Compares some groups of slots with their entries, and returns their number of slots.
    fn compare(&mut self, slots: &Part<'_>) -> usize {
        let mut count = 0;
        let step = self.compared.step as i64;
        for group in self.compared.groups(slots) {
            count += group.len();
            group.iter().for_each(|(_, timeout)| timeout.prefetch());
            for (tick, timeout) in group.iter() {
                let state = timeout.state();
                let linked = self.cell_of(tick);
                let deadline = state.deadline();
                let actual = match state.is_waiting() {
                    true if deadline.is_due(self.now) => continue,
                    true => Some(self.cell_of(self.resolution.tick_of(deadline))),
                    // It has been cancelled and is about to leave the wheel.
                    false => None,
                };
                if actual != Some(linked) {
                    self.compared.all = (self.compared.all + MOVED).min(MAX_COMPARED);
                    self.cells[linked] -= step;
                    if let Some(actual) = actual {
                        self.cells[actual] += step;
                    }
                }
            }
        }
        count
    }

    /// Returns the timetable, if each timeout will take `expiry_time`.
    pub(crate) fn finish(self, expiry_time: Nanos) -> Timetable {
        let (short, long) = self.cells.split_at(LAST_OF_MINUTE + 1);
        let (due, seconds) = short.split_at(1);
        let steps = [due].into_iter().chain(seconds.chunks(PER_SECOND)).chain(long.chunks(1));
        let mut sum = 0;
        let mut highest = 0;
        let up_to = |step: &[i64]| {
            sum += step.iter().sum::<i64>();
            highest = highest.max(sum);
            highest as u64
        };
        let counts = steps.map(up_to).collect();
        let mut backlog = 0_u64;
        let mut expected_lag = 0;
        for count in short {
            backlog = backlog.saturating_add((*count).max(0) as u64 * expiry_time);
            expected_lag = expected_lag.max(backlog);
            backlog = backlog.saturating_sub(SHORT);
        }
        Timetable { taken_at: self.now, counts, expected_lag }
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn cells_and_steps_end_together() {
        let resolution = Resolution::Exact(0);
        let steps = (0..=60).map(|n| n * SECOND);
        let steps = steps.chain((2..=60).map(|n| n * MINUTE)).chain((5..=96).map(|n| n * QUARTER));
        for (step, delay) in steps.enumerate() {
            let mut tally = Tally::new(0, resolution, 1);
            [delay, delay + 1].map(cell).into_iter().for_each(|cell| tally.cells[cell] += 1);
            let counts = tally.finish(0).counts;
            assert_eq!((counts.len(), counts.iter().position(|count| *count == 1)), (213, Some(step)), "{delay}");
            assert_eq!(counts[step + 1], 2, "{delay}");
        }
        assert_eq!((cell(DAY), cell(DAY + 1), cell(Nanos::MAX)), (LAST_OF_DAY, LATER, LATER));
    }

    #[test]
    fn a_crowd_waits_for_the_one_before() {
        let lag = |crowds: &[(Nanos, i64)]| {
            let mut tally = Tally::new(0, Resolution::Exact(0), 1);
            crowds.iter().for_each(|(delay, count)| tally.cells[cell(*delay)] += count);
            tally.finish(200).expected_lag
        };
        assert_eq!(lag(&[(SECOND, 100_000)]), 20_000_000);
        // The first crowd has 5 ms before the second one.
        assert_eq!(lag(&[(SECOND, 100_000), (SECOND + SHORT, 50_000)]), 25_000_000);
        assert_eq!(lag(&[(SECOND, 100_000), (2 * SECOND, 50_000)]), 20_000_000);
        assert_eq!(lag(&[(2 * MINUTE, 100_000)]), 0);
    }

    #[test]
    fn numbers_between_two_steps_are_interpolated() {
        let mut tally = Tally::new(0, Resolution::Exact(0), 1);
        tally.cells[cell(90 * SECOND)] += 600;
        let timetable = tally.finish(0);
        let due = |seconds| timetable.due_within(Duration::from_secs(seconds));
        assert_eq!([due(60), due(61), due(90), due(120)], [0, 10, 300, 600]);
        assert_eq!(timetable.due_within(Duration::MAX), 600);
    }
}
