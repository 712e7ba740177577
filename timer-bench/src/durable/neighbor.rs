//! The lag of a topic alone, beside a topic whose handlers hang, and beside a paused topic.

use super::cases::lag_of;
use super::ours::Ours;
use super::store::Fresh;
use super::subject::now;
use crate::out::{Run, Stop};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;
use timer_core::executor::ThreadPoolExecutor;
use timer_durable::{Due, DurableTimer, Retry, Schedule, Topic};

const NEIGHBOR: Topic<()> = Topic::new("neighbor");

/// The number of handlers that hang, each on a thread of the topic's executor.
const HANGING: usize = 8;

/// The number of due rows of the paused topic.
const ROWS: usize = 20_000;

/// Measures the lag in the three situations on one file, as the case `lag` does.
pub(crate) fn run(run: &Run) -> Result<(), Stop> {
    let store = Fresh::of(run)?;
    let (ran, mut lags) = mpsc::channel();
    let (entered, hanging) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let hangs = move |_: &Due<()>| {
        entered.send(()).map_err(Retry::new)?;
        let _opened = gate.lock().unwrap_or_else(PoisonError::into_inner).recv();
        Ok(())
    };
    let builder = DurableTimer::builder().topic(NEIGHBOR, hangs).executor(ThreadPoolExecutor::new(HANGING));
    let subject = Ours::open_with(builder, &store.name(), Arc::new(move |due| _ = ran.send(now() - due)));
    let subject = subject.map_err(Stop::because)?;
    let timer = &subject.timer;
    let mut measure = |name| lag_of(&subject, &mut lags, run, name).map_err(Stop::because);
    let schedule = |count: usize| {
        let all = (0..count).map(|_| NEIGHBOR.with(Schedule::after(Duration::ZERO), &()));
        timer.schedule_many(all).wait().map(drop).map_err(Stop::because)
    };

    measure("neighbor=none")?;

    schedule(HANGING)?;
    for _ in 0..HANGING {
        hanging.recv_timeout(Duration::from_secs(5)).map_err(Stop::because)?;
    }
    measure("neighbor=hangs")?;
    drop(open);

    timer.pause(NEIGHBOR).wait().map_err(Stop::because)?;
    (0..ROWS / 1_000).try_for_each(|_| schedule(1_000))?;
    measure("neighbor=paused")
}
