//! The drivers.

use crate::in_transaction::{Driver, End, Step};
use crate::take_steps;

pub(crate) const DRIVERS: &[(&str, Driver)] = &[
    ("diesel", with_diesel),
    ("diesel-async", with_diesel_async),
    ("sea-orm", with_sea_orm),
    ("sea-orm-1", with_sea_orm_1),
    ("sqlx", with_sqlx),
    ("sqlx-0-8", with_sqlx_0_8),
    ("tokio-postgres", with_tokio_postgres),
];

fn block_on<R>(call: impl Future<Output = R>) -> R {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(call)
}

/// The end of a transaction that diesel rolls back.
enum Failure {
    RollBack(Vec<String>),
    Diesel(diesel::result::Error),
}

impl From<diesel::result::Error> for Failure {
    fn from(error: diesel::result::Error) -> Self {
        Self::Diesel(error)
    }
}

fn result(taken: Result<Vec<String>, Failure>) -> Result<Vec<String>, String> {
    match taken {
        Ok(answers) | Err(Failure::RollBack(answers)) => Ok(answers),
        Err(Failure::Diesel(error)) => Err(format!("{error:?}")),
    }
}

fn with_diesel(url: &str, steps: Vec<Step<'_>>, end: End) -> Result<Vec<String>, String> {
    use diesel::connection::SimpleConnection;
    use diesel::{Connection, PgConnection};
    let mut connection = PgConnection::establish(url).map_err(|error| error.to_string())?;
    result(connection.transaction(|tx: &mut PgConnection| {
        let answers = take_steps!(steps, &mut *tx, |sql| tx.batch_execute(&sql)?,);
        if end == End::Commit { Ok(answers) } else { Err(Failure::RollBack(answers)) }
    }))
}

fn with_diesel_async(url: &str, steps: Vec<Step<'_>>, end: End) -> Result<Vec<String>, String> {
    use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};
    block_on(async {
        let mut connection = AsyncPgConnection::establish(url).await.map_err(|error| error.to_string())?;
        let taken = connection.transaction(async |tx: &mut AsyncPgConnection| {
            let answers = take_steps!(steps, &mut *tx, |sql| tx.batch_execute(&sql).await?, .await);
            if end == End::Commit { Ok(answers) } else { Err(Failure::RollBack(answers)) }
        });
        result(taken.await)
    })
}

macro_rules! with_sea_orm {
    ($name:ident, $sea_orm:ident) => {
        fn $name(url: &str, steps: Vec<Step<'_>>, end: End) -> Result<Vec<String>, String> {
            use $sea_orm::{ConnectionTrait, Database, TransactionTrait};
            let take = async {
                let connection = Database::connect(url).await?;
                let tx = connection.begin().await?;
                let answers = take_steps!(steps, &tx, |sql| tx.execute_unprepared(&sql).await?, .await);
                if end == End::Commit { tx.commit().await? } else { tx.rollback().await? }
                Ok(answers)
            };
            block_on(take).map_err(|error: $sea_orm::DbErr| format!("{error:?}"))
        }
    };
}

with_sea_orm!(with_sea_orm, sea_orm);
with_sea_orm!(with_sea_orm_1, sea_orm_1);

macro_rules! with_sqlx {
    ($name:ident, $sqlx:ident, $safe:expr) => {
        fn $name(url: &str, steps: Vec<Step<'_>>, end: End) -> Result<Vec<String>, String> {
            use $sqlx::{Connection, PgConnection};
            let take = async {
                let mut connection = PgConnection::connect(url).await?;
                let mut tx = connection.begin().await?;
                let answers =
                    take_steps!(steps, &mut *tx, |sql| $sqlx::query($safe(&sql)).execute(&mut *tx).await?, .await);
                if end == End::Commit { tx.commit().await? } else { tx.rollback().await? }
                Ok(answers)
            };
            block_on(take).map_err(|error: $sqlx::Error| format!("{error:?}"))
        }
    };
}

with_sqlx!(with_sqlx, sqlx, |sql: &String| sqlx::AssertSqlSafe(sql.clone()));
with_sqlx!(with_sqlx_0_8, sqlx_0_8, String::as_str);

fn with_tokio_postgres(url: &str, steps: Vec<Step<'_>>, end: End) -> Result<Vec<String>, String> {
    let take = async {
        let (mut client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        let mut tx = client.transaction().await?;
        let answers = take_steps!(steps, &mut tx, |sql| tx.batch_execute(&sql).await?, .await);
        if end == End::Commit {
            tx.commit().await?
        } else {
            tx.rollback().await?
        }
        Ok(answers)
    };
    block_on(take).map_err(|error: tokio_postgres::Error| format!("{error:?}"))
}
