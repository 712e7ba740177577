//! The timetable, which is the number of timeouts of each topic by the time until they are due.
//!
//! Nothing is kept for it while timeouts come and go. If somebody asks for a timetable, the thread
//! for reads counts the timeouts by the index of due times, separately for the next minute, hour
//! and day. Each count is kept for [`MULTIPLE`] times as long as it took, so all three take at most
//! 5 ms in a minute, and a count that takes 0.1 ms is kept for four seconds.

use crate::store::{Micros, TopicDue};
use crate::time::micros;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The lengths of the steps of a minute, an hour and a day, and their numbers.
const RANGES: [(Duration, u32); 3] =
    [(Duration::from_secs(1), 60), (Duration::from_secs(60), 60), (Duration::from_secs(900), 96)];

/// The time for which a count is kept, in multiples of the time that it took.
const MULTIPLE: u32 = 36_000;

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

impl Counted {
    /// Returns the delays of a range.
    pub(crate) fn delays(nth: usize) -> Vec<Micros> {
        let (step, count) = RANGES[nth];
        (1..=count).map(|n| micros(step * n)).collect()
    }

    /// Sets the result of a count that began at `at`, and notes what it took.
    pub(crate) fn set(&self, nth: usize, at: Instant, due: Option<Vec<TopicDue>>) {
        let count = &mut self.lock()[nth];
        count.last = Some((at, due.map(Arc::from)));
        count.cost = at.elapsed();
    }

    fn lock(&self) -> MutexGuard<'_, [Count; 3]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the ranges to count, each with a value that lives until the count has ended. Without
    /// `keeps`, each count is too old.
    pub(crate) fn begin(&self, keeps: bool) -> Vec<(usize, Arc<()>)> {
        let mut begun = Vec::new();
        for (nth, (count, of)) in self.lock().iter_mut().zip(RANGES).enumerate() {
            let kept = if keeps { range(of).min(count.cost * MULTIPLE) } else { Duration::ZERO };
            let is_old = count.last.as_ref().is_none_or(|(at, _)| at.elapsed() >= kept);
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

    #[test]
    fn a_range_is_counted_again_when_its_count_is_old() {
        let counted = Counted::default();
        let begin = || counted.begin(true).into_iter().unzip::<usize, Arc<()>, Vec<_>, Vec<_>>();
        let (ranges, progress) = begin();
        assert_eq!(ranges, [0, 1, 2]);
        assert!(begin().0.is_empty(), "they are in progress");
        drop(progress);
        let due = || Some(vec![TopicDue::new("t", vec![1])]);
        let set = |nth, age, cost, due| {
            counted.set(nth, Instant::now() - age, due);
            counted.lock()[nth].cost = cost;
        };
        let [milli, minute] = [Duration::from_millis(1), Duration::from_secs(60)];
        set(0, Duration::ZERO, milli, due());
        set(1, Duration::ZERO, milli, None);
        assert_eq!(begin().0, [2], "that one was lost");
        assert!(counted.get().minute.is_some() && counted.get().hour.is_none());
        set(1, minute / 2, milli, due());
        set(2, minute / 2, milli / 2, due());
        assert_eq!(begin().0, [2], "1 ms in 36 s, three times, is 5 ms in a minute");
        set(0, minute, 1_000 * milli, due());
        assert_eq!((begin().0, counted.get().minute), (vec![0, 2], None), "it has passed");
    }
}
