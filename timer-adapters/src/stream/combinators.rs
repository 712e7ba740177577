//! Combinators that add time to a stream.

use super::MAX_IN_A_ROW;
use core::fmt;
use core::future::Future;
use core::mem::take;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use futures_core::Stream;
use pin_project_lite::pin_project;
use std::time::Duration;
use timer_core::{Elapsed, Sleep, Timer};

/// Methods of all streams that add time to them. Each stream makes one sleep.
///
/// # Examples
///
/// ```
/// use futures::{StreamExt, stream};
/// use std::time::Duration;
/// use timer_adapters::stream::TimedStreamExt;
/// use timer_core::Timer;
///
/// # futures::executor::block_on(async {
/// let timer = Timer::new();
/// let paced = stream::iter(1..=3).throttle(&timer, Duration::from_millis(1));
/// let chunks = paced.chunks_timeout(&timer, 2, Duration::from_secs(5));
/// assert_eq!(chunks.collect::<Vec<_>>().await, [vec![1, 2], vec![3]]);
/// # });
/// ```
pub trait TimedStreamExt: Stream + Sized {
    /// Yields an [`Elapsed`] if the wait for an item lasts longer than `limit`, and then waits on.
    ///
    /// The time counts from the poll that asks for the item.
    fn timeout(self, timer: &Timer, limit: Duration) -> TimeoutStream<Self> {
        TimeoutStream { stream: self, sleep: timer.sleep(limit), limit, wait: Wait::Idle }
    }

    /// Yields an item at most once per `pause`. The stream is not polled during the pause.
    fn throttle(self, timer: &Timer, pause: Duration) -> ThrottleStream<Self> {
        ThrottleStream { stream: self, sleep: timer.sleep(Duration::ZERO), pause }
    }

    /// Yields the last item once no other one has followed for `quiet`, or at the end of the
    /// stream. Drops the items before it.
    fn debounce(self, timer: &Timer, quiet: Duration) -> DebounceStream<Self> {
        DebounceStream { stream: Some(self), sleep: timer.sleep(quiet), quiet, last: None }
    }

    /// Yields the items in vectors of `max`, and a shorter one `limit` after its first item or at
    /// the end of the stream. A `max` of zero is 1.
    fn chunks_timeout(self, timer: &Timer, max: usize, limit: Duration) -> ChunksTimeoutStream<Self> {
        ChunksTimeoutStream { stream: Some(self), sleep: timer.sleep(limit), limit, max, chunk: Vec::new() }
    }
}

impl<S: Stream> TimedStreamExt for S {}

/// The wait of a [`TimeoutStream`] for an item.
#[derive(Debug, PartialEq, Eq)]
enum Wait {
    /// No poll waits.
    Idle,
    /// The sleep ends at the limit.
    Limited,
    /// The limit has passed.
    Late,
}

pin_project! {
    /// The stream of [`TimedStreamExt::timeout`].
    #[derive(Debug)]
    #[must_use = "streams do nothing unless polled"]
    pub struct TimeoutStream<S> {
        #[pin]
        stream: S,
        sleep: Sleep,
        limit: Duration,
        wait: Wait,
    }
}

impl<S: Stream> Stream for TimeoutStream<S> {
    type Item = Result<S::Item, Elapsed>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.project();
        if let Poll::Ready(item) = this.stream.poll_next(cx) {
            *this.wait = Wait::Idle;
            return Poll::Ready(item.map(Ok));
        }
        match this.wait {
            Wait::Late => return Poll::Pending,
            Wait::Idle => this.sleep.reset_after(*this.limit),
            Wait::Limited => {}
        }
        *this.wait = Wait::Limited;
        ready!(Pin::new(this.sleep).poll(cx));
        *this.wait = Wait::Late;
        Poll::Ready(Some(Err(Elapsed::new())))
    }
}

pin_project! {
    /// The stream of [`TimedStreamExt::throttle`].
    #[derive(Debug)]
    #[must_use = "streams do nothing unless polled"]
    pub struct ThrottleStream<S> {
        #[pin]
        stream: S,
        // Ends with the pause after the last item.
        sleep: Sleep,
        pause: Duration,
    }
}

impl<S: Stream> Stream for ThrottleStream<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = self.project();
        ready!(Pin::new(&mut *this.sleep).poll(cx));
        let item = ready!(this.stream.poll_next(cx));
        if item.is_some() {
            this.sleep.reset_after(*this.pause);
        }
        Poll::Ready(item)
    }
}

/// Gives each item of a stream that is ready to `receive`, until that returns `false` or the stream
/// waits. Drops a stream that has ended. Returns `false` if the caller has to yield, because many
/// items were ready.
fn receive_all<S: Stream>(
    mut stream: Pin<&mut Option<S>>,
    cx: &mut Context<'_>,
    mut receive: impl FnMut(S::Item) -> bool,
) -> bool {
    for _ in 0..MAX_IN_A_ROW {
        let Some(open) = stream.as_mut().as_pin_mut() else { return true };
        match open.poll_next(cx) {
            Poll::Ready(Some(item)) => {
                if !receive(item) {
                    return true;
                }
            }
            Poll::Ready(None) => stream.set(None),
            Poll::Pending => return true,
        }
    }
    cx.waker().wake_by_ref();
    false
}

pin_project! {
    /// The stream of [`TimedStreamExt::debounce`].
    #[must_use = "streams do nothing unless polled"]
    pub struct DebounceStream<S: Stream> {
        // `None` once it has ended.
        #[pin]
        stream: Option<S>,
        sleep: Sleep,
        quiet: Duration,
        last: Option<S::Item>,
    }
}

impl<S: Stream> Stream for DebounceStream<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let mut this = self.project();
        let is_quiet = receive_all(this.stream.as_mut(), cx, |item| {
            *this.last = Some(item);
            this.sleep.reset_after(*this.quiet);
            true
        });
        if is_quiet && this.stream.is_none() {
            return Poll::Ready(this.last.take());
        }
        if !is_quiet || this.last.is_none() {
            return Poll::Pending;
        }
        ready!(Pin::new(this.sleep).poll(cx));
        Poll::Ready(this.last.take())
    }
}

pin_project! {
    /// The stream of [`TimedStreamExt::chunks_timeout`].
    #[must_use = "streams do nothing unless polled"]
    pub struct ChunksTimeoutStream<S: Stream> {
        // `None` once it has ended.
        #[pin]
        stream: Option<S>,
        sleep: Sleep,
        limit: Duration,
        max: usize,
        chunk: Vec<S::Item>,
    }
}

impl<S: Stream> Stream for ChunksTimeoutStream<S> {
    type Item = Vec<S::Item>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Vec<S::Item>>> {
        let mut this = self.project();
        let is_quiet = receive_all(this.stream.as_mut(), cx, |item| {
            if this.chunk.is_empty() {
                this.sleep.reset_after(*this.limit);
            }
            this.chunk.push(item);
            this.chunk.len() < *this.max
        });
        if this.chunk.is_empty() {
            return if is_quiet && this.stream.is_none() { Poll::Ready(None) } else { Poll::Pending };
        }
        if this.chunk.len() < *this.max && this.stream.is_some() {
            ready!(Pin::new(this.sleep).poll(cx));
        }
        Poll::Ready(Some(take(this.chunk)))
    }
}

impl<S: Stream> fmt::Debug for DebounceStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DebounceStream").field("sleep", &self.sleep).finish_non_exhaustive()
    }
}

impl<S: Stream> fmt::Debug for ChunksTimeoutStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunksTimeoutStream").field("sleep", &self.sleep).finish_non_exhaustive()
    }
}
