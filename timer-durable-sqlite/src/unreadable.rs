//! Rows with values that cannot be read, because another program has written a value of another
//! type, out of range, or no UTF-8.
//!
//! A pending timeout with such a value becomes a dead letter with the same values. A dead letter
//! with such a value stays as it is, and the list of dead letters shows what can be read of it.

use super::ids::{blob, id};
use rusqlite::types::FromSql;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Params, Result, Row, Statement, params};
use timer_durable::store::Micros;
use timer_durable::transaction::Operation;
use timer_durable::{DeadLetter, TimeoutId};

/// Returns `true` if an error belongs to the row that a statement is about, and not to the store.
pub(super) fn is_of_row(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        // A trigger or a check of the user may fail by any error of SQL.
        Some(code) => {
            matches!(
                code,
                ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch | ErrorCode::Unknown
            )
        }
        None => is_unreadable(error),
    }
}

/// Returns `true` if a value has another type than its column, or is out of range, or is no UTF-8.
pub(super) fn is_unreadable(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    matches!(error, FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) | Utf8Error(..))
}

/// The numbers of rows that cannot be read, with the errors.
pub(super) type UnreadableRows = Vec<(i64, rusqlite::Error)>;

/// Returns the rows of a query whose second columns cannot be read as a `T`. The first column is
/// the number of the row.
pub(super) fn rows<T: FromSql>(query: &mut Statement<'_>, values: impl Params) -> Result<UnreadableRows> {
    let rows = query.query_map(values, |row| Ok((row.get(0)?, row.get::<_, T>(1))))?;
    rows.filter_map(|row| row.map(|(row, value)| Some((row, value.err()?))).transpose()).collect()
}

/// Returns the number of the row of a timeout that could not begin, because it cannot be read.
pub(super) fn row_of_begin(db: &Connection, part: &[Operation], error: &rusqlite::Error) -> Result<Option<i64>> {
    match part {
        [Operation::Begin(id)] if is_unreadable(error) => {
            db.query_row("select rowid from timer_timeout where id = ?1", [blob(*id)], |row| row.get(0)).optional()
        }
        _ => Ok(None),
    }
}

/// Makes a row that cannot be read a dead letter with the same values.
pub(super) fn bury(db: &Connection, row: i64, error: &rusqlite::Error, now: Micros) -> Result<()> {
    tracing::error!(row, %error, "a timeout that cannot be read becomes a dead letter");
    let reason = format!("the row cannot be read: {error}");
    db.execute(
        "insert or replace into timer_dead(id, due, topic, key, attempt, format, payload, reason, died)
         select id, due, topic, key, attempt, format, payload, ?2, ?3 from timer_timeout where rowid = ?1",
        params![row, reason, now],
    )?;
    db.execute("delete from timer_timeout where rowid = ?1", [row]).map(drop)
}

pub(super) fn dead_letters(
    db: &Connection,
    topic: Option<&str>,
    after: Option<TimeoutId>,
    max: usize,
) -> Result<Vec<DeadLetter>> {
    let mut query = db.prepare_cached(
        "select id, due, topic, key, attempt, format, payload, reason, died from timer_dead
         where (?1 is null or topic = ?1) and (?2 is null or id > ?2) and typeof(id) = 'blob' and length(id) = 16
         order by id limit ?3",
    )?;
    let letters = query.query_map(params![topic, after.map(blob), max as i64], |row| match letter(row) {
        Err(error) if is_unreadable(&error) => unreadable_letter(row, &error),
        letter => letter,
    })?;
    letters.collect()
}

fn letter(row: &Row<'_>) -> Result<DeadLetter> {
    let topic: String = row.get(2)?;
    let reason: String = row.get(7)?;
    let mut letter = DeadLetter::new(id(row.get(0)?), row.get(1)?, topic, reason);
    letter.key = row.get(3)?;
    letter.attempt = row.get(4)?;
    letter.format = row.get(5)?;
    letter.payload = row.get(6)?;
    letter.died = row.get(8)?;
    Ok(letter)
}

/// Reads as much of a dead letter as can be read. Its reason has the error, and its payload the
/// bytes of any type.
fn unreadable_letter(row: &Row<'_>, error: &rusqlite::Error) -> Result<DeadLetter> {
    let bytes = |column| row.get_ref(column).map(|value| value.as_bytes_or_null().ok().flatten().unwrap_or_default());
    let text = |column| bytes(column).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let reason = format!("the dead letter cannot be read: {error}; {}", text(7)?);
    let mut letter = DeadLetter::new(id(row.get(0)?), row.get(1).unwrap_or_default(), text(2)?, reason);
    letter.key = Some(text(3)?).filter(|key| !key.is_empty());
    letter.attempt = row.get(4).unwrap_or_default();
    letter.format = row.get(5).unwrap_or_default();
    letter.payload = bytes(6)?.to_vec();
    letter.died = row.get(8).unwrap_or_default();
    Ok(letter)
}
