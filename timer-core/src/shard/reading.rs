//! Reading a shard without changing it.

use super::{Part, Shard};
use crate::wheel::{BucketSpan, CHUNK};

/// The cost of reading after which the lock is free for a moment. A slot costs 1, and a slot that
/// is compared with its entry costs [`COMPARISON`].
const MAX_COST: usize = 128;
/// The cost of a comparison, which is a cache miss.
pub(crate) const COMPARISON: usize = 4;
/// The cost of a block of slots of which none is read.
const BLOCK: usize = 16;

impl Shard {
    /// Replaces `spans` by the buckets that have entries, as at one moment.
    pub(crate) fn read_spans(&self, spans: &mut Vec<BucketSpan>) {
        spans.clear();
        // Nothing is allocated under the lock.
        spans.reserve(BucketSpan::MAX);
        let core = self.lock.lock();
        core.wheel.spans(spans);
        self.unlock(core);
    }

    /// Calls `each` with the slots of a bucket, at most [`CHUNK`] at a time, under the lock of the
    /// shard. `each` returns the cost, and the number of slots that may be left out before the next
    /// call.
    pub(crate) fn read_bucket(&self, number: u32, mut each: impl FnMut(Part<'_>) -> (usize, usize)) {
        let mut position = 0;
        let mut is_left = true;
        while is_left {
            let core = self.lock.lock();
            let mut cost = 0;
            let bucket = core.wheel.bucket(number);
            is_left = loop {
                let Some(bucket) = bucket.filter(|bucket| position / CHUNK < bucket.chunks()) else { break false };
                let (read, left_out) = bucket.slots_from(position).map_or((0, 0), &mut each);
                position = bucket.next_chunk(position / CHUNK + 1) * CHUNK + left_out;
                cost += BLOCK + read;
                if cost >= MAX_COST {
                    break true;
                }
            };
            self.unlock(core);
        }
    }
}
