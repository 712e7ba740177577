//! The driver tokio-postgres.

use super::{BoxFuture, FromAnswer, PostgresTransaction, Question, Value, unknown_answer};
use std::error::Error;
use tokio_postgres::GenericClient;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// Stands for the driver in [`PostgresTransaction`].
#[derive(Debug)]
pub enum TokioPostgres {}

#[diagnostic::do_not_recommend]
impl<'t, C: GenericClient + Sync> PostgresTransaction<TokioPostgres> for &'t C {
    type Answer<R: FromAnswer> = BoxFuture<'t, Result<R, tokio_postgres::Error>>;

    fn ask<R: FromAnswer>(self, question: Question) -> Self::Answer<R> {
        Box::pin(async move {
            let values: Vec<(&(dyn ToSql + Sync), Type)> =
                question.values.iter().map(|value| (value as _, value.sql_type())).collect();
            let row = self.query_typed_one(&question.text, &values).await?;
            row.try_get(0).map(|Parsed(answer)| answer)
        })
    }
}

#[diagnostic::do_not_recommend]
impl<'t, C: GenericClient + Sync> PostgresTransaction<TokioPostgres> for &'t mut C {
    type Answer<R: FromAnswer> = BoxFuture<'t, Result<R, tokio_postgres::Error>>;

    fn ask<R: FromAnswer>(self, question: Question) -> Self::Answer<R> {
        PostgresTransaction::<TokioPostgres>::ask(&*self, question)
    }
}

impl Value {
    fn sql_type(&self) -> Type {
        match self {
            Self::Text(_) => Type::TEXT,
            Self::Number(_) => Type::INT8,
            Self::Payload(_) => Type::BYTEA,
        }
    }
}

impl ToSql for Value {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Text(text) => text.to_sql(ty, out),
            Self::Number(number) => number.to_sql(ty, out),
            Self::Payload(Ok(bytes)) => bytes.to_sql(ty, out),
            Self::Payload(Err(error)) => Err(error.to_string().into()),
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::TEXT, Type::INT8, Type::BYTEA].contains(ty)
    }

    to_sql_checked!();
}

struct Parsed<R>(R);

impl<'r, R: FromAnswer> FromSql<'r> for Parsed<R> {
    fn from_sql(ty: &Type, raw: &'r [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let text = <&str>::from_sql(ty, raw)?;
        R::parse(text).map(Self).ok_or_else(|| unknown_answer(text).into_inner())
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::TEXT
    }
}
