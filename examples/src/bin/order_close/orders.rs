//! The table of orders, in the database of their timeouts.

use std::collections::HashSet;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use examples::durable::StoreName;
use timer_durable::{Due, DurableTimer};
use timer_durable_postgres::prelude::*;
use timer_durable_postgres::tokio_postgres::{self, Client, NoTls};
use timer_durable_sqlite::SqliteHandle;
use tokio::runtime::{Builder, Runtime};

/// The database of the orders, the same as that of the store.
#[derive(Clone)]
pub(crate) enum Orders {
    /// The connection of the store.
    Sqlite(SqliteHandle),
    /// Another connection than that of the store. Its transactions end attempts as well.
    Postgres(Arc<Mutex<(Runtime, Client)>>),
}

impl Orders {
    pub(crate) fn of(store: &StoreName, sqlite: Option<SqliteHandle>) -> Result<Self, Box<dyn Error>> {
        let url = match (store, sqlite) {
            (_, Some(sqlite)) => return Ok(Self::Sqlite(sqlite)),
            (StoreName::Postgres(url), None) => url,
            (StoreName::Sqlite(_), None) => return Err("a file has a handle".into()),
        };
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (client, connection) = runtime.block_on(tokio_postgres::connect(url, NoTls))?;
        runtime.spawn(connection);
        Ok(Self::Postgres(Arc::new(Mutex::new((runtime, client)))))
    }

    /// Creates the table if there is none, and returns the orders that have a state.
    pub(crate) fn open(&self, timer: &DurableTimer) -> Result<HashSet<u32>, Box<dyn Error>> {
        let create = "create table if not exists orders(number integer primary key, state text not null)";
        let select = "select number from orders";
        match self {
            Self::Sqlite(sqlite) => Ok(sqlite
                .transaction(timer, move |tx| {
                    tx.connection().execute_batch(create)?;
                    let mut query = tx.connection().prepare(select)?;
                    Ok(query.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
                })
                .wait()?),
            Self::Postgres(session) => {
                let (runtime, client) = &*session.lock().unwrap_or_else(PoisonError::into_inner);
                runtime.block_on(async {
                    // Two programs that create a table at once would disturb each other.
                    client.batch_execute(&format!("begin; select pg_advisory_xact_lock(1); {create}; commit")).await?;
                    let numbers = client.query(select, &[]).await?;
                    Ok(numbers.iter().map(|row| row.get::<_, i32>(0).unsigned_abs()).collect())
                })
            }
        }
    }

    /// Counts the orders with a state.
    pub(crate) fn count(&self, timer: &DurableTimer, state: &'static str) -> Result<u64, Box<dyn Error>> {
        let count = "select count(*) from orders where state = $1";
        let counted: i64 = match self {
            Self::Sqlite(sqlite) => sqlite
                .transaction(timer, move |tx| Ok(tx.connection().query_row(count, [state], |row| row.get(0))?))
                .wait()?,
            Self::Postgres(session) => {
                let (runtime, client) = &*session.lock().unwrap_or_else(PoisonError::into_inner);
                runtime.block_on(client.query_one(count, &[&state]))?.get(0)
            }
        };
        Ok(counted.unsigned_abs())
    }

    /// Gives an order its state unless it has one, in the transaction that ends the attempt.
    pub(crate) fn end(&self, due: &Due<String>, number: u32, state: &'static str) -> Result<(), Box<dyn Error>> {
        let insert = "insert into orders(number, state) values ($1, $2) on conflict do nothing";
        match self {
            Self::Sqlite(sqlite) => sqlite
                .complete(due, move |tx| {
                    tx.connection().execute(insert, (number, state))?;
                    Ok(())
                })
                .wait()?,
            Self::Postgres(session) => {
                let number = i32::try_from(number)?;
                let (runtime, client) = &mut *session.lock().unwrap_or_else(PoisonError::into_inner);
                runtime.block_on(async {
                    let tx = client.transaction().await?;
                    tx.execute(insert, &[&number, &state]).await?;
                    due.complete_in(&tx).await?;
                    tx.commit().await
                })?;
            }
        }
        Ok(())
    }
}
