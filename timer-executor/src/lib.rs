//! Executors for the due tasks of a timer, on its own thread, on rayon or on a thread pool.
//!
//! A timer decides *when* a task runs, and a [`TaskExecutor`] decides *where*. The timer hands each
//! due task over as a [`Task`]. The executor either runs it or returns it as [`ExecuteError`], so
//! no task is lost between the two.
//!
//! ```
//! use std::sync::mpsc::channel;
//! use timer_executor::{ImmediateExecutor, Task, TaskExecutor};
//!
//! let (sender, receiver) = channel();
//! let executor = ImmediateExecutor;
//! executor.execute(Task::new(move || sender.send("ran").unwrap())).unwrap();
//! assert_eq!(receiver.try_recv(), Ok("ran"));
//! ```
//!
//! # Choosing an executor
//!
//! | executor | runs tasks | a slow task delays | rejects | cargo feature |
//! |---|---|---|---|---|
//! | [`ImmediateExecutor`] | on the thread that hands them over | all after it | never | - |
//! | `RayonExecutor` | on a rayon pool, the global one or your own | none while a thread is idle | never[^up] | `rayon` |
//! | `ThreadPoolExecutor::new` | on its own threads | none while a thread is idle | never | `threadpool` |
//! | `ThreadPoolExecutor::bounded` | on its own threads | none while a thread is idle | above threads + queue | `threadpool` |
//! | a closure `\|task: Task\| ...` | where the closure takes them | as you like | never | - |
//!
//! [^up]: unless rayon cannot start its global pool.
//!
//! An `Arc` of an executor can be shared by several timers, and a `Box<dyn TaskExecutor>` can be
//! chosen while the program runs. No feature is on by default, and the crate then depends on
//! `tracing` alone.
//!
//! # Writing an executor
//!
//! Implement [`TaskExecutor::execute`], or pass a closure. This closure sends the tasks to a thread
//! through a channel:
//!
//! ```
//! use std::sync::mpsc::channel;
//! use std::thread;
//! use timer_executor::{Task, TaskExecutor};
//!
//! let (sender, receiver) = channel::<Task>();
//! let runner = thread::spawn(move || receiver.into_iter().for_each(Task::run));
//!
//! let executor = move |task| {
//!     // The error of a closed channel contains the task, so dropping it drops the captured values.
//!     let _ = sender.send(task);
//! };
//! executor.execute(Task::new(|| println!("on the other thread"))).unwrap();
//! drop(executor);
//! runner.join().unwrap();
//! ```
//!
//! # Panics and lost tasks
//!
//! [`Task::run`] catches a panic of the task and reports it as a `tracing` error. A task therefore
//! never kills a thread of the pool it runs on. Panics that abort (`panic = "abort"`, or a panic
//! while another one unwinds) cannot be caught; see [`panics`].
//!
//! A task may be dropped without having run, because an executor panicked or shut down with work in
//! its queue. It then drops its closure or its waker; see [`Task::from_waker`].
//!
//! # Coming from Netty or the JDK
//!
//! | there | here |
//! |---|---|
//! | `java.util.concurrent.Executor` | [`TaskExecutor`] |
//! | `Runnable` | [`Task`], owned and run once; [`Task::from_waker`] for work that already lives in an `Arc` |
//! | `RejectedExecutionException` | [`ExecuteError`], an error value that contains the task |
//! | `RejectedExecutionHandler`, `CallerRunsPolicy` | the caller gets the task back and decides; the timer runs it on its worker |
//! | Netty's `ImmediateExecutor.INSTANCE` | [`ImmediateExecutor`] |
//! | `new HashedWheelTimer(..., Executor taskExecutor)` | any [`TaskExecutor`], given to the timer's builder |
//! | `ForkJoinPool.commonPool()` | `RayonExecutor::global()` |
//! | `Executors.newFixedThreadPool(n)` | `ThreadPoolExecutor::new(n)` |
//! | `new ThreadPoolExecutor(n, n, ..., new ArrayBlockingQueue<>(q))` | `ThreadPoolExecutor::bounded(n, q)` |
//! | a `ThreadFactory` that names its threads | `ThreadPoolExecutor::builder().thread_name(..)` |
//! | `ForkJoinPool.awaitQuiescence(...)` | `ThreadPoolExecutor::wait_idle()`, without a limit |
//! | `UncaughtExceptionHandler` | a `tracing` subscriber |
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::incompatible_msrv))]
#![warn(missing_docs)]

#[cfg(any(feature = "rayon", feature = "threadpool"))]
mod batch;
mod executor;
mod immediate;
pub mod panics;
#[cfg(feature = "threadpool")]
mod permits;
#[cfg(feature = "rayon")]
mod rayon;
mod task;
#[cfg(feature = "threadpool")]
mod threadpool;

pub use executor::{ExecuteError, TaskExecutor};
pub use immediate::ImmediateExecutor;
pub use panics::PanicMessage;
#[cfg(feature = "rayon")]
pub use rayon::RayonExecutor;
pub use task::Task;
#[cfg(feature = "threadpool")]
pub use threadpool::{ThreadPoolExecutor, ThreadPoolExecutorBuilder};

/// Compiles and runs the examples in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
