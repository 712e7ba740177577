//! The driver diesel, whose calls block.

use super::{FromAnswer, PostgresTransaction, Question, Value, unknown_answer};
use diesel::connection::LoadConnection;
use diesel::pg::Pg;
use diesel::query_builder::{BoxedSqlQuery, SqlQuery};
use diesel::result::Error;
use diesel::sql_types::{BigInt, Binary, Nullable, Text};
use diesel::{QueryResult, QueryableByName, RunQueryDsl, sql_query};

/// Stands for the driver in [`PostgresTransaction`].
#[derive(Debug)]
pub enum Diesel {}

#[diagnostic::do_not_recommend]
impl<C: LoadConnection<Backend = Pg>> PostgresTransaction<Diesel> for &mut C {
    type Answer<R: FromAnswer> = QueryResult<R>;

    fn ask<R: FromAnswer>(self, question: Question) -> Self::Answer<R> {
        question.query()?.get_result::<Row>(self)?.parse()
    }
}

/// The row of an answer.
#[derive(QueryableByName)]
pub(super) struct Row {
    #[diesel(sql_type = Text)]
    answer: String,
}

impl Row {
    pub(super) fn parse<R: FromAnswer>(self) -> QueryResult<R> {
        R::parse(&self.answer).ok_or_else(|| Error::DeserializationError(unknown_answer(&self.answer).into_inner()))
    }
}

impl Question {
    pub(super) fn query(self) -> QueryResult<BoxedSqlQuery<'static, Pg, SqlQuery>> {
        let mut query = sql_query(self.text).into_boxed();
        for value in self.values {
            query = match value {
                Value::Text(text) => query.bind::<Nullable<Text>, _>(text),
                Value::Number(number) => query.bind::<Nullable<BigInt>, _>(number),
                Value::Payload(bytes) => {
                    let bytes = bytes.map_err(|error| Error::SerializationError(error.into_inner()))?;
                    query.bind::<Binary, _>(bytes)
                }
            };
        }
        Ok(query)
    }
}
