//! Runtimes with virtual time, under tokio's names.

use super::follower::{Follower, FollowerGuard, Virtual, with_follower};
use ::tokio::runtime as theirs;
#[doc(no_inline)]
pub use ::tokio::runtime::*;
use ::tokio::time;
use core::future::{Future, poll_fn};
use core::ops::Deref;
use core::pin::pin;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use timer_core::time::enter;

/// Runs `future` on a current-thread tokio runtime with virtual time and returns its output.
///
/// Within the future and the tasks that it spawns, the functions of [`timer_core::time`] use a
/// manual timer. Time stands still while a task can run, and moves to the next deadline when all
/// tasks wait.
///
/// # Panics
///
/// Panics if the future panics, if the thread is within a runtime already, or if the system refuses
/// the resources of a runtime.
///
/// # Examples
///
/// ```
/// use timer_adapters::tokio::paused;
/// use timer_core::time::{self, Duration};
///
/// let begin = std::time::Instant::now();
/// paused(async {
///     let begin = time::now();
///     let task = tokio::spawn(async {
///         time::sleep(Duration::from_secs(3600)).await;
///         time::now()
///     });
///     assert_eq!(task.await.unwrap() - begin, Duration::from_secs(3600));
/// });
/// assert!(begin.elapsed() < Duration::from_secs(60));
/// ```
#[doc(alias = "start_paused")]
#[allow(clippy::expect_used, reason = "a test without a runtime has failed")]
pub fn paused<F: IntoFuture>(future: F) -> F::Output {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime for the test").block_on(future.into_future())
}

/// A builder of a [`Runtime`]. The methods are the common ones of tokio's builder. The hooks for
/// the parking of threads are not among them, because virtual time uses them.
///
/// # Examples
///
/// ```
/// use timer_adapters::tokio::runtime::Builder;
/// use timer_adapters::tokio::time::{Duration, Instant, sleep};
///
/// let runtime = Builder::new_current_thread().enable_all().start_paused(true).build()?;
/// runtime.block_on(async {
///     let begin = Instant::now();
///     sleep(Duration::from_secs(5)).await;
///     assert_eq!(begin.elapsed(), Duration::from_secs(5));
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Builder {
    builder: theirs::Builder,
    is_current_thread: bool,
    /// Whether the runtime has tokio's clock, without which there is no virtual time.
    has_time: bool,
}

