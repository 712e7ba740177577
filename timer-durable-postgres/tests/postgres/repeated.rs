//! Inserts that are repeated after an answer was lost.

use timer_durable::TimeoutId;
use timer_durable::store::{Reader, Store};
use timer_durable::transaction::{Insert, Operation, Outcome, Target};

use super::Database;

#[test]
fn a_late_insert_finds_a_tombstone() {
    let Some(database) = Database::create() else { return };
    let mut first = database.join();
    let mut second = database.join();
    let id = TimeoutId::new();
    // The caller's first try is under way, so it tries elsewhere, and cancels there.
    second.insert_as(id);
    let cancelled = second.write([Operation::Cancel(Target::Id(id))]).unwrap();
    assert_eq!(cancelled, [Outcome::Changed(id)]);
    assert_eq!(first.insert_as(id), Outcome::Exists, "the first try is executed late");
    assert_eq!(first.0.counts().unwrap().pending, 0);
    assert_eq!(database.sql("select count(*) from timer.timeout where ended is not null"), "1");
}

#[test]
fn an_attempt_that_ends_leaves_a_tombstone_too() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    let id = TimeoutId::new();
    node.insert_as(id);
    node.attempt(id);
    let done = node.write([Operation::Done { id, attempt: 1, next: None, then: Vec::new() }]).unwrap();
    assert_eq!(done, [Outcome::Changed(id)]);
    assert_eq!(node.insert_as(id), Outcome::Exists);
}

#[test]
fn an_id_that_sql_has_cancelled_stays_used() {
    let Some(database) = Database::create() else { return };
    let _node = database.join();
    let id = TimeoutId::new();
    let schedule = || database.sql(&format!("select timer.schedule('t', ''::text, '1 hour', null, 'keep', '{id}')"));
    schedule();
    assert_eq!(database.sql(&format!("select timer.cancel('{id}'::uuid)")), "cancelled");
    schedule();
    assert_eq!(database.sql("select count(*) from timer.timeout where ended is null"), "0");
}

#[test]
fn ids_of_the_instance_itself_leave_nothing() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    let id = node.insert();
    node.write([Operation::Cancel(Target::Id(id))]).unwrap();
    assert_eq!(database.sql("select count(*) from timer.timeout"), "0");
}

#[test]
fn an_own_id_that_was_used_fails_no_other_insert() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    let old = node.insert();
    let new = TimeoutId::made_by(node.0.instance());
    let due = node.0.now();
    let inserts = [old, new].map(|id| Insert::new(id, due, "topic"));
    let answers = node.write(inserts.into_iter().map(Operation::Insert)).unwrap();
    assert_eq!(answers, [Outcome::Exists, Outcome::Created { replaced: None }]);
    assert_eq!(node.0.counts().unwrap().pending, 2);
}

#[test]
fn a_batch_may_change_a_part_of_its_rows() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    let first = node.insert();
    let last = node.insert();
    let unknown = TimeoutId::made_by(node.0.instance());
    let targets = [first, unknown, last].map(Target::Id);
    let answers = node.write(targets.into_iter().map(Operation::Cancel)).unwrap();
    assert_eq!(answers, [Outcome::Changed(first), Outcome::NotFound, Outcome::Changed(last)]);
    assert_eq!(database.sql("select count(*) from timer.timeout"), "0");
}

#[test]
fn an_old_id_is_refused() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    let eleven_minutes = 660_000_u128 << 80;
    let id = TimeoutId::from_u128(TimeoutId::new().as_u128() - eleven_minutes);
    assert_eq!(node.insert_as(id), Outcome::TooOld);
    let nine_minutes = 540_000_u128 << 80;
    let id = TimeoutId::from_u128(TimeoutId::new().as_u128() - nine_minutes);
    assert_eq!(node.insert_as(id), Outcome::Created { replaced: None });
}

#[test]
fn sql_refuses_an_old_id() {
    let Some(database) = Database::create() else { return };
    let _node = database.join();
    let schedule = |minutes: u128| {
        let id = TimeoutId::from_u128(TimeoutId::new().as_u128() - ((minutes * 60_000) << 80));
        let statement = format!("select timer.schedule('t', ''::text, '1 hour', null, 'keep', '{id}')");
        let output = database.server.psql(&database.name).args(["-c", &statement]).output().unwrap();
        let refusal = format!("the id {} is too old to be used for a new timeout", uuid(id));
        (output.status.success(), String::from_utf8_lossy(&output.stderr).contains(&refusal))
    };
    assert_eq!(schedule(11), (false, true), "a timeout with this id may have lived");
    assert_eq!(schedule(9), (true, false));
    let alive = "select count(*) from timer.timeout where ended is null";
    assert_eq!(database.sql(alive), "1");
    database.sql("select timer.schedule('t', ''::text, '1 hour')");
    assert_eq!(database.sql(alive), "2", "the function itself makes new ids");
}

#[test]
fn an_old_id_of_a_pending_timeout_is_found_by_sql() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    let old = TimeoutId::from_u128(TimeoutId::new().as_u128() - (540_000_u128 << 80));
    assert_eq!(node.insert_as(old), Outcome::Created { replaced: None });
    // The same timeout two minutes later.
    let older = TimeoutId::from_u128(old.as_u128() - (120_000_u128 << 80));
    database.sql(&format!("update timer.timeout set id = '{older}'"));
    let schedule = format!("select timer.schedule('t', ''::text, '1 hour', null, 'keep', '{older}')");
    assert_eq!(database.sql(&schedule), uuid(older));
    assert_eq!(database.sql(&format!("select timer.cancel('{older}'::uuid)")), "cancelled");
    assert_eq!(database.sql("select count(*) from timer.timeout"), "0", "an old id leaves no tombstone");
}

/// Returns the id as PostgreSQL prints it.
fn uuid(id: TimeoutId) -> String {
    let digits = id.to_string();
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

#[test]
fn tombstones_expire() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    let id = TimeoutId::new();
    node.insert_as(id);
    node.write([Operation::Cancel(Target::Id(id))]).unwrap();
    database.sql("update timer.timeout set ended = timer.now() - 1");
    node.keep_up_until(|_| database.sql("select count(*) from timer.timeout") == "0");
}
