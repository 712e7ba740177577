//! Promises that the statements of the store keep, each at the point where a node could break it.

use std::time::{Duration, SystemTime};

use timer_durable::store::{Position, Store};
use timer_durable::transaction::{Insert, Operation, Outcome, Target};
use timer_durable::{IfPending, StoreError, TimeoutId};
use timer_durable_postgres::PostgresStore;

use super::{Database, LEASE, Node};
use timer_durable_tests::never_early::{Ledger, assert_on_time, work};
use timer_durable_tests::postgres_server::{Server, Shutdown};

/// An hour in microseconds.
const HOUR: i64 = 3_600_000_000;

#[test]
fn an_answered_timeout_survives_a_crash_of_the_server() {
    let Some(mut server) = Server::start_for_tests() else { return };
    let name = server.create_database();
    let mut node = Node(crate::connected(&server.url(&name)).unwrap());
    node.0.rejoin().unwrap();
    // The server may flush a commit by itself before it is stopped, so the setting counts too.
    server.sql(
        &name,
        "create function check_setting() returns trigger language plpgsql as $$ begin
             if current_setting('synchronous_commit') <> 'on' then raise exception 'off'; end if; return new;
         end $$;
         create trigger check_setting before insert on timer.timeout for each row execute function check_setting()",
    );
    let mut answered = Vec::new();
    for _ in 0..3 {
        answered.push(node.insert());
        server.stop(Shutdown::Immediate);
        server.launch();
        // The first call meets the connection that was cut.
        assert!(node.begin(answered[0]).is_err());
        node.0.rejoin().unwrap();
        let mut pending = node.pending();
        pending.sort_unstable();
        assert_eq!(pending, answered);
    }
}

#[test]
fn a_release_frees_attempts_of_dead_instances() {
    let Some(database) = Database::create() else { return };
    let mut first = database.join();
    let ids: Vec<_> = (0..64).map(|_| first.insert()).collect();
    ids.iter().for_each(|id| assert_eq!(first.attempt(*id).attempt, 1));
    // The instance that has begun them is no more, so all of them are pending again.
    first.0.rejoin().unwrap();
    let mut second = database.join();
    first.keep_up_until(|node| node.shards() == 32);
    second.keep_up_until(|node| node.shards() == 32);
    assert_eq!(first.pending().len() + second.pending().len(), 64);
}

#[test]
fn attempts_are_numbered_and_exclude_each_other() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    let id = node.insert();
    assert_eq!(node.attempt(id).attempt, 1);
    assert_eq!(node.begin(id), Ok(Outcome::NotFound), "an attempt runs");
    let due = node.0.now() - 1;
    let retry = Operation::Retry { id, attempt: 1, due, forgive: false };
    assert_eq!(node.write([retry.clone()]).unwrap(), [Outcome::Changed(id)]);
    assert_eq!(node.attempt(id).attempt, 2);
    assert_eq!(node.write([retry]).unwrap(), [Outcome::NotFound], "not the last attempt");
    let done = |attempt| Operation::Done { id, attempt, next: None, then: Vec::new() };
    assert_eq!(node.write([done(1)]).unwrap(), [Outcome::NotFound]);
    assert_eq!(node.write([done(2)]).unwrap(), [Outcome::Changed(id)]);
}

#[test]
fn nothing_begins_before_it_is_due() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    let insert = Insert::new(TimeoutId::made_by(node.0.instance()), node.0.now() + HOUR, "topic");
    let id = insert.id;
    let due = insert.due;
    node.write([Operation::Insert(insert)]).unwrap();
    assert_eq!(node.begin(id), Ok(Outcome::NotYet(due)));
}

#[test]
fn a_row_of_a_node_without_shards_is_announced() {
    let Some(database) = Database::create() else { return };
    let mut owner = database.join_with(|store| store.lease(LEASE * 3600));
    owner.listen();
    let before = owner.0.membership().unwrap().foreign;
    let mut other = database.join_with(|store| store.lease(LEASE * 3600));
    assert_eq!(other.shards(), 0, "the owner has given none yet");
    // Some of them are in the shards that the owner keeps.
    owner.hear(|| (0..64).for_each(|_| _ = other.insert()));
    owner.keep_up_until(|node| node.0.membership().unwrap().foreign > before);
}

#[test]
fn a_reset_moves_a_timeout_to_its_writer() {
    let Some(database) = Database::create() else { return };
    let mut first = database.join();
    let due = first.0.now() + HOUR;
    let inserts: Vec<_> = (0..64).map(|_| Insert::new(TimeoutId::made_by(first.0.instance()), due, "topic")).collect();
    let ids: Vec<_> = inserts.iter().map(|insert| insert.id).collect();
    // The rows of a batch are in one shard, and the next batch uses the next shard.
    for insert in inserts {
        first.write([Operation::Insert(insert)]).unwrap();
    }
    let mut second = database.join();
    first.keep_up_until(|node| node.shards() == 32);
    second.keep_up_until(|node| node.shards() == 32);
    assert_eq!(first.pending().len(), 32, "half of them are in shards of the other node");
    let due = second.0.now() - 1;
    let resets = ids.iter().map(|id| Operation::Reset { target: Target::Id(*id), due });
    let answers = second.write(resets).unwrap();
    assert!(answers.iter().all(|answer| matches!(answer, Outcome::Changed(_))));
    assert_eq!(second.pending().len(), 64, "the other node does not learn of the new time");
}

