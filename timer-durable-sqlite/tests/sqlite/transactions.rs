//! Transactions of the user in a file.

use std::sync::mpsc::channel;
use std::time::Duration;

use futures::executor::block_on;
use timer_durable::{Due, DurableTimer, Error, Retry};
use timer_durable_sqlite::SqliteStore;
use timer_durable_tests::folder::Folder;
use timer_durable_tests::t;

const LONG: Duration = Duration::from_secs(60);

#[test]
fn an_order_and_its_timeout_share_a_file() {
    let folder = Folder::new();
    let (sender, ran) = channel();
    let store = SqliteStore::open(folder.file()).unwrap();
    let sqlite = store.handle();
    let closing = sqlite.clone();
    let handler = move |due: &Due<String>| {
        let number = due.payload().clone();
        closing
            .complete(due, move |tx| Ok(tx.connection().execute("insert into closed values (?1)", [number])?))
            .wait()?;
        sender.send(due.payload().clone()).map_err(Retry::new)
    };
    let timer = DurableTimer::builder().topic(t(), handler).open(store).wait().unwrap();
    let create = "create table orders(number text); create table closed(number text)";
    sqlite.transaction(&timer, move |tx| Ok(tx.connection().execute_batch(create)?)).wait().unwrap();
    let place = |number: &'static str, may_commit: bool| {
        sqlite.transaction(&timer, move |tx| {
            tx.connection().execute("insert into orders values (?1)", [number])?;
            let id = tx.new_timeout(t(), Duration::ZERO, number)?;
            if may_commit { Ok(id) } else { Err("no money".into()) }
        })
    };
    let Err(Error::Work(error)) = place("1", false).wait() else { panic!("the work has failed") };
    assert_eq!(error.to_string(), "no money");
    place("2", true).wait().unwrap();
    assert_eq!(ran.recv_timeout(LONG), Ok("2".to_owned()));
    let both = "select (select group_concat(number) from orders) || ' ' || group_concat(number) from closed";
    let read =
        sqlite.transaction(&timer, move |tx| Ok(tx.connection().query_row(both, [], |row| row.get::<_, String>(0))?));
    assert_eq!(block_on(read).unwrap(), "2 2".to_owned());
    assert_eq!(timer.counts().wait().unwrap().pending, 0);
    assert_eq!(timer.stop(LONG).wait().unwrap().unfinished, 0);
    assert!(ran.try_recv().is_err(), "nothing runs after a rollback");
}
