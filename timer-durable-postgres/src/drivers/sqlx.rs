//! The driver sqlx, in two versions.

use super::{BoxFuture, FromAnswer, PostgresTransaction, Question, Value, unknown_answer};

/// Stands for the driver in [`PostgresTransaction`].
#[derive(Debug)]
pub enum Sqlx {}

/// Implements the driver for a version of sqlx. `$safe` marks a text as one without user input,
/// which it is.
macro_rules! implement {
    ($sqlx:ident, $safe:expr) => {
        impl<'t> PostgresTransaction<Sqlx> for &'t mut $sqlx::PgConnection {
            type Answer<R: FromAnswer> = BoxFuture<'t, Result<R, $sqlx::Error>>;

            fn ask<R: FromAnswer>(self, question: Question) -> Self::Answer<R> {
                Box::pin(async move {
                    let text = question.text;
                    let mut query = $sqlx::query_scalar::<$sqlx::Postgres, String>($safe(&text));
                    for value in question.values {
                        query = match value {
                            Value::Text(text) => query.bind(text),
                            Value::Number(number) => query.bind(number),
                            Value::Payload(bytes) => {
                                query.bind(bytes.map_err(|error| $sqlx::Error::Encode(error.into_inner()))?)
                            }
                        };
                    }
                    let answer = query.fetch_one(self).await?;
                    R::parse(&answer).ok_or_else(|| $sqlx::Error::Decode(unknown_answer(&answer).into_inner()))
                })
            }
        }

        impl<'t> PostgresTransaction<Sqlx> for &'t mut $sqlx::Transaction<'_, $sqlx::Postgres> {
            type Answer<R: FromAnswer> = BoxFuture<'t, Result<R, $sqlx::Error>>;

            fn ask<R: FromAnswer>(self, question: Question) -> Self::Answer<R> {
                (&mut **self).ask(question)
            }
        }
    };
}

#[cfg(feature = "sqlx")]
implement!(sqlx, |text: &String| sqlx::AssertSqlSafe(text.clone()));
#[cfg(feature = "sqlx-0-8")]
implement!(sqlx_0_8, String::as_str);