#[test]
fn a_running_attempt_is_not_cancelled() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    // The end of a stranger's id leaves a tombstone, which takes another statement.
    for id in [TimeoutId::made_by(node.0.instance()), TimeoutId::new()] {
        node.insert_as(id);
        node.attempt(id);
        let cancel = |node: &mut Node| node.write([Operation::Cancel(Target::Id(id))]).unwrap().remove(0);
        assert_eq!(cancel(&mut node), Outcome::Running);
        let reset = Operation::Reset { target: Target::Id(id), due: 0 };
        assert_eq!(node.write([reset]).unwrap(), [Outcome::Running]);
        assert_eq!(
            node.write([Operation::Done { id, attempt: 1, next: None, then: Vec::new() }]).unwrap(),
            [Outcome::Changed(id)]
        );
        assert_eq!(cancel(&mut node), Outcome::NotFound);
    }
}

#[test]
fn two_nodes_share_one_key() {
    let Some(database) = Database::create() else { return };
    let mut first = database.join();
    let mut second = database.join();
    let keyed = |node: &Node| {
        let mut insert = Insert::new(TimeoutId::made_by(node.0.instance()), node.0.now() + HOUR, "topic");
        insert.key = Some("key".to_owned());
        insert
    };
    let insert = keyed(&first);
    let again = keyed(&second);
    let holder = insert.id;
    let created = first.write([Operation::Insert(insert)]).unwrap();
    assert_eq!(created, [Outcome::Created { replaced: None }]);
    assert_eq!(second.write([Operation::Insert(again)]).unwrap(), [Outcome::Kept(holder)]);
}

/// Reads a page as a user whose right to a row is a function that counts.
#[test]
fn a_page_visits_a_bounded_number_of_rows() {
    let Some(database) = Database::create() else { return };
    database.join().0.leave().unwrap();
    database.sql(
        "create sequence public.visits;
         create role clerk_of_pages login password 'right';
         grant usage on schema timer to clerk_of_pages;
         grant select, insert, update, delete on all tables in schema timer to clerk_of_pages;
         grant usage, select on all sequences in schema timer, public to clerk_of_pages;
         insert into timer.timeout(id, due, shard, format, topic, payload)
         select gen_random_uuid(), n, 7, 1, 'topic', '' from generate_series(1, 10000) n;
         alter table timer.timeout enable row level security;
         create policy counted on timer.timeout using (nextval('public.visits') > 0)",
    );
    let url = format!("postgres://clerk_of_pages:right@127.0.0.1:{}/{}", database.server.port(), database.name);
    let mut node = Node(crate::connected(&url).unwrap().lease(LEASE));
    node.0.rejoin().unwrap();
    let visits = || database.sql("select last_value from public.visits").parse::<u64>().unwrap();
    let before = visits();
    let mut page = Vec::new();
    node.0.load("topic", Position::START..Position::END, 10, &mut page).unwrap();
    assert_eq!(page.len(), 10);
    let visited = visits() - before;
    assert!((10..1_000).contains(&visited), "{visited} of 10,000 rows");
}

#[test]
fn an_idle_node_renews_a_third_of_its_lease_later() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(LEASE * 3600));
    node.listen();
    // A look that finds nothing does not lock the row.
    let row = || database.sql("select xmin, xmax, lease_until from timer.node");
    let before = row();
    let mut looks = Vec::new();
    node.keep_up_until(|node| {
        looks.extend(node.0.next_upkeep().filter(|next| !looks.contains(next)));
        looks.len() == 4
    });
    assert!(looks.iter().all(|next| *next <= std::time::Instant::now() + std::time::Duration::from_secs(1)));
    assert_eq!(row(), before);
}

/// The key is taken, so the second insert is executed after the commit of the first one.
#[test]
fn a_failure_after_a_commit_is_in_doubt() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    let due = node.0.now() + HOUR;
    let instance = node.0.instance();
    let keyed = |due| {
        let mut insert = Insert::new(TimeoutId::made_by(instance), due, "topic");
        insert.key = Some("key".to_owned());
        insert.if_pending = IfPending::Later;
        insert
    };
    node.write([Operation::Insert(keyed(due))]).unwrap();
    database.sql(
        "create function refuse() returns trigger language plpgsql as 'begin raise exception ''no'' using errcode = ''disk_full''; end';
         create trigger refuse before update on timer.timeout for each row execute function refuse()",
    );
    let inserts = [Insert::new(TimeoutId::made_by(instance), due, "topic"), keyed(due + 1)];
    let error = node.write(inserts.into_iter().map(Operation::Insert)).unwrap_err();
    assert!(matches!(&error, StoreError::InDoubt(why) if why.contains("a part of the batch was written")), "{error}");
    assert_eq!(database.sql("select count(*) from timer.timeout"), "2", "the first insert is on disk");
}

#[test]
fn no_way_to_schedule_is_early() {
    let Some(database) = Database::create() else { return };
    // The server has the clock of this machine.
    let (ledger, builder, ways) = Ledger::new(SystemTime::now, work);
    let timer = builder.open(PostgresStore::new(&database.url()).unwrap()).wait().unwrap();
    let expected = ledger.call(&timer);
    assert_on_time(std::iter::from_fn(|| ways.recv_timeout(Duration::from_secs(60)).ok()), expected);
    let is_on_time = database.sql(
        "create table called(at bigint);
         begin;
         do $$ begin perform pg_sleep(0.05); end $$;
         insert into called select (extract(epoch from clock_timestamp()) * 1000000)::bigint;
         do $$ begin perform timer.schedule('topic', 'payload'::text, '1 hour'); end $$;
         commit;
         select due >= at + 3600000000 from timer.timeout, called where topic = 'topic'",
    );
    assert_eq!(is_on_time, "t");
}
