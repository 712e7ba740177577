//! moka's cache, in which each entry has a lifetime of its own.

use crate::peer::TtlMap;
use moka::notification::RemovalCause;
use moka::sync::Cache;
use std::collections::hash_map::RandomState;
use std::sync::mpsc::{self, Receiver};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// A value of moka with the lifetime that a write gives it, or `None` if the write keeps the former
/// one.
#[derive(Clone, Copy)]
struct Timed {
    value: u64,
    lifetime: Option<Duration>,
}

/// Reads the lifetime of an entry in its value.
struct ByValue;

impl moka::Expiry<u64, Timed> for ByValue {
    fn expire_after_create(&self, _: &u64, value: &Timed, _: Instant) -> Option<Duration> {
        value.lifetime
    }

    fn expire_after_update(&self, _: &u64, value: &Timed, _: Instant, left: Option<Duration>) -> Option<Duration> {
        value.lifetime.or(left)
    }
}

/// moka's cache, which hands out expired entries by a function that it calls.
pub(crate) struct Moka {
    cache: Cache<u64, Timed, RandomState>,
    expired: Receiver<u64>,
}

impl TtlMap for Moka {
    const NO_POLL: Option<&'static str> = Some("no future tells that an entry has expired");

    fn new() -> Self {
        let (sender, expired) = mpsc::channel();
        let on_eviction = move |_, value: Timed, cause| {
            if cause == RemovalCause::Expired {
                // The receiver is gone if the cache is dropped.
                _ = sender.send(value.value);
            }
        };
        let builder = Cache::builder().expire_after(ByValue).eviction_listener(on_eviction);
        Self { cache: builder.build_with_hasher(RandomState::new()), expired }
    }

    #[inline]
    fn get(&mut self, key: u64) -> Option<u64> {
        self.cache.get(&key).map(|timed| timed.value)
    }

    #[inline]
    fn set(&mut self, key: u64, value: u64, lifetime: Duration) {
        self.cache.insert(key, Timed { value, lifetime: Some(lifetime) });
    }

    #[inline]
    fn change(&mut self, key: u64, by: impl FnOnce(&mut u64)) -> bool {
        let Some(Timed { mut value, .. }) = self.cache.get(&key) else { return false };
        by(&mut value);
        self.cache.insert(key, Timed { value, lifetime: None });
        true
    }

    #[inline]
    fn remove(&mut self, key: u64) {
        self.cache.invalidate(&key);
    }

    #[inline]
    fn maintain(&mut self) {
        self.cache.run_pending_tasks();
    }

    #[inline]
    fn try_next(&mut self, _: &mut Context<'_>) -> Option<u64> {
        self.expired.try_recv().ok()
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<Option<u64>> {
        Poll::Pending
    }
}
