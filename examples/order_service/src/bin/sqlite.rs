//! The service of `main.rs` without a server. The orders and their timeouts are in one SQLite file.
//!
//! ```sh
//! cargo run -p order-service --bin order-service-sqlite -- shop.db 30
//! ```

use std::env;
use std::error::Error;
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use timer_durable::{Due, DurableTimer, Retry, Schedule, Topic};
use timer_durable_sqlite::rusqlite::OptionalExtension;
use timer_durable_sqlite::{SqliteHandle, SqliteStore};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Closes an order. The payload is its number.
const CLOSE: Topic<String> = Topic::new("order.close");

const TABLES: &str = "create table if not exists orders(
    number integer primary key, item text not null, state text not null default 'open')";

#[derive(Clone)]
struct Shop {
    timer: DurableTimer,
    sqlite: SqliteHandle,
    time_to_pay: Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let path = args.next().ok_or("usage: order-service-sqlite FILE [SECONDS [ADDRESS]]")?;
    let time_to_pay = Duration::from_secs(args.next().map_or(Ok(900), |seconds| seconds.parse())?);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());

    let store = SqliteStore::open(path)?;
    let sqlite = store.handle();
    let close = {
        let sqlite = sqlite.clone();
        move |due: &Due<String>| close(&sqlite, due)
    };
    let timer = DurableTimer::builder().topic(CLOSE, close).open(store).wait()?;
    sqlite.transaction(&timer, |tx| Ok(tx.connection().execute_batch(TABLES)?)).wait()?;

    let routes = Router::new()
        .route("/orders", post(place))
        .route("/orders/{number}", get(show))
        .route("/orders/{number}/payment", post(pay))
        .with_state(Shop { timer: timer.clone(), sqlite, time_to_pay });
    Runtime::new()?.block_on(async {
        let listener = TcpListener::bind(address).await?;
        println!("http://{}/orders", listener.local_addr()?);
        let ended = ended(signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        axum::serve(listener, routes).with_graceful_shutdown(ended).await?;
        let report = timer.stop(Duration::from_secs(10)).await?; // before the system kills the process
        println!("stopped, {} handlers were cut off", report.unfinished);
        Ok(())
    })
}

/// Waits until the system or a user asks the process to end.
async fn ended(mut terminate: Signal, mut interrupt: Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// Writes an order and its timeout, and answers with its number.
async fn place(State(shop): State<Shop>, item: String) -> Result<String, Failure> {
    let number = shop.sqlite.transaction(&shop.timer, move |tx| {
        tx.connection().execute("insert into orders(item) values (?1)", [item])?;
        let number = tx.connection().last_insert_rowid().to_string();
        tx.schedule(CLOSE, Schedule::after(shop.time_to_pay).key(&number), &number)?;
        Ok(number)
    });
    Ok(number.await? + "\n")
}

/// Tells the state of an order, and how long it can be paid.
async fn show(State(shop): State<Shop>, Path(number): Path<String>) -> Result<String, Failure> {
    let key = number.clone();
    let order = shop.sqlite.transaction(&shop.timer, move |tx| {
        let order = "select item, state from orders where number = ?1";
        let read = |row: &timer_durable_sqlite::rusqlite::Row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
        Ok(tx.connection().query_row(order, [key], read).optional()?)
    });
    let Some((item, state)) = order.await? else {
        return Err(Failure(StatusCode::NOT_FOUND, format!("there is no order {number}\n")));
    };
    let closes = shop.timer.get(CLOSE, &number).await?.map(|timeout| {
        let left = timeout.deadline().duration_since(SystemTime::now()).unwrap_or_default();
        format!(", closes in {} s", left.as_secs())
    });
    Ok(format!("{item}: {state}{}\n", closes.unwrap_or_default()))
}

/// Marks an order as paid and cancels its timeout.
async fn pay(State(shop): State<Shop>, Path(number): Path<String>) -> Result<String, Failure> {
    let key = number.clone();
    let paid = shop.sqlite.transaction(&shop.timer, move |tx| {
        let update = "update orders set state = 'paid' where number = ?1 and state = 'open'";
        let changed = tx.connection().execute(update, [&key])?;
        tx.cancel(CLOSE, &key)?;
        Ok(changed == 1)
    });
    if !paid.await? {
        return Err(Failure(StatusCode::CONFLICT, format!("there is no open order {number}\n")));
    }
    Ok("paid\n".to_owned())
}

/// Closes an order that was not paid, and ends its timeout in the same transaction.
fn close(sqlite: &SqliteHandle, due: &Due<String>) -> Result<(), Retry> {
    let number = due.payload().clone();
    sqlite
        .complete(due, move |tx| {
            let update = "update orders set state = 'closed' where number = ?1 and state = 'open'";
            Ok(tx.connection().execute(update, [number]).map(drop)?)
        })
        .wait()?;
    println!("order {} was not paid in time", due.payload());
    Ok(())
}

/// An answer that is no success.
struct Failure(StatusCode, String);

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n"))
    }
}

impl axum::response::IntoResponse for Failure {
    fn into_response(self) -> axum::response::Response {
        (self.0, self.1).into_response()
    }
}
