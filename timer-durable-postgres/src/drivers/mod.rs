//! Timeouts in the user's own transaction on PostgreSQL.
//!
//! Each call is one statement that calls a function of the schema, with parameters of three types
//! and an answer that is a text. So a driver needs a few lines.

#[cfg(feature = "diesel")]
mod diesel;
#[cfg(feature = "diesel-async")]
mod diesel_async;
#[cfg(any(feature = "sea-orm", feature = "sea-orm-1"))]
mod sea_orm;
#[cfg(any(feature = "sqlx", feature = "sqlx-0-8"))]
mod sqlx;
#[cfg(feature = "tokio-postgres")]
mod tokio_postgres;

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, UNIX_EPOCH};
use timer_durable::store::micros;
use timer_durable::{
    AsPayload, CancelAnswer, Due, DueTime, Payload, PayloadError, ResetAnswer, Schedule, ScheduleAnswer, TimeoutId,
    Topic,
};

/// A transaction, or a connection, of a PostgreSQL driver. The compiler finds `Driver` by itself.
///
/// | feature | implemented for |
/// |---|---|
/// | `tokio-postgres` | `&Transaction`, `&mut Transaction`, `&Client` |
/// | `sqlx`, `sqlx-0-8` | `&mut PgConnection`, `&mut Transaction<Postgres>` |
/// | `diesel` | `&mut` of each synchronous connection to PostgreSQL |
/// | `diesel-async` | `&mut` of each asynchronous connection to PostgreSQL |
/// | `sea-orm`, `sea-orm-1` | `&` and `&mut` of each `ConnectionTrait`, such as `DatabaseTransaction` |
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no transaction of a PostgreSQL driver whose feature of timer-durable-postgres is enabled"
)]
pub trait PostgresTransaction<Driver>: Sized {
    /// The result of a call, `Result<R, E>` with the error `E` of the driver. An asynchronous
    /// driver has a future of it.
    type Answer<R: FromAnswer>;

    #[doc(hidden)]
    fn ask<R: FromAnswer>(self, question: Question) -> Self::Answer<R>;
}

/// The future of a call.
type BoxFuture<'t, R> = Pin<Box<dyn Future<Output = R> + Send + 't>>;

/// A statement with a row that has a text, its `answer`.
#[derive(Debug)]
pub struct Question {
    text: String,
    values: Vec<Value>,
}

/// A parameter.
#[derive(Debug)]
enum Value {
    Text(Option<String>),
    Number(Option<i64>),
    Payload(Result<Vec<u8>, PayloadError>),
}

/// An answer to a call in the user's own transaction.
pub trait FromAnswer: Sized + Send + 'static {
    #[doc(hidden)]
    fn parse(text: &str) -> Option<Self>;
}

impl FromAnswer for ScheduleAnswer {
    fn parse(text: &str) -> Option<Self> {
        let (answer, id) = text.split_once(' ')?;
        let id: TimeoutId = id.parse().ok()?;
        match answer {
            "created" => Some(Self::Created(id)),
            "kept" => Some(Self::Kept(id)),
            "moved" => Some(Self::Moved(id)),
            "queued" => Some(Self::Queued(id)),
            _ => None,
        }
    }
}

impl FromAnswer for CancelAnswer {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "cancelled" => Some(Self::Cancelled),
            "running" => Some(Self::Running),
            "queued_cancelled" => Some(Self::QueuedCancelled),
            "unknown" => Some(Self::Unknown),
            _ => None,
        }
    }
}

impl FromAnswer for ResetAnswer {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "reset" => Some(Self::Reset),
            "running" => Some(Self::Running),
            "queued_reset" => Some(Self::QueuedReset),
            "unknown" => Some(Self::Unknown),
            _ => None,
        }
    }
}

impl FromAnswer for () {
    fn parse(text: &str) -> Option<Self> {
        (text == "completed").then_some(())
    }
}

/// Returns the error for an answer of another version of the schema.
fn unknown_answer(answer: &str) -> PayloadError {
    PayloadError::new(format!("the schema of the store has answered `{answer}`"))
}

