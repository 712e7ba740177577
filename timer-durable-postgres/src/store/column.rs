//! The parameters of a batch. Each is an array with a value for each row of a part.

use super::connection::PostgresConnection;
use timer_durable::TimeoutId;
use timer_durable::store::Micros;
use timer_durable::transaction::{Insert, Operation};
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

/// The ways in which a timeout is repeated. A retry counts the attempt towards the limit. The next
/// run of a periodic timeout counts its attempts anew, and so does a run that is postponed. If this
/// node has no handler for the topic, or the handler has not started, this attempt does not count,
/// and the timeout moves to a shard of any node.
const RETRIED: i16 = 0;
const NEXT_RUN: i16 = 1;
const ELSEWHERE: i16 = 2;
const POSTPONED: i16 = 3;

/// A parameter of a statement.
pub(super) type Parameter<'a> = Box<dyn ToSql + Sync + 'a>;

pub(super) fn uuid(id: TimeoutId) -> Uuid {
    Uuid::from_u128(id.as_u128())
}

/// A parameter of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Id,
    /// The shard into which this instance writes. It is one value.
    Shard,
    /// The time until which a tombstone lasts.
    Until,
    /// The timeout whose end creates the timeout that is inserted.
    Predecessor,
    Insert(InsertColumn),
    Operation(OperationColumn),
}

/// A value of an insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InsertColumn {
    Due,
    Topic,
    Format,
    Payload,
    Period,
    MaxLateness,
    Traceparent,
    Key,
    Until,
}

/// A value of another operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperationColumn {
    Attempt,
    Due,
    /// The way in which the timeout is repeated.
    Kind,
    Format,
    Payload,
    /// The id of the dead letter of a run.
    Letter,
    Reason,
    /// Whether a dead letter gives up its key.
    WithoutKey,
}

impl Column {
    pub(super) fn sql_type(self) -> Type {
        match self {
            Self::Id | Self::Predecessor => Type::UUID_ARRAY,
            Self::Shard => Type::INT2,
            Self::Until => Type::INT8_ARRAY,
            Self::Insert(column) => column.sql_type(),
            Self::Operation(column) => column.sql_type(),
        }
    }
}

impl InsertColumn {
    /// All columns. An insert without a key has the first seven.
    pub(super) const ALL: [Self; 9] = [
        Self::Due,
        Self::Topic,
        Self::Format,
        Self::Payload,
        Self::Period,
        Self::MaxLateness,
        Self::Traceparent,
        Self::Key,
        Self::Until,
    ];

    pub(super) fn sql_type(self) -> Type {
        match self {
            Self::Due | Self::Period | Self::MaxLateness | Self::Until => Type::INT8_ARRAY,
            Self::Topic | Self::Traceparent | Self::Key => Type::TEXT_ARRAY,
            Self::Format => Type::INT2_ARRAY,
            Self::Payload => Type::BYTEA_ARRAY,
        }
    }

    pub(super) fn values<'a>(self, inserts: &[&'a Insert], instance: u32) -> Parameter<'a> {
        match self {
            Self::Due => array(inserts, |insert| insert.due),
            Self::Topic => array(inserts, |insert| &*insert.topic),
            Self::Format => array(inserts, |insert| insert.format),
            Self::Payload => array(inserts, |insert| &*insert.payload),
            Self::Period => array(inserts, |insert| insert.period),
            Self::MaxLateness => array(inserts, |insert| insert.max_lateness),
            Self::Traceparent => {
                // Most batches have none, and `unnest` completes an empty array.
                let traced = if inserts.iter().any(|insert| insert.traceparent.is_some()) { inserts } else { &[] };
                array(traced, |insert| insert.traceparent.as_deref())
            }
            Self::Key => array(inserts, |insert| insert.key.as_deref()),
            Self::Until => array(inserts, |insert| insert.id.repeatable_until(instance)),
        }
    }
}

impl OperationColumn {
    fn sql_type(self) -> Type {
        match self {
            Self::Attempt => Type::INT4_ARRAY,
            Self::Due => Type::INT8_ARRAY,
            Self::Kind | Self::Format => Type::INT2_ARRAY,
            Self::Payload => Type::BYTEA_ARRAY,
            Self::Letter => Type::UUID_ARRAY,
            Self::Reason => Type::TEXT_ARRAY,
            Self::WithoutKey => Type::BOOL_ARRAY,
        }
    }

    pub(super) fn values<'a>(self, operations: &[&'a Operation], connection: &PostgresConnection) -> Parameter<'a> {
        match self {
            Self::Attempt => array(operations, attempt),
            Self::Due => array(operations, due),
            Self::Kind => array(operations, kind),
            Self::Format => array(operations, |operation| new_payload(operation).map(|(format, _)| *format)),
            Self::Payload => array(operations, |operation| new_payload(operation).map(|(_, bytes)| &**bytes)),
            Self::Letter => array(operations, letter),
            Self::Reason => array(operations, |operation| connection.storable(reason(operation))),
            Self::WithoutKey => {
                array(operations, |operation| matches!(operation, Operation::Requeue { without_key: true, .. }))
            }
        }
    }
}

/// Returns an array with a value of each item.
fn array<'a, T, V: ToSql + Sync + 'a>(items: &[&'a T], value: impl Fn(&'a T) -> V) -> Parameter<'a> {
    Box::new(items.iter().map(|item| value(item)).collect::<Vec<V>>())
}

fn attempt(operation: &Operation) -> i32 {
    match operation {
        Operation::Done { attempt, .. }
        | Operation::Retry { attempt, .. }
        | Operation::Postpone { attempt, .. }
        | Operation::Bury { attempt, .. } => i32::try_from(*attempt).unwrap_or(i32::MAX),
        _ => 0,
    }
}

fn due(operation: &Operation) -> Micros {
    match operation {
        Operation::Reset { due, .. }
        | Operation::Retry { due, .. }
        | Operation::Postpone { due, .. }
        | Operation::Requeue { due, .. } => *due,
        Operation::Done { next: Some(next), .. } => *next,
        Operation::Bury { next: Some(next), .. } => next.due,
        _ => 0,
    }
}

fn kind(operation: &Operation) -> i16 {
    match operation {
        Operation::Retry { forgive: false, .. } => RETRIED,
        Operation::Retry { .. } => ELSEWHERE,
        Operation::Postpone { .. } => POSTPONED,
        _ => NEXT_RUN,
    }
}

fn new_payload(operation: &Operation) -> Option<&(i16, Vec<u8>)> {
    if let Operation::Postpone { payload, .. } = operation { payload.as_ref() } else { None }
}

fn letter(operation: &Operation) -> Option<Uuid> {
    if let Operation::Bury { next, .. } = operation { next.map(|next| uuid(next.letter)) } else { None }
}

fn reason(operation: &Operation) -> &str {
    if let Operation::Bury { reason, .. } = operation { reason } else { "" }
}
