//! A stream of expired items that waits by a sleep of tokio.

use super::cooperate;
use ::tokio::time::{self, Sleep};
use core::fmt;
use core::future::Future;
use core::hash::{BuildHasher, Hash};
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use futures_core::Stream;
use std::time::Instant;
use timer_core::delay_queue::{DelayMap, DelayQueue, Expired};

/// A delay queue that [`OnTokio`] takes. It is a [`DelayQueue`] or a [`DelayMap`]. The trait is
/// sealed.
pub trait Expires: sealed::Sealed + Unpin {
    /// An item that has left the queue.
    type Item;

    /// Returns an item that is due, or `None` if there is none.
    fn try_next(&mut self) -> Option<Self::Item>;

    /// Returns the instant at which an item may be due, or `None` if the queue is empty.
    fn next_deadline(&self) -> Option<Instant>;
}

/// Seals [`Expires`].
mod sealed {
    use super::{DelayMap, DelayQueue};

    pub trait Sealed {}
    impl<T> Sealed for DelayQueue<T> {}
    impl<K, V, S> Sealed for DelayMap<K, V, S> {}
}

impl<T> Expires for DelayQueue<T> {
    type Item = Expired<T>;

    fn try_next(&mut self) -> Option<Expired<T>> {
        self.try_next()
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.next_deadline()
    }
}

impl<K: Eq + Hash, V, S: BuildHasher> Expires for DelayMap<K, V, S> {
    type Item = Expired<V, K>;

    fn try_next(&mut self) -> Option<Expired<V, K>> {
        self.try_next()
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.next_deadline()
    }
}

/// A stream of the items of a [`DelayQueue`] or a [`DelayMap`] whose deadlines have passed, which
/// waits by a sleep of tokio.
///
/// The other streams wait by a sleep of their timer, whose thread then wakes the runtime's. This
/// one saves that wake-up. In return, an item may come out a millisecond later, because tokio
/// rounds deadlines up to its own ticks. The sleep takes about 120 bytes of heap.
///
/// The stream ends when the queue is empty, and goes on if an item is inserted after that. Poll it
/// again after each insertion and move, as a loop of `select!` does, because an earlier deadline
/// does not wake the task.
///
/// # Panics
///
/// A poll panics outside of a runtime of tokio, or if that has no clock.
///
/// # Examples
///
/// Sessions in the task that serves them:
///
/// ```
/// use futures::StreamExt;
/// use std::time::Duration;
/// use timer_adapters::stream::OnTokio;
/// use timer_core::delay_queue::DelayMap;
///
/// const IDLE: Duration = Duration::from_millis(2);
///
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() {
///     let (requested, mut requests) = tokio::sync::mpsc::channel(16);
///     requested.send("alice").await.unwrap();
///     let sessions: DelayMap<&str, ()> = DelayMap::default();
///     let mut sessions = OnTokio::new(sessions);
///     loop {
///         tokio::select! {
///             Some(user) = requests.recv() => drop(sessions.as_mut().insert(user, (), IDLE)),
///             Some(session) = sessions.next() => {
///                 assert_eq!(session.key(), "alice");
///                 break;
///             }
///         }
///     }
/// }
/// ```
pub struct OnTokio<Q> {
    inner: Q,
    in_a_row: u32,
    /// `None` until a poll has to wait.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl<Q: Expires> OnTokio<Q> {
    /// Creates a stream.
    pub fn new(inner: Q) -> Self {
        Self { inner, in_a_row: 0, sleep: None }
    }

    /// Returns the queue. No item is lost.
    pub fn into_inner(self) -> Q {
        self.inner
    }
}

impl<Q> AsRef<Q> for OnTokio<Q> {
    fn as_ref(&self) -> &Q {
        &self.inner
    }
}

impl<Q> AsMut<Q> for OnTokio<Q> {
    fn as_mut(&mut self) -> &mut Q {
        &mut self.inner
    }
}

impl<Q: Expires> From<Q> for OnTokio<Q> {
    fn from(inner: Q) -> Self {
        Self::new(inner)
    }
}

impl<Q: Expires> Stream for OnTokio<Q> {
    type Item = Q::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Q::Item>> {
        let Self { inner, in_a_row, sleep } = &mut *self;
        cooperate(in_a_row, cx, |cx| {
            if let Some(expired) = inner.try_next() {
                return Poll::Ready(Some(expired));
            }
            let Some(next) = inner.next_deadline() else { return Poll::Ready(None) };
            let next = next.into();
            let sleep = sleep.get_or_insert_with(|| Box::pin(time::sleep_until(next)));
            if sleep.deadline() != next {
                sleep.as_mut().reset(next);
            }
            ready!(sleep.as_mut().poll(cx));
            // The item may have become due since, or the deadline was earlier than the item's.
            cx.waker().wake_by_ref();
            Poll::Pending
        })
    }
}

impl<Q> fmt::Debug for OnTokio<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnTokio").finish_non_exhaustive()
    }
}
