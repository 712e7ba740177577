//! The table of orders, in the database of their timeouts.

use std::collections::HashSet;
use std::error::Error;

use examples::durable::StoreName;
use rusqlite::Connection;
use timer_durable::{CompleteError, Due, DurableTimer, PostgresConnection};

/// The database of the orders, the same as that of the store.
#[derive(Clone, Copy)]
pub(crate) enum Orders {
    Sqlite,
    Postgres,
}

impl Orders {
    pub(crate) fn of(store: &StoreName) -> Self {
        match store {
            StoreName::Sqlite(_) => Self::Sqlite,
            StoreName::Postgres(_) => Self::Postgres,
        }
    }

    /// Creates the table if there is none, and returns the orders that have a state.
    pub(crate) fn open(self, timer: &DurableTimer) -> Result<HashSet<u32>, Box<dyn Error>> {
        let create = "create table if not exists orders(number integer primary key, state text not null)";
        let select = "select number from orders";
        match self {
            Self::Sqlite => Ok(timer.with_connection(move |connection: &mut Connection| {
                connection.execute_batch(create)?;
                let mut query = connection.prepare(select)?;
                Ok(query.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
            })?),
            Self::Postgres => Ok(timer.with_connection(move |connection: &mut PostgresConnection| {
                // Two programs that create a table at once would disturb each other.
                connection.batch_execute(&format!("select pg_advisory_xact_lock(1); {create}"))?;
                let numbers = connection.query(select, &[])?;
                Ok(numbers.iter().map(|row| row.get::<_, i32>(0).unsigned_abs()).collect())
            })?),
        }
    }

    /// Counts the orders with a state.
    pub(crate) fn count(self, timer: &DurableTimer, state: &'static str) -> Result<u64, Box<dyn Error>> {
        let count = "select count(*) from orders where state = $1";
        let counted: i64 = match self {
            Self::Sqlite => timer.with_connection(move |connection: &mut Connection| {
                Ok(connection.query_row(count, [state], |row| row.get(0))?)
            })?,
            Self::Postgres => timer.with_connection(move |connection: &mut PostgresConnection| {
                Ok(connection.query_one(count, &[&state])?.get(0))
            })?,
        };
        Ok(counted.unsigned_abs())
    }

    /// Gives an order its state unless it has one, in the transaction that ends the attempt.
    pub(crate) fn end(self, due: &Due<String>, number: u32, state: &'static str) -> Result<(), CompleteError> {
        let insert = "insert into orders(number, state) values ($1, $2) on conflict do nothing";
        match self {
            Self::Sqlite => due.complete_in(move |connection: &mut Connection| {
                connection.execute(insert, (number, state))?;
                Ok(())
            }),
            Self::Postgres => due.complete_in(move |connection: &mut PostgresConnection| {
                let number = i32::try_from(number)?;
                connection.execute(insert, &[&number, &state])?;
                Ok(())
            }),
        }
    }
}
