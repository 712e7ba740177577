//! Handles of another store than that of a timer.

use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use timer_durable::{Due, DurableTimer, Error, MemoryStore, Retry, Topic};
use timer_durable_sqlite::{OtherStoreError, SqliteHandle, SqliteStore};
use timer_durable_tests::folder::Folder;
use timer_durable_tests::t;

fn assert_refused(handle: &SqliteHandle, result: Result<(), Error>) {
    let Err(Error::Work(error)) = result else { panic!("{result:?}") };
    let error: &OtherStoreError = error.downcast_ref().unwrap();
    assert_eq!(error.clone().into_inner(), *handle);
}

#[test]
fn a_handle_of_another_file_is_an_error_of_the_call() {
    let folder = Folder::new();
    let other = Folder::new();
    let foreign = SqliteStore::open(other.file()).unwrap().handle();
    let store = SqliteStore::open(folder.file()).unwrap();
    let own = store.handle();
    let (sender, ran) = channel();
    let closing = own.clone();
    let wrong = foreign.clone();
    let sender = Mutex::new(sender);
    let close = move |due: &Due<()>| {
        let refused = wrong.complete(due, |_| Ok(()));
        closing.complete(due, |tx| Ok(tx.connection().execute_batch("create table closed(n)")?)).wait()?;
        sender.lock().unwrap().send(refused).map_err(|_| Retry::new("the test is over"))
    };
    let timer = DurableTimer::builder().topic(t(), close).open(store).wait().unwrap();
    assert_refused(&foreign, foreign.transaction(&timer, |_| panic!("it does not run")).wait());
    own.transaction(&timer, |tx| Ok(tx.new_timeout(t(), Duration::ZERO, &()).map(drop)?)).wait().unwrap();
    assert_refused(&foreign, ran.recv_timeout(Duration::from_secs(60)).unwrap().wait());
    let closed = own.transaction(&timer, |tx| {
        Ok(tx.connection().query_row("select count(*) from closed", (), |row| row.get::<_, i64>(0))?)
    });
    assert_eq!(closed.wait().unwrap(), 0);
    timer.stop(Duration::from_secs(60)).wait().unwrap();
}

#[test]
fn a_handle_is_refused_by_a_store_that_is_no_file() {
    let folder = Folder::new();
    let handle = SqliteStore::open(folder.file()).unwrap().handle();
    let builder = DurableTimer::builder().topic_elsewhere(Topic::<()>::new("t"));
    let (timer, _driver) = builder.build_manual(MemoryStore::new()).unwrap();
    assert_refused(&handle, handle.transaction(&timer, |_| Ok(())).wait());
}
