//! The forms of figures in serde whose types belong to `timer-core`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::time::Duration;

/// A map of causes and their parts, in which later versions may have more causes.
pub(crate) mod lateness {
    use super::*;
    use crate::{DurableLateCause, DurableLateness};
    use std::collections::HashMap;

    pub(crate) fn serialize<S: Serializer>(lateness: &DurableLateness, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(DurableLateCause::ALL.map(|cause| (cause, lateness.part(cause))))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DurableLateness, D::Error> {
        let mut lateness = DurableLateness::default();
        let parts = HashMap::<DurableLateCause, Duration>::deserialize(deserializer)?;
        parts.into_iter().for_each(|(cause, part)| lateness.add(cause, part));
        Ok(lateness)
    }
}

/// The sum of a histogram, and its values with their numbers.
pub(crate) mod histogram {
    use super::*;
    use crate::Histogram;

    #[derive(Serialize, Deserialize)]
    struct Form {
        sum: Duration,
        values: Vec<(Duration, u64)>,
    }

    pub(crate) fn serialize<S: Serializer>(histogram: &Histogram, serializer: S) -> Result<S::Ok, S::Error> {
        Form { sum: histogram.sum(), values: histogram.values().collect() }.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Histogram, D::Error> {
        Form::deserialize(deserializer).map(|form| Histogram::from_values(form.values, form.sum))
    }
}

#[cfg(test)]
mod tests {
    use crate::{DurableLateCause, Stats, TopicStats};
    use std::time::Duration;

    #[test]
    fn figures_are_the_same_after_they_were_sent() {
        let mut topic = TopicStats::default();
        for micros in [7, 1_234, 98_765_432] {
            topic.lag.record(Duration::from_micros(micros));
            topic.lateness.add(DurableLateCause::PutBack, Duration::from_micros(micros));
        }
        let mut stats = Stats { commit_time: topic.lag.clone(), lateness: topic.lateness, ..Stats::default() };
        stats.topics.insert("mail".to_owned(), topic);
        let sent = serde_json::to_string(&stats).unwrap();
        assert!(sent.contains("\"put_back\":{\"secs\":98,"), "{sent}");
        assert_eq!(serde_json::from_str::<Stats>(&sent).unwrap(), stats);
    }
}
