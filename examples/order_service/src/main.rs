//! A service on axum and PostgreSQL whose orders close unless they are paid in time.
//!
//! An order and its timeout are written in one transaction of sqlx, so neither exists without the
//! other, whenever the process dies. The first line starts the service with 30 s to pay. The others
//! place an order, look at it and pay it:
//!
//! ```sh
//! cargo run -p order-service -- postgres://localhost/shop 30
//! curl -X POST localhost:8080/orders -d 'a lamp'
//! curl localhost:8080/orders/1
//! curl -X POST localhost:8080/orders/1/payment
//! ```

use std::env;
use std::error::Error;
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use timer_durable::{Due, DurableTimer, Retry, Schedule, Topic};
use timer_durable_postgres::PostgresStore;
use timer_durable_postgres::prelude::*;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Closes an order. The payload is its number.
const CLOSE: Topic<String> = Topic::new("order.close");

const TABLES: &str = "create table if not exists orders(
    number bigint generated always as identity primary key, item text not null, state text not null default 'open')";

#[derive(Clone)]
struct Shop {
    pool: PgPool,
    timer: DurableTimer,
    time_to_pay: Duration,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let url = args.next().ok_or("usage: order-service URL [SECONDS [ADDRESS]]")?;
    let time_to_pay = Duration::from_secs(args.next().map_or(Ok(900), |seconds| seconds.parse())?);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());

    let pool = PgPoolOptions::new().connect(&url).await?;
    sqlx::raw_sql(TABLES).execute(&pool).await?;
    PostgresStore::install(&url).await?;
    let runtime = Handle::current();
    let orders = pool.clone();
    let timer = DurableTimer::builder()
        .spawn(move |handler| _ = runtime.spawn(handler))
        .topic_async(CLOSE, move |due| close(orders.clone(), due))
        // The next process at this address goes on at once, and any other one after 15 s.
        .open(PostgresStore::new(&url)?.node(&address))
        .await?;

    let routes = Router::new()
        .route("/orders", post(place))
        .route("/orders/{number}", get(show))
        .route("/orders/{number}/payment", post(pay))
        .with_state(Shop { pool, timer: timer.clone(), time_to_pay });
    let listener = TcpListener::bind(address).await?;
    println!("http://{}/orders", listener.local_addr()?);
    let ended = ended(signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    axum::serve(listener, routes).with_graceful_shutdown(ended).await?;
    let report = timer.stop(Duration::from_secs(10)).await?; // before the system kills the process
    println!("stopped, {} handlers were cut off", report.unfinished);
    Ok(())
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
    let mut tx = shop.pool.begin().await?;
    let insert = sqlx::query_scalar("insert into orders(item) values ($1) returning number::text").bind(item);
    let number: String = insert.fetch_one(&mut *tx).await?;
    CLOSE.schedule_in(&mut *tx, Schedule::after(shop.time_to_pay).key(&number), &number).await?;
    tx.commit().await?;
    Ok(number + "\n")
}

/// Tells the state of an order, and how long it can be paid.
async fn show(State(shop): State<Shop>, Path(number): Path<String>) -> Result<String, Failure> {
    let order = sqlx::query_as("select item, state from orders where number::text = $1").bind(&number);
    let Some((item, state)): Option<(String, String)> = order.fetch_optional(&shop.pool).await? else {
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
    let mut tx = shop.pool.begin().await?;
    let update = "update orders set state = 'paid' where number::text = $1 and state = 'open'";
    if sqlx::query(update).bind(&number).execute(&mut *tx).await?.rows_affected() == 0 {
        return Err(Failure(StatusCode::CONFLICT, format!("there is no open order {number}\n")));
    }
    CLOSE.cancel_in(&mut *tx, &number).await?;
    tx.commit().await?;
    Ok("paid\n".to_owned())
}

/// Closes an order that was not paid, and ends its timeout in the same transaction.
async fn close(pool: PgPool, due: Due<String>) -> Result<(), Retry> {
    let mut tx = pool.begin().await?;
    let update = "update orders set state = 'closed' where number::text = $1 and state = 'open'";
    sqlx::query(update).bind(due.payload()).execute(&mut *tx).await?;
    due.complete_in(&mut *tx).await?;
    tx.commit().await?;
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
