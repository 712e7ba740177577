//! The timetable, which is the number of timeouts of each topic by the time until they are due.
//!
//! Nothing is kept for it while timeouts come and go. If somebody asks for a timetable, the thread
//! for reads counts the timeouts by the index of due times, separately for the next minute, hour
//! and day. Each count is kept for a share of the time that it covers. The share is [`MIN_SHARE`],
//! or as much as it takes for all counts to cost at most 5 ms in a minute.

use crate::store::{Micros, TopicDue};
use crate::time::micros;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The lengths of the steps of a minute, an hour and a day, and their numbers.
const RANGES: [(Duration, u32); 3] =
    [(Duration::from_secs(1), 60), (Duration::from_secs(60), 60), (Duration::from_secs(900), 96)];

/// The least share of its range for which a count is kept.
const MIN_SHARE: f64 = 0.01;

/// The time for which a count is kept, in multiples of the time that it took, if it was the only
/// one.
const MULTIPLE: f64 = 12_000.0;

/// The numbers of timeouts of each topic that are due within the next minute, hour and day, as
/// returned by [`DurableTimer::timetable`](crate::DurableTimer::timetable).
///
/// A part is `None` if it was not counted yet, if the store cannot be read or cannot count, or if
/// the count is older than the time that it covers. A topic without such a timeout is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DurableTimetable {
    /// 60 numbers for each topic, of the timeouts that are due within 1 s, 2 s and so on.
    pub minute: Option<Arc<[TopicDue]>>,
    /// 60 numbers for each topic, of the timeouts that are due within 1 min, 2 min and so on.
    pub hour: Option<Arc<[TopicDue]>>,
    /// 96 numbers for each topic, of the timeouts that are due within 15 min, 30 min and so on.
    pub day: Option<Arc<[TopicDue]>>,
}

/// The counts of a timer.
#[derive(Debug, Default)]
pub(crate) struct Counted(Mutex<[Count; 3]>);

/// The count of one range.
#[derive(Debug, Default)]
struct Count {
    /// The instant of the last count, and its result.
    last: Option<(Instant, Option<Arc<[TopicDue]>>)>,
    /// The time that the last count took.
    cost: Duration,
    /// Alive while a count waits or is in progress.
    progress: Weak<()>,
}

fn range((step, count): (Duration, u32)) -> Duration {
    step * count
}

/// Returns the share of its range for which each count is kept.
fn share(costs: [Duration; 3]) -> f64 {
    let loads = costs.iter().zip(RANGES).map(|(cost, of)| cost.as_secs_f64() / range(of).as_secs_f64());
    (MULTIPLE * loads.sum::<f64>()).clamp(MIN_SHARE, 1.0)
}

impl Counted {
    /// Returns the delays of a range.
    pub(crate) fn delays(nth: usize) -> Vec<Micros> {
        let (step, count) = RANGES[nth];
        (1..=count).map(|n| micros(step * n)).collect()
    }

    /// Sets the result of a count that began at `at`, and notes what it took.
    pub(crate) fn set(&self, nth: usize, at: Instant, due: Option<Vec<TopicDue>>) {
        let count = &mut self.lock()[nth];
        (count.last, count.cost) = (Some((at, due.map(Arc::from))), at.elapsed());
    }

    fn lock(&self) -> MutexGuard<'_, [Count; 3]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the ranges to count, each with a value that lives until the count has ended. Without
    /// `keeps`, each count is too old.
    pub(crate) fn begin(&self, keeps: bool) -> Vec<(usize, Arc<()>)> {
        let mut counts = self.lock();
        let share = if keeps { share(counts.each_ref().map(|count| count.cost)) } else { 0.0 };
        let mut begun = Vec::new();
        for (nth, (count, of)) in counts.iter_mut().zip(RANGES).enumerate() {
            let is_old = count.last.as_ref().is_none_or(|(at, _)| at.elapsed() >= range(of).mul_f64(share));
            if is_old && count.progress.strong_count() == 0 {
                let progress = Arc::new(());
                count.progress = Arc::downgrade(&progress);
                begun.push((nth, progress));
            }
        }
        begun
    }

    pub(crate) fn get(&self) -> DurableTimetable {
        let mut counts = self.lock().each_ref().map(|count| count.last.clone()).into_iter().zip(RANGES);
        let mut next = || {
            let (last, of) = counts.next()?;
            last.filter(|(at, _)| at.elapsed() <= range(of))?.1
        };
        DurableTimetable { minute: next(), hour: next(), day: next() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the CPU time of all counts per minute in milliseconds.
    fn cost(costs: [Duration; 3]) -> f64 {
        let share = share(costs);
        let each = costs.iter().zip(RANGES);
        each.map(|(cost, of)| cost.as_secs_f64() * 6e4 / (range(of).as_secs_f64() * share)).sum()
    }

    #[test]
    fn counts_take_5_ms_in_a_minute() {
        const MICRO: Duration = Duration::from_micros(1);
        assert_eq!(share([MICRO; 3]), MIN_SHARE);
        assert!(cost([40 * MICRO, 100 * MICRO, 1_000 * MICRO]) <= 5.0);
        let million = [200 * MICRO, 6_000 * MICRO, 175_000 * MICRO];
        assert!((cost(million) - 5.0).abs() < 1e-6 && share(million) < 0.09, "{}", share(million));
        assert_eq!(share([Duration::from_secs(1); 3]), 1.0);
    }

    #[test]
    fn a_range_is_counted_again_when_its_count_is_old() {
        let counted = Counted::default();
        let begin = || counted.begin(true).into_iter().unzip::<usize, Arc<()>, Vec<_>, Vec<_>>();
        let (ranges, progress) = begin();
        assert_eq!(ranges, [0, 1, 2]);
        assert!(begin().0.is_empty(), "they are in progress");
        drop(progress);
        let due = || Some(vec![TopicDue::new("t", vec![1])]);
        counted.set(0, Instant::now(), due());
        counted.set(1, Instant::now(), None);
        assert_eq!(begin().0, [2], "that one was lost");
        assert!(counted.get().minute.is_some() && counted.get().hour.is_none());
        let Some(old) = Instant::now().checked_sub(Duration::from_secs(61)) else { return };
        counted.set(0, old, due());
        assert_eq!((begin().0, counted.get().minute), (vec![0, 2], None));
    }
}
