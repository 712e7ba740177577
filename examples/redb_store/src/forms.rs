//! The form of rows and dead letters in a file.

use crate::tables::{Form, StoredLetter, StoredRow};
use timer_durable::store::Row;
use timer_durable::transaction::Insert;
use timer_durable::{DeadLetter, IfPending, TimeoutId};

pub(crate) fn encode(row: &Row) -> Form<'_, StoredRow> {
    let insert = &row.insert;
    (
        (&insert.topic, insert.key.as_deref()),
        (insert.due, row.planned),
        (row.attempt, row.forgiven),
        (row.begun, row.started),
        (insert.period, insert.max_lateness),
        (row.queued.map(TimeoutId::as_u128), insert.if_pending.name()),
        (insert.format, &insert.payload),
        insert.traceparent.as_deref(),
    )
}

pub(crate) fn decode(id: u128, form: Form<'_, StoredRow>) -> Row {
    let ((topic, key), (due, planned), (attempt, forgiven), (begun, started), limits, call, contents, trace) = form;
    let mut insert = Insert::new(TimeoutId::from_u128(id), due, topic);
    insert.key = key.map(str::to_owned);
    insert.if_pending = IfPending::from_name(call.1).unwrap_or_default();
    insert.period = limits.0;
    insert.max_lateness = limits.1;
    insert.format = contents.0;
    insert.payload = contents.1.to_vec();
    insert.traceparent = trace.map(str::to_owned);
    let mut row = Row::new(insert);
    row.planned = planned;
    row.attempt = attempt;
    row.forgiven = forgiven;
    row.begun = begun;
    row.started = started;
    row.queued = call.0.map(TimeoutId::from_u128);
    row
}

pub(crate) fn encode_letter(letter: &DeadLetter) -> Form<'_, StoredLetter> {
    (
        (&letter.topic, letter.key.as_deref()),
        (letter.due, letter.died),
        (letter.attempt, &letter.reason),
        (letter.format, &letter.payload),
    )
}

pub(crate) fn decode_letter(id: u128, form: Form<'_, StoredLetter>) -> DeadLetter {
    let ((topic, key), (due, died), (attempt, reason), (format, payload)) = form;
    let mut letter = DeadLetter::new(TimeoutId::from_u128(id), due, topic, reason);
    letter.key = key.map(str::to_owned);
    letter.attempt = attempt;
    letter.format = format;
    letter.payload = payload.to_vec();
    letter.died = died;
    letter
}