/// A topic or an attempt whose store has another schema than `timer`.
///
/// [`TopicExt::in_schema`] and [`DueExt::in_schema`] return it.
#[derive(Clone, Copy, Debug)]
#[must_use = "it does nothing until a call is made on it"]
pub struct InSchema<'s, T> {
    inner: T,
    schema: &'s str,
}

/// The calls of a [`Topic`] in the user's own transaction on PostgreSQL. Each call is one
/// statement. [`PostgresTransaction`] lists the drivers.
///
/// This process needs no [`DurableTimer`](timer_durable::DurableTimer).
pub trait TopicExt<P>: Sized {
    /// Returns the topic and the schema of the store.
    #[doc(hidden)]
    fn in_store(&self) -> (Topic<P>, &str);

    /// Names the schema of the store, which is `timer` unless `PostgresOptions::schema` sets
    /// another one.
    fn in_schema(self, schema: &str) -> InSchema<'_, Topic<P>> {
        let (inner, _) = self.in_store();
        InSchema { inner, schema }
    }

    /// Schedules a timeout in the transaction `tx`.
    ///
    /// The timeout exists as soon as the transaction is committed, and a process that has the
    /// handler learns of it within milliseconds. After a rollback nothing has happened.
    ///
    /// # Errors
    ///
    /// The error of the driver. With [`IfPending::Refuse`](timer_durable::IfPending::Refuse), a key
    /// with a pending timeout is a unique violation (23505), and an argument that is not allowed is
    /// an invalid parameter (22023). A payload that cannot be encoded has the error by which the
    /// driver reports a parameter that it cannot encode, and the statement is not sent.
    ///
    /// # Examples
    ///
    /// With sqlx:
    ///
    #[cfg_attr(feature = "sqlx", doc = "```no_run")]
    #[cfg_attr(not(feature = "sqlx"), doc = "```ignore")]
    /// use std::time::Duration;
    /// use timer_durable::{Schedule, Topic};
    /// use timer_durable_postgres::prelude::*;
    ///
    /// const CLOSE: Topic<String> = Topic::new("order.close");
    ///
    /// async fn place(pool: &sqlx::PgPool) -> Result<(), sqlx::Error> {
    ///     let mut tx = pool.begin().await?;
    ///     sqlx::query("insert into orders values (17)").execute(&mut *tx).await?;
    ///     let schedule = Schedule::after(Duration::from_secs(1800)).key("order-17");
    ///     CLOSE.schedule_in(&mut *tx, schedule, "17").await?;
    ///     tx.commit().await
    /// }
    /// ```
    fn schedule_in<Driver, T: PostgresTransaction<Driver>>(
        self,
        tx: T,
        schedule: Schedule,
        payload: &(impl AsPayload<P> + ?Sized),
    ) -> T::Answer<ScheduleAnswer>
    where
        P: Payload,
    {
        let (topic, schema) = self.in_store();
        let schedule = schedule.traced(topic.name());
        let (due, time) = match schedule.due {
            DueTime::After(delay) => ("timer.now() + $7", delay),
            DueTime::At(at) => ("$7", at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO)),
        };
        let text = format!(
            "select answer || ' ' || timeout as answer
             from timer.schedule_and_tell($1, $2, $3, $4, $5, $6::text::uuid, {due}, $8, $9, $10, $11)"
        );
        let values = vec![
            Value::Text(Some(topic.name().to_owned())),
            Value::Text(schedule.key),
            Value::Payload(payload.encode_as()),
            Value::Number(Some(P::FORMAT.into())),
            Value::Text(Some(schedule.if_pending.name().to_owned())),
            Value::Text(schedule.id.map(|id| id.to_string())),
            Value::Number(Some(micros(time))),
            Value::Number(schedule.period.map(micros)),
            Value::Number(schedule.max_lateness.map(micros)),
            Value::Text(schedule.traceparent),
            Value::Number(schedule.cap.map(micros)),
        ];
        tx.ask(Question::new(schema, &text, values))
    }

    /// Cancels the pending timeout with this key in the transaction `tx`. After a rollback it is
    /// pending as before.
    ///
    /// The row of the timeout stays locked until the transaction ends. If it is due before, it
    /// begins after a rollback.
    ///
    /// # Errors
    ///
    /// The error of the driver.
    fn cancel_in<Driver, T: PostgresTransaction<Driver>>(self, tx: T, key: &str) -> T::Answer<CancelAnswer> {
        let (topic, schema) = self.in_store();
        let values = vec![Value::Text(Some(topic.name().to_owned())), Value::Text(Some(key.to_owned()))];
        tx.ask(Question::new(schema, "select timer.cancel($1, $2) as answer", values))
    }

    /// Moves the pending timeout with this key to `delay` from now, in the transaction `tx`. After
    /// a rollback it is due as before.
    ///
    /// # Errors
    ///
    /// The error of the driver.
    fn reset_in<Driver, T: PostgresTransaction<Driver>>(
        self,
        tx: T,
        key: &str,
        delay: Duration,
    ) -> T::Answer<ResetAnswer> {
        let (topic, schema) = self.in_store();
        let values = vec![
            Value::Text(Some(topic.name().to_owned())),
            Value::Text(Some(key.to_owned())),
            Value::Number(Some(micros(delay))),
        ];
        let text = "select timer.move(timer.find($1, $2), timer.now() + $3) as answer";
        tx.ask(Question::new(schema, text, values))
    }
}

