//! The driver diesel-async, with the statements of diesel.

use super::diesel::Row;
use super::{BoxFuture, FromAnswer, PostgresTransaction, Question};
use diesel::QueryResult;
use diesel::pg::Pg;
use diesel_async::{AsyncConnection, RunQueryDsl};

/// Stands for the driver in [`PostgresTransaction`].
#[derive(Debug)]
pub enum DieselAsync {}

#[diagnostic::do_not_recommend]
impl<'t, C: AsyncConnection<Backend = Pg>> PostgresTransaction<DieselAsync> for &'t mut C {
    type Answer<R: FromAnswer> = BoxFuture<'t, QueryResult<R>>;

    fn ask<R: FromAnswer>(self, question: Question) -> Self::Answer<R> {
        Box::pin(async move { question.query()?.get_result::<Row>(self).await?.parse() })
    }
}