/// Returns `self` after a call of tokio's builder.
macro_rules! forward {
    ($($(#[$doc:meta])* $name:ident$(<$generic:ident: $bound:path>)?($($argument:ident: $type:ty)?);)*) => {$(
        $(#[$doc])*
        pub fn $name$(<$generic: $bound + Send + Sync + 'static>)?(&mut self $(, $argument: $type)?) -> &mut Self {
            self.builder.$name($($argument)?);
            self
        }
    )*};
}

impl Builder {
    /// Builds a runtime on the thread that calls [`Runtime::block_on`]. Only such a runtime can
    /// have virtual time.
    pub fn new_current_thread() -> Self {
        let mut builder = theirs::Builder::new_current_thread();
        builder.on_thread_park(|| _ = with_follower(Follower::before_park));
        builder.on_thread_unpark(|| _ = with_follower(Follower::follow));
        Self { builder, is_current_thread: true, has_time: false }
    }

    /// Builds tokio's runtime with several threads. The functions of [`time`](super::time) use the
    /// timer of the process on it.
    pub fn new_multi_thread() -> Self {
        Self { builder: theirs::Builder::new_multi_thread(), is_current_thread: false, has_time: false }
    }

    /// Enables sockets and tokio's clock.
    pub fn enable_all(&mut self) -> &mut Self {
        self.builder.enable_all();
        self.has_time = true;
        self
    }

    /// Enables sockets.
    pub fn enable_io(&mut self) -> &mut Self {
        self.builder.enable_io();
        self
    }

    /// Enables tokio's clock.
    pub fn enable_time(&mut self) -> &mut Self {
        self.builder.enable_time();
        self.has_time = true;
        self
    }

    forward! {
        /// Starts with the clock stopped. As in tokio, that needs a runtime on the current thread.
        start_paused(is_paused: bool);
        /// Sets the number of threads of a runtime with several threads.
        worker_threads(threads: usize);
        /// Sets the largest number of threads for blocking work.
        max_blocking_threads(threads: usize);
        /// Sets the time that a thread for blocking work waits for more.
        thread_keep_alive(time: Duration);
        /// Names the threads that the runtime starts.
        thread_name(name: impl Into<String>);
        /// Sets a function that names the threads that the runtime starts.
        thread_name_fn<F: Fn() -> String>(name: F);
        /// Sets the size of the stacks of the threads that the runtime starts, in bytes.
        thread_stack_size(bytes: usize);
        /// Sets a hook that runs on each thread of the runtime at its start.
        on_thread_start<F: Fn()>(hook: F);
        /// Sets a hook that runs on each thread of the runtime at its end.
        on_thread_stop<F: Fn()>(hook: F);
        /// Sets the number of polls after which the runtime looks at sockets and deadlines.
        event_interval(polls: u32);
        /// Sets the number of polls after which the runtime looks at its queue of tasks from other
        /// threads.
        global_queue_interval(polls: u32);
    }

    /// Builds the runtime.
    ///
    /// # Errors
    ///
    /// Fails if the system refuses the resources of a runtime.
    pub fn build(&mut self) -> io::Result<Runtime> {
        let clock = if self.is_current_thread && self.has_time { Some(Virtual::new()?) } else { None };
        Ok(Runtime { runtime: self.builder.build()?, clock })
    }
}

/// A runtime of tokio whose clock the timer follows. It has all methods of tokio's
/// [`Runtime`](theirs::Runtime).
///
/// Only [`block_on`](Self::block_on) moves virtual time. In `LocalSet::block_on` and
/// `Handle::block_on`, sleeps of [`timer_core::time`] use the timer of the process, and those of
/// [`time`](super::time) use tokio's while the clock stands. Pass `LocalSet::run_until` to
/// [`block_on`](Self::block_on) instead.
#[derive(Debug)]
pub struct Runtime {
    runtime: theirs::Runtime,
    /// The manual timer of a runtime on the current thread that has tokio's clock.
    clock: Option<Arc<Virtual>>,
}

impl Runtime {
    /// Creates a runtime with several threads, as tokio does.
    ///
    /// # Errors
    ///
    /// Fails if the system refuses the resources of a runtime.
    pub fn new() -> io::Result<Self> {
        Builder::new_multi_thread().enable_all().build()
    }

    /// Runs `future` and the tasks that it spawns, and returns its output.
    ///
    /// # Panics
    ///
    /// Panics if the future panics or if the thread is within a runtime already.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let Some(clock) = &self.clock else { return self.runtime.block_on(future) };
        let _entered = enter(clock.timer.clone());
        let follower = Follower::new(clock);
        let _guard = FollowerGuard::enter(follower.clone());
        self.runtime.block_on(async {
            follower.follow();
            let mut sleep = pin!(time::sleep(Duration::ZERO));
            let mut future = pin!(future);
            poll_fn(|cx| {
                let polled = future.as_mut().poll(cx);
                if polled.is_pending() {
                    follower.poll_keeper(sleep.as_mut(), cx);
                }
                polled
            })
            .await
        })
    }

    /// Returns tokio's runtime, for a library that takes one, and stops the manual timer. Call it
    /// before any task sleeps.
    pub fn into_inner(self) -> theirs::Runtime {
        self.runtime
    }

    /// Shuts the runtime down, and waits for blocking work for at most `limit`.
    pub fn shutdown_timeout(self, limit: Duration) {
        self.runtime.shutdown_timeout(limit);
    }

    /// Shuts the runtime down without waiting for blocking work.
    pub fn shutdown_background(self) {
        self.runtime.shutdown_background();
    }
}

impl Deref for Runtime {
    type Target = theirs::Runtime;

    fn deref(&self) -> &theirs::Runtime {
        &self.runtime
    }
}