impl<P> TopicExt<P> for Topic<P> {
    fn in_store(&self) -> (Topic<P>, &str) {
        (*self, SCHEMA)
    }
}

impl<P> TopicExt<P> for InSchema<'_, Topic<P>> {
    fn in_store(&self) -> (Topic<P>, &str) {
        (self.inner, self.schema)
    }
}

/// The end of an attempt in the user's own transaction on PostgreSQL.
pub trait DueExt<P>: Sized {
    /// Returns the attempt and the schema of the store.
    #[doc(hidden)]
    fn in_store(&self) -> (&Due<P>, &str);

    /// Names the schema of the store, which is `timer` unless `PostgresOptions::schema` sets
    /// another one.
    fn in_schema<'s>(&'s self, schema: &'s str) -> InSchema<'s, &'s Due<P>> {
        InSchema { inner: self.in_store().0, schema }
    }

    /// Ends the attempt in the transaction `tx`, for an effect that happens exactly once. Either
    /// the transaction is committed and the timeout has ended, or neither.
    ///
    /// Commit the transaction before the handler returns. After this call, an `Ok` of the handler
    /// does not end the timeout by itself. If the transaction was rolled back, the attempt has
    /// failed and is repeated. An error of the handler after the commit has no effect.
    ///
    /// To schedule another timeout with the same key, call [`schedule_in`](TopicExt::schedule_in)
    /// afterwards in the same transaction.
    ///
    /// # Errors
    ///
    /// The error of the driver. If the attempt is no longer the last one, the server raises
    /// `TM002`, after which PostgreSQL commits nothing of the transaction.
    fn complete_in<Driver, T: PostgresTransaction<Driver>>(&self, tx: T) -> T::Answer<()> {
        let (due, schema) = self.in_store();
        due.ends_elsewhere();
        let values = vec![Value::Text(Some(due.id().to_string())), Value::Number(Some(due.attempt().into()))];
        let text = "select timer.complete_or_fail($1::text::uuid, $2) as answer";
        tx.ask(Question::new(schema, text, values))
    }
}

impl<P> DueExt<P> for Due<P> {
    fn in_store(&self) -> (&Due<P>, &str) {
        (self, SCHEMA)
    }
}

impl<P> DueExt<P> for InSchema<'_, &Due<P>> {
    fn in_store(&self) -> (&Due<P>, &str) {
        (self.inner, self.schema)
    }
}

/// The schema of a store unless its options name another one.
const SCHEMA: &str = "timer";

impl Question {
    /// Returns a statement about another schema than `timer`, if need be.
    fn new(schema: &str, text: &str, values: Vec<Value>) -> Self {
        let text = text.replace("timer.", &format!("\"{schema}\"."));
        Self { text, values }
    }
}
