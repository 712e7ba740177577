//! Inserts, and their effect on the timeout that has their key.

use super::create::Create;
use super::holder::Holder;
use super::queued::QueuedCalls;
use super::tombstones::{Tombstones, is_taken};
use rusqlite::Result;
use timer_durable::transaction::{Insert, Outcome};

pub(super) fn insert(
    tombstones: Tombstones<'_>,
    create: &mut Create<'_>,
    new: &Insert,
    calls: &mut QueuedCalls,
) -> Result<Outcome> {
    let db = tombstones.db;
    if let Some(refusal) = tombstones.refusal(new.id)? {
        return Ok(refusal);
    }
    if create.execute(db, new)? {
        return Ok(Outcome::Created { replaced: None });
    }
    let Some(key) = &new.key else { return Ok(Outcome::Exists) };
    if is_taken(db, new.id)? {
        return Ok(Outcome::Exists);
    }
    let Some(holder) = Holder::find(db, &new.topic, key)? else { return Ok(Outcome::Exists) };
    match holder.affect(tombstones, &mut create.slots, new)? {
        Some(Outcome::Queued(_)) => calls.queue(tombstones, create, &holder, new),
        Some(outcome) => Ok(outcome),
        None if create.execute(db, new)? => Ok(Outcome::Created { replaced: Some(holder.id) }),
        None => Ok(Outcome::Exists),
    }
}

/// Inserts the timeout that follows an attempt, unless its id was used before. The attempt may have
/// taken longer than a caller may use an id.
pub(super) fn follow(tombstones: Tombstones<'_>, create: &mut Create<'_>, then: &Insert) -> Result<()> {
    let may_create = tombstones.refusal(then.id)? != Some(Outcome::Exists);
    if may_create && !create.execute(tombstones.db, then)? {
        then.report_taken_key();
    }
    Ok(())
}
