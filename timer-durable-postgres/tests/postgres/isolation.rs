//! The SQL functions in transactions of each isolation level, and the order of keys.

use super::Database;
use super::locks::Session;

/// Creates a database with the schema, and a function that returns the code of the error of a call.
fn database() -> Option<Database> {
    let database = Database::create()?;
    drop(database.join());
    database.sql(
        "create function code(p_call text) returns text language plpgsql as $$ declare v_answer text;
         begin execute 'select timer.' || p_call into v_answer; return v_answer;
         exception when others then return sqlstate; end $$",
    );
    Some(database)
}

fn schedule(key: &str) -> String {
    format!("schedule('t', 'x'::text, interval '1 hour', key => '{key}', if_pending => 'update')")
}

fn call(session: &mut Session, call: &str) -> String {
    session.ask(&format!("select code('{}')", call.replace('\'', "''")))
}

/// The chapter on transactions says the same.
#[test]
fn a_key_behind_the_snapshot_is_unknown() {
    let Some(database) = database() else { return };
    for level in ["read committed", "repeatable read", "serializable"] {
        let has_snapshot = level != "read committed";
        database.sql("delete from timer.timeout");
        database.sql(&format!("select timer.{}", schedule("old")));
        let mut session = Session::begin(&database);
        session.ask(&format!("set transaction isolation level {level}; select 1"));
        database.sql(&format!("select timer.{}, timer.reset('t', 'old', '2 hours')", schedule("new")));
        let seen = if has_snapshot { ["unknown", "unknown", "40001", "40001"] } else { ["reset", "cancelled", "", ""] };
        assert_eq!(call(&mut session, "reset('t', 'new', '1 hour')"), seen[0], "{level}");
        assert_eq!(call(&mut session, "cancel('t', 'new')"), seen[1], "{level}");
        if has_snapshot {
            assert_eq!(call(&mut session, &schedule("new")), seen[2], "{level}");
            assert_eq!(call(&mut session, "cancel('t', 'old')"), seen[3], "{level}: it was moved");
        }
        session.end("commit");
        let left = database.sql("select string_agg(key, ' ' order by key) from timer.timeout where ended is null");
        assert_eq!(left, if has_snapshot { "new old" } else { "old" }, "{level}: the commit has succeeded");
    }
}

/// Lets two transactions schedule these keys side by side. Returns the answers to their last calls.
fn take(database: &Database, first_keys: [&str; 2], second_keys: [&str; 2]) -> [String; 2] {
    let [mut first, mut second] = [(); 2].map(|()| Session::begin(database));
    call(&mut first, &schedule(first_keys[0]));
    std::thread::scope(|scope| {
        let second = scope.spawn(move || {
            let [_, last] = second_keys.map(|key| call(&mut second, &schedule(key)));
            second.end(if last == "40P01" { "rollback" } else { "commit" });
            last
        });
        let waiting =
            "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
        database.wait_for(waiting, "1");
        let last = call(&mut first, &schedule(first_keys[1]));
        first.end(if last == "40P01" { "rollback" } else { "commit" });
        [last, second.join().unwrap()]
    })
}

#[test]
fn keys_in_different_orders_deadlock() {
    let Some(database) = database() else { return };
    let failed = |answers: [String; 2]| answers.iter().filter(|answer| *answer == "40P01").count();
    assert_eq!(failed(take(&database, ["a", "b"], ["a", "b"])), 0, "one waits for the other");
    assert_eq!(failed(take(&database, ["c", "d"], ["d", "c"])), 1, "the server ends one");
}
