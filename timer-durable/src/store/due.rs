//! The numbers of timeouts that are due within some delays.

use crate::time::Micros;
use std::collections::BTreeMap;

/// The numbers of timeouts of a topic that are due within some delays.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TopicDue {
    /// The topic.
    pub topic: String,
    /// One number for each of the delays. Each number contains the ones before.
    pub counts: Vec<u64>,
}

impl TopicDue {
    /// Returns the numbers of a topic.
    #[must_use]
    pub fn new(topic: impl Into<String>, counts: Vec<u64>) -> Self {
        Self { topic: topic.into(), counts }
    }
}

/// Counts timeouts by topic and by the first delay within which they are due.
///
/// # Examples
///
/// A store counts its rows for [`Reader::due_within`](crate::store::Reader::due_within):
///
/// ```
/// use timer_durable::store::DueCounts;
///
/// let mut counts = DueCounts::new(&[1_000_000, 60_000_000]);
/// for delay in [0, 500_000, 2_000_000, 90_000_000] {
///     counts.add("order.close", delay);
/// }
/// assert_eq!(counts.finish()[0].counts, [2, 3]);
/// ```
#[derive(Clone, Debug)]
pub struct DueCounts<'d> {
    delays: &'d [Micros],
    topics: BTreeMap<String, Vec<u64>>,
}

impl<'d> DueCounts<'d> {
    /// Returns no counts yet. The delays ascend, as those of
    /// [`Reader::due_within`](crate::store::Reader::due_within) do.
    #[must_use]
    pub fn new(delays: &'d [Micros]) -> Self {
        Self { delays, topics: BTreeMap::new() }
    }

    /// Counts a timeout that is due after `delay`, unless that is after the last delay.
    pub fn add(&mut self, topic: &str, delay: Micros) {
        self.add_step(topic, self.delays.partition_point(|step| *step < delay), 1);
    }

    /// Adds timeouts that are due within the delay with this index, and not within those before.
    pub fn add_step(&mut self, topic: &str, step: usize, count: u64) {
        if step >= self.delays.len() {
            return;
        }
        if !self.topics.contains_key(topic) {
            self.topics.insert(topic.to_owned(), vec![0; self.delays.len()]);
        }
        if let Some(counts) = self.topics.get_mut(topic) {
            counts[step] += count;
        }
    }

    /// Returns the numbers of the topics that were counted, in the order of their names.
    #[must_use]
    pub fn finish(self) -> Vec<TopicDue> {
        let sum = |(topic, mut counts): (String, Vec<u64>)| {
            (1..counts.len()).for_each(|step| counts[step] += counts[step - 1]);
            TopicDue::new(topic, counts)
        };
        self.topics.into_iter().map(sum).collect()
    }
}
