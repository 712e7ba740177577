//! Streams of ticks and of expired items, with the names of `tokio-stream`.
//!
//! [`TimedStreamExt`] adds `timeout`, `throttle`, `debounce` and `chunks_timeout` to all streams.
//!
//! On tokio, `OnTokio` takes expired items without a wake-up by the timer's thread. It needs the
//! feature `tokio-time`.
//!
//! A stream with many due items yields after 128 of them, so it does not keep its thread from other
//! tasks. With the feature `tokio-time`, the items use up the task's cooperative budget on tokio.

mod combinators;
#[cfg(feature = "tokio-time")]
mod on_tokio;

pub use combinators::{ChunksTimeoutStream, DebounceStream, ThrottleStream, TimedStreamExt, TimeoutStream};
#[cfg(feature = "tokio-time")]
pub use on_tokio::{Expires, OnTokio};

use core::hash::{BuildHasher, Hash};
use core::pin::Pin;
use core::task::{Context, Poll};
use futures_core::Stream;
use std::hash::RandomState;
use std::time::Instant;
use timer_core::Interval;
use timer_core::delay_queue::{DelayMap, DelayQueue, Expired};

/// The number of items in a row after which a stream yields, the same as in tokio's budget.
const MAX_IN_A_ROW: u32 = 128;

/// Polls for an item. After [`MAX_IN_A_ROW`] items, or if the task has used up its budget of tokio,
/// lets other tasks run first.
fn cooperate<T>(
    in_a_row: &mut u32,
    cx: &mut Context<'_>,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<Option<T>>,
) -> Poll<Option<T>> {
    #[cfg(feature = "tokio-time")]
    let Poll::Ready(budget) = ::tokio::task::coop::poll_proceed(cx) else {
        *in_a_row = 0;
        return Poll::Pending;
    };
    if *in_a_row == MAX_IN_A_ROW {
        *in_a_row = 0;
        cx.waker().wake_by_ref();
        return Poll::Pending;
    }
    let polled = poll(cx);
    if let Poll::Ready(Some(_)) = polled {
        *in_a_row += 1;
        #[cfg(feature = "tokio-time")]
        budget.made_progress();
    } else {
        *in_a_row = 0;
    }
    polled
}

/// Defines a stream around a type with a poll function, and its conversions.
macro_rules! stream {
    ($(#[$doc:meta])* $name:ident<$($param:ident $(= $default:ty)?),*>($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<$($param $(= $default)?),*> {
            inner: $inner,
            in_a_row: u32,
        }

        impl<$($param),*> $name<$($param),*> {
            /// Creates a stream.
            pub fn new(inner: $inner) -> Self {
                Self { inner, in_a_row: 0 }
            }

            /// Returns the inner value. No tick or item is lost.
            pub fn into_inner(self) -> $inner {
                self.inner
            }
        }

        impl<$($param),*> AsRef<$inner> for $name<$($param),*> {
            fn as_ref(&self) -> &$inner {
                &self.inner
            }
        }

        impl<$($param),*> AsMut<$inner> for $name<$($param),*> {
            fn as_mut(&mut self) -> &mut $inner {
                &mut self.inner
            }
        }

        impl<$($param),*> From<$inner> for $name<$($param),*> {
            fn from(inner: $inner) -> Self {
                Self { inner, in_a_row: 0 }
            }
        }
    };
}

/// An interval that [`IntervalStream`] takes.
///
/// It is [`timer_core::Interval`] or, with the feature `tokio-time`, the `Interval` of
/// `timer_adapters::tokio::time`. The trait is sealed.
pub trait Ticks: sealed::Sealed + Unpin {
    /// The instant of a tick.
    type Instant;

    /// Polls for the next tick and returns the instant for which it was scheduled.
    fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Self::Instant>;
}

/// Seals [`Ticks`].
mod sealed {
    pub trait Sealed {}
    impl Sealed for timer_core::Interval {}
    #[cfg(feature = "tokio-time")]
    impl Sealed for crate::tokio::time::Interval {}
}

impl Ticks for Interval {
    type Instant = Instant;

    fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        self.poll_tick(cx)
    }
}

#[cfg(feature = "tokio-time")]
impl Ticks for crate::tokio::time::Interval {
    type Instant = crate::tokio::time::Instant;

    fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Self::Instant> {
        self.poll_tick(cx)
    }
}

stream! {
    /// A stream of the ticks of an interval, which yields the instants of that interval. It never
    /// ends.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::StreamExt;
    /// use timer_adapters::stream::IntervalStream;
    /// use timer_core::time::{Duration, interval};
    ///
    /// # futures::executor::block_on(async {
    /// let ticks = IntervalStream::new(interval(Duration::from_millis(1)));
    /// assert_eq!(ticks.take(3).count().await, 3);
    /// # });
    /// ```
    IntervalStream<I = Interval>(I)
}

impl<I: Ticks> Stream for IntervalStream<I> {
    type Item = I::Instant;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<I::Instant>> {
        let Self { inner, in_a_row } = &mut *self;
        cooperate(in_a_row, cx, |cx| inner.poll_tick(cx).map(Some))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, None)
    }
}

stream! {
    /// A stream of the items of a [`DelayQueue`] whose deadlines have passed.
    ///
    /// It ends when the queue is empty, and goes on if an item is inserted after that.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::StreamExt;
    /// use std::time::Duration;
    /// use timer_adapters::stream::DelayQueueStream;
    /// use timer_core::Timer;
    /// use timer_core::delay_queue::DelayQueue;
    ///
    /// # futures::executor::block_on(async {
    /// let mut queue = DelayQueue::new(&Timer::new());
    /// queue.insert("second", Duration::from_millis(200));
    /// queue.insert("first", Duration::from_millis(1));
    /// let items: Vec<_> = DelayQueueStream::new(queue).map(|item| item.into_inner()).collect().await;
    /// assert_eq!(items, ["first", "second"]);
    /// # });
    /// ```
    DelayQueueStream<T>(DelayQueue<T>)
}

impl<T> Stream for DelayQueueStream<T> {
    type Item = Expired<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        let Self { inner, in_a_row } = &mut *self;
        cooperate(in_a_row, cx, |cx| inner.poll_expired(cx))
    }
}

stream! {
    /// A stream of the entries of a [`DelayMap`] whose deadlines have passed.
    ///
    /// It ends when the map is empty, and goes on if an entry is inserted after that.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::StreamExt;
    /// use std::time::Duration;
    /// use timer_adapters::stream::DelayMapStream;
    /// use timer_core::Timer;
    /// use timer_core::delay_queue::DelayMap;
    ///
    /// # futures::executor::block_on(async {
    /// let mut map = DelayMap::new(&Timer::new());
    /// map.insert("key", 1, Duration::from_millis(1));
    /// let entry = DelayMapStream::new(map).next().await.unwrap();
    /// assert_eq!((entry.key(), entry.into_inner()), ("key", 1));
    /// # });
    /// ```
    DelayMapStream<K, V, S = RandomState>(DelayMap<K, V, S>)
}

impl<K: Eq + Hash, V, S: BuildHasher> Stream for DelayMapStream<K, V, S> {
    type Item = Expired<V, K>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Expired<V, K>>> {
        let Self { inner, in_a_row } = &mut *self;
        cooperate(in_a_row, cx, |cx| inner.poll_expired(cx))
    }
}
