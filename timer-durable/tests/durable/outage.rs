//! Calls that wait until the keeper has joined its store again.

use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use timer_durable::{CancelAnswer, Due, DurableTimer, Retry, Schedule, StoreError};

use crate::scripted::ScriptedStore;
use crate::t;

const LONG: Duration = Duration::from_secs(60);

fn ok(_: &Due<String>) -> Result<(), Retry> {
    Ok(())
}

#[test]
fn calls_that_wait_for_the_store_come_before_later_ones() {
    let store = ScriptedStore::new();
    let timer = DurableTimer::builder().max_batch(1).topic(t(), ok).open(store.clone()).wait().unwrap();
    let mut is_lost = Some(());
    store.on_write(move |_| is_lost.take().map(|()| StoreError::InDoubt("the connection is lost".to_owned())));
    let (tried, tries) = channel();
    let (release, released) = channel::<()>();
    let mut is_away = true;
    store.on_rejoin(move || {
        let _ended = (tried.send(()), released.recv());
        std::mem::take(&mut is_away).then(|| StoreError::Failed("the server is away".to_owned()))
    });
    timer.new_timeout(t(), LONG, &"lost".to_owned()).wait().unwrap_err();
    tries.recv_timeout(LONG).unwrap();
    let call = |key| timer.schedule(t(), Schedule::after(LONG).key(key), &"a".to_owned());
    let calls = ["first", "second", "last"].map(call);
    release.send(()).unwrap();
    tries.recv_timeout(LONG).unwrap();
    // It arrives after the others, while the keeper joins again. One call fits into a batch.
    let cancel = timer.cancel(t::<()>(), "last");
    drop(release);
    calls.into_iter().for_each(|call| _ = call.wait().unwrap());
    assert_eq!(cancel.wait().unwrap(), CancelAnswer::Cancelled);
}

#[test]
fn calls_about_one_key_fail_together_in_an_outage() {
    let store = ScriptedStore::new();
    let timer = DurableTimer::builder().topic(t(), ok).open(store.clone()).wait().unwrap();
    store.on_rejoin(|| Some(StoreError::Failed("the server is away".to_owned())));
    let (entered, entries) = channel();
    let (release, released) = channel::<()>();
    let mut writes = 0;
    store.on_write(move |_| {
        writes += 1;
        let _ended = (entered.send(()), released.recv());
        (writes > 1).then(|| StoreError::InDoubt("the connection is lost".to_owned()))
    });
    let first = timer.new_timeout(t(), LONG, &"a".to_owned());
    entries.recv_timeout(LONG).unwrap();
    // The second write has one of them.
    let calls: Vec<_> = (0..50).map(|_| timer.reset(t::<()>(), "hot", LONG)).collect();
    drop(release);
    first.wait().unwrap();
    let begun = Instant::now();
    calls.into_iter().for_each(|call| _ = call.wait().unwrap_err());
    assert!(begun.elapsed() < Duration::from_secs(8), "it took {:?}", begun.elapsed());
}

#[test]
fn a_pause_that_waits_for_the_store_fails_beside_a_stop() {
    let store = ScriptedStore::new();
    let (started, starts) = channel();
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let blocks = move |_: &Due<()>| {
        started.send(())?;
        let _ended = released.lock().unwrap().recv();
        Ok(())
    };
    let timer = DurableTimer::builder().topic(t(), blocks).open(store.clone()).wait().unwrap();
    timer.new_timeout(t(), Duration::ZERO, &()).wait().unwrap();
    starts.recv_timeout(LONG).unwrap();
    store.on_rejoin(|| Some(StoreError::Failed("the server is away".to_owned())));
    store.lose_connection();
    let pause = timer.pause(t::<()>());
    let stopper = timer.clone();
    let stop = thread::spawn(move || stopper.stop(Duration::from_secs(20)));
    let (sender, answer) = channel();
    thread::spawn(move || sender.send(pause.wait()));
    answer.recv_timeout(Duration::from_secs(10)).unwrap().unwrap_err();
    drop(release);
    stop.join().unwrap().wait().unwrap();
}
