//! The driver sea-orm, in two versions.

use super::{BoxFuture, FromAnswer, PostgresTransaction, Question, Value, unknown_answer};

/// Implements the driver for a version of sea-orm, whose method `$query` takes a statement.
macro_rules! implement {
    ($sea_orm:ident, $driver:ident, $query:ident) => {
        /// Stands for the driver in [`PostgresTransaction`].
        #[derive(Debug)]
        pub enum $driver {}

        #[diagnostic::do_not_recommend]
        impl<'t, C: $sea_orm::ConnectionTrait> PostgresTransaction<$driver> for &'t C {
            type Answer<R: FromAnswer> = BoxFuture<'t, Result<R, $sea_orm::DbErr>>;

            fn ask<R: FromAnswer>(self, question: Question) -> Self::Answer<R> {
                use $sea_orm::{DbBackend, DbErr, Statement};
                Box::pin(async move {
                    let value = |value| match value {
                        Value::Text(text) => Ok(text.into()),
                        Value::Number(number) => Ok(number.into()),
                        Value::Payload(bytes) => bytes.map(Into::into),
                    };
                    let values = question.values.into_iter().map(value).collect::<Result<Vec<$sea_orm::Value>, _>>();
                    let values = values.map_err(|error| DbErr::Custom(error.to_string()))?;
                    let statement = Statement::from_sql_and_values(DbBackend::Postgres, question.text, values);
                    let row = self.$query(statement).await?;
                    let row = row.ok_or_else(|| DbErr::RecordNotFound("the answer of the store".to_owned()))?;
                    let answer: String = row.try_get("", "answer")?;
                    R::parse(&answer).ok_or_else(|| DbErr::Type(unknown_answer(&answer).to_string()))
                })
            }
        }

        #[diagnostic::do_not_recommend]
        impl<'t, C: $sea_orm::ConnectionTrait> PostgresTransaction<$driver> for &'t mut C {
            type Answer<R: FromAnswer> = BoxFuture<'t, Result<R, $sea_orm::DbErr>>;

            fn ask<R: FromAnswer>(self, question: Question) -> Self::Answer<R> {
                PostgresTransaction::<$driver>::ask(&*self, question)
            }
        }
    };
}

#[cfg(feature = "sea-orm")]
implement!(sea_orm, SeaOrm, query_one_raw);
#[cfg(feature = "sea-orm-1")]
implement!(sea_orm_1, SeaOrm1, query_one);
