//! The drivers that are built every day. The package `drivers` has the others.

use crate::in_transaction::{Driver, End, Step};
use crate::take_steps;
use timer_durable::tokio_postgres;

pub(crate) const DRIVERS: &[(&str, Driver)] = &[
    ("tokio-postgres", with_tokio_postgres),
    #[cfg(feature = "sqlx")]
    ("sqlx", with_sqlx),
];

fn block_on<R>(call: impl Future<Output = R>) -> R {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(call)
}

fn with_tokio_postgres(url: &str, steps: Vec<Step<'_>>, end: End) -> Result<Vec<String>, String> {
    let take = async {
        let (mut client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        let tx = client.transaction().await?;
        let answers = take_steps!(steps, &tx, |sql| tx.batch_execute(&sql).await?, .await);
        if end == End::Commit {
            tx.commit().await?
        } else {
            tx.rollback().await?
        }
        Ok(answers)
    };
    block_on(take).map_err(|error: tokio_postgres::Error| format!("{error:?}"))
}

#[cfg(feature = "sqlx")]
fn with_sqlx(url: &str, steps: Vec<Step<'_>>, end: End) -> Result<Vec<String>, String> {
    use sqlx::{AssertSqlSafe, Connection, PgConnection};
    let take = async {
        let mut connection = PgConnection::connect(url).await?;
        let mut tx = connection.begin().await?;
        let answers =
            take_steps!(steps, &mut *tx, |sql| sqlx::query(AssertSqlSafe(sql)).execute(&mut *tx).await?, .await);
        if end == End::Commit {
            tx.commit().await?
        } else {
            tx.rollback().await?
        }
        Ok(answers)
    };
    block_on(take).map_err(|error: sqlx::Error| format!("{error:?}"))
}
