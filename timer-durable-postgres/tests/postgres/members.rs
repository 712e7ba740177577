//! Shards, leases, take-over and fencing.

use std::time::{Duration, Instant};

use timer_durable::StoreError;
use timer_durable::store::{Reader, Store};
use timer_durable::transaction::{Operation, Outcome};

use super::locks::Session;
use super::{Database, LEASE, Node};

#[test]
fn two_nodes_share_the_shards() {
    let Some(database) = Database::create() else { return };
    let mut first = database.join();
    assert_eq!(first.shards(), 64);
    let mut second = database.join();
    first.keep_up_until(|node| node.shards() == 32);
    second.keep_up_until(|node| node.shards() == 32);
    let owners = "select count(distinct owner), count(*) from timer.shard where owner is not null";
    assert_eq!(database.sql(owners), "2|64");
}

#[test]
fn each_of_nine_nodes_gets_its_share() {
    let Some(database) = Database::create() else { return };
    let mut nodes: Vec<Node> = (0..9).map(|_| database.join_with(|store| store.lease(LEASE * 60))).collect();
    let begun = Instant::now();
    loop {
        let shards: Vec<u32> = nodes.iter().map(Node::shards).collect();
        if shards == [8, 7, 7, 7, 7, 7, 7, 7, 7] {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(15), "{shards:?}");
        for node in &mut nodes {
            if node.0.next_upkeep().is_some_and(|next| next <= Instant::now()) {
                node.0.upkeep(&[]).unwrap();
            }
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

#[test]
fn a_store_that_has_not_joined_may_ask() {
    let Some(database) = Database::create() else { return };
    database.join().insert();
    let mut store = crate::connected(&database.url()).unwrap();
    assert_eq!(store.counts().unwrap().pending, 1);
    assert!(store.dead_letters(None, None, 9).unwrap().is_empty());
    store.leave().expect("there is nothing to hand back");
}

#[test]
fn a_dead_node_is_taken_over() {
    let Some(database) = Database::create() else { return };
    let mut dead = database.join();
    let id = dead.insert();
    assert_eq!(dead.attempt(id).attempt, 1);
    let mut heir = database.join();
    assert_eq!(heir.begin(id), Ok(Outcome::NotFound), "its lease holds");
    // The dead node renews nothing from here on.
    heir.keep_up_until(|node| node.shards() == 64);
    assert_eq!(heir.pending(), [id], "the attempt of a dead node does not count as running");
    assert_eq!(heir.attempt(id).attempt, 2);
    assert_eq!(dead.begin(id), Err(StoreError::Fenced));
    assert!(!dead.0.may_begin(), "its lease is over");
    dead.0.rejoin().unwrap();
    let late = dead.write([Operation::Done { id, attempt: 1, next: None, then: Vec::new() }]).unwrap();
    assert_eq!(late, [Outcome::NotFound], "a later attempt runs");
}

#[test]
fn a_statement_under_way_delays_the_take_over() {
    let Some(database) = Database::create() else { return };
    let dead = database.join();
    let mut heir = database.join();
    let instance = dead.0.instance();
    database.sql(&format!("update timer.node set lease_until = 0 where id = {instance}"));
    // A transaction of the dead node, which the server still executes.
    let mut under_way = Session::begin(&database);
    let fence = format!("select id from timer.node where id = {instance} and alive for share");
    assert_eq!(under_way.ask(&fence), instance.to_string());
    // The first renewal notices that the lease is over. One that follows after a third of a lease
    // would take the shards over.
    let renewed = |node: &Node| node.0.membership().unwrap().renewed.unwrap();
    let joined = renewed(&heir);
    let mut noticed = None;
    heir.keep_up_until(|node| {
        assert_eq!(node.shards(), 0, "the take-over waits for the end of the transaction");
        let last = renewed(node);
        last > joined && last - *noticed.get_or_insert(last) > LEASE / 3
    });
    under_way.end("commit");
    heir.keep_up_until(|node| node.shards() == 64);
}

/// A trigger holds the insert of a node whose lease is over.
#[test]
fn a_batch_under_way_delays_the_take_over() {
    let Some(database) = Database::create() else { return };
    let mut slow = database.join_with(|store| store.lease(LEASE * 60));
    database.sql(
        "create table public.go();
         create function wait() returns trigger language plpgsql as $$ begin
             while not exists (select from public.go) loop perform pg_sleep(0.01); end loop;
             return new;
         end $$;
         create trigger wait before insert on timer.timeout for each row execute function wait();
         update timer.node set lease_until = 0",
    );
    let writes = std::thread::spawn(move || (slow.insert(), slow));
    let held = "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()";
    database.wait_for(held, "1");
    let mut heir = database.join();
    let begun = Instant::now();
    while begun.elapsed() < LEASE * 3 {
        heir.0.upkeep(&[]).unwrap();
        assert_eq!(heir.shards(), 0, "the batch is not written yet");
    }
    database.sql("insert into public.go default values");
    let (id, mut slow) = writes.join().unwrap();
    heir.keep_up_until(|node| node.shards() == 64);
    assert_eq!(heir.pending(), [id]);
    assert_eq!(slow.begin(id), Err(StoreError::Fenced));
}

#[test]
fn a_release_keeps_running_attempts() {
    let Some(database) = Database::create() else { return };
    let mut first = database.join();
    let ids: Vec<_> = (0..64).map(|_| first.insert()).collect();
    ids.iter().for_each(|id| assert_eq!(first.attempt(*id).attempt, 1));
    let mut second = database.join();
    while first.shards() > 32 {
        first.0.upkeep(&ids).unwrap();
        std::thread::park_timeout(Duration::from_millis(20));
    }
    second.keep_up_until(|node| node.shards() == 32);
    assert_eq!(second.pending(), [], "all attempts still run at the first node");
    let ended = first.write(ids.iter().map(|id| Operation::Done { id: *id, attempt: 1, next: None, then: Vec::new() }));
    assert_eq!(ended.unwrap(), ids.iter().copied().map(Outcome::Changed).collect::<Vec<_>>());
}

/// The handlers of the first attempts still run where they began, although the timeouts ran again
/// at a node that is dead now.
#[test]
fn a_release_revives_no_attempt_of_a_dead_node() {
    let Some(database) = Database::create() else { return };
    let mut first = database.join();
    let ids: Vec<_> = (0..64).map(|_| first.insert()).collect();
    ids.iter().for_each(|id| assert_eq!(first.attempt(*id).attempt, 1));
    database.sql("update timer.timeout set attempt = 2, begun = begun - 1");
    let mut second = database.join();
    while first.shards() > 32 {
        first.0.upkeep(&ids).unwrap();
        std::thread::park_timeout(Duration::from_millis(20));
    }
    second.keep_up_until(|node| node.shards() == 32);
    assert_eq!((first.pending().len(), second.pending().len()), (64, 0));
    assert_eq!(first.attempt(ids[0]).attempt, 3);
}

#[test]
fn a_node_that_leaves_hands_over_at_once() {
    let Some(database) = Database::create() else { return };
    let mut first = database.join_with(|store| store.lease(LEASE * 3600));
    let id = first.insert();
    let mut second = database.join_with(|store| store.lease(LEASE * 3600));
    second.listen();
    second.hear(|| first.0.leave().unwrap());
    second.keep_up_until(|node| node.shards() == 64);
    assert_eq!(second.attempt(id).attempt, 1);
}

/// Logical replication copies the rows of the nodes and not the state of the sequence.
#[test]
fn a_sequence_that_was_not_copied_is_behind_no_instance() {
    let Some(database) = Database::create() else { return };
    (0..3).for_each(|_| drop(database.join()));
    database.sql("select setval('timer.instance', 1, false)");
    assert_eq!(database.join().0.instance(), 4);
    database.sql("insert into timer.node(id, lease_until, alive) values (1000000, 0, false)");
    let mut store = crate::connected(&database.url()).unwrap();
    let error = store.rejoin().unwrap_err().to_string();
    let (_, remedy) = error.split_once("behind the instance 1000000 in timer.node; execute ").expect(&error);
    database.sql(remedy);
    store.rejoin().unwrap();
    assert_eq!(store.instance(), 1_000_001);
    // After the last number, the sequence starts again.
    database.sql(
        "truncate timer.node; insert into timer.node(id, lease_until, alive) values (4294967294, 0, false);
         select setval('timer.instance', 4294967294)",
    );
    assert_eq!(database.join().0.instance(), 1);
}

#[test]
fn a_name_belongs_to_the_last_process() {
    let Some(database) = Database::create() else { return };
    let mut old = database.join_with(|store| store.lease(LEASE * 60).node("billing"));
    let id = old.insert();
    let mut new = database.join_with(|store| store.lease(LEASE * 60).node("billing"));
    assert_eq!((new.shards(), new.attempt(id).attempt), (64, 1), "without waiting for the lease");
    assert_eq!(new.0.membership().unwrap().name.as_deref(), Some("billing"));
    assert_eq!(old.begin(id), Err(StoreError::Fenced));
    let error = old.0.rejoin().unwrap_err();
    assert!(error.to_string().contains("another process has joined with the name billing"), "{error}");
    new.0.leave().unwrap();
    old.0.rejoin().unwrap();
    assert_eq!(old.shards(), 64);
}

#[test]
fn a_new_due_time_moves_a_timeout_to_its_writer() {
    let Some(database) = Database::create() else { return };
    let mut first = database.join();
    let id = first.insert();
    first.attempt(id);
    let mut second = database.join();
    first.keep_up_until(|node| node.shards() == 32);
    second.keep_up_until(|node| node.shards() == 32);
    // The node that began it may have lost the shard since.
    let now = second.0.now();
    let again = second.write([Operation::Retry { id, attempt: 1, due: now - 1, forgive: false }]);
    assert_eq!(again.unwrap(), [Outcome::Changed(id)]);
    assert_eq!(second.pending(), [id]);
    assert_eq!(second.attempt(id).attempt, 2);
}

#[test]
fn a_topic_without_handler_wanders_between_nodes() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    let ids: Vec<_> = (0..64).map(|_| node.insert()).collect();
    ids.iter().for_each(|id| assert_eq!(node.attempt(*id).attempt, 1));
    let mut other = database.join();
    while node.shards() > 32 {
        node.0.upkeep(&ids).unwrap();
        std::thread::park_timeout(Duration::from_millis(20));
    }
    other.keep_up_until(|node| node.shards() == 32);
    let due = node.0.now() - 1;
    let again = ids.iter().map(|id| Operation::Retry { id: *id, attempt: 1, due, forgive: true });
    assert_eq!(node.write(again).unwrap(), ids.iter().copied().map(Outcome::Changed).collect::<Vec<_>>());
    other.keep_up_until(|node| node.0.membership().unwrap().foreign > 0);
    let id = other.pending()[0];
    let attempt = other.attempt(id);
    assert_eq!((attempt.attempt, attempt.forgiven), (2, 1));
}

/// A trigger of the user refuses the rows of one shard that others have written.
#[test]
fn a_refused_row_hides_only_those_of_its_shard() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(LEASE * 3600));
    database.sql(
        "select timer.schedule('topic', ''::text, '1 hour') from generate_series(1, 256);
         update timer.timeout set shard = n % 64 from (
             select id as number, row_number() over () as n from timer.timeout
         ) rows where id = number;
         create function refuse() returns trigger language plpgsql as $$ begin
             if new.shard = 7 and new.foreign_xid is null then raise exception 'no'; end if;
             return new;
         end $$;
         create trigger refuse before update on timer.timeout for each row execute function refuse()",
    );
    let mut foreign = 0;
    let mut collect_until = |wanted| {
        let begun = Instant::now();
        while foreign < wanted {
            assert!(begun.elapsed() < Duration::from_secs(30), "{foreign} of {wanted}");
            foreign += node.0.upkeep(&[]).unwrap().foreign.len();
            std::thread::park_timeout(Duration::from_millis(20));
        }
        foreign
    };
    assert_eq!(collect_until(252), 252);
    database.sql("drop trigger refuse on timer.timeout");
    assert_eq!(collect_until(256), 256, "the rows that were refused");
}

/// The look is divided at the row that is refused, and a later part fails.
#[test]
fn a_look_that_fails_half_way_tells_of_the_rows_it_has_found() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    // Those of shards 0 to 38, without the row that is refused. The next part has shard 40.
    assert_eq!(look(&database, &mut node, "disk_full").unwrap(), 38);
    assert_eq!(database.sql("select count(*) from timer.timeout where foreign_xid is null"), "38");
}

#[test]
fn a_look_whose_outcome_is_unknown_fails() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    let error = look(&database, &mut node, "admin_shutdown").unwrap_err();
    assert!(matches!(error, StoreError::InDoubt(_)), "{error}");
    assert!(node.0.must_rejoin(), "all rows are read anew");
}

/// Looks for 64 rows of others, one in each shard. The row in shard 7 is refused, and the look at
/// shard 40 fails with an error. Returns the number of rows that were found.
fn look(database: &Database, node: &mut Node, error: &str) -> Result<usize, StoreError> {
    database.sql(&format!(
        "select timer.schedule('topic', ''::text, '1 hour') from generate_series(1, 64);
         update timer.timeout set shard = n % 64 from (
             select id as number, row_number() over (order by id) as n from timer.timeout
         ) rows where id = number;
         create function refuse() returns trigger language plpgsql as $$ begin
             if new.shard = 7 then raise exception 'no'; end if;
             if new.shard = 40 then raise exception 'no' using errcode = '{error}'; end if;
             return new;
         end $$;
         create trigger refuse before update on timer.timeout for each row execute function refuse()",
    ));
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < Duration::from_secs(30));
        match node.0.upkeep(&[])?.foreign.len() {
            0 => std::thread::park_timeout(Duration::from_millis(20)),
            foreign => return Ok(foreign),
        }
    }
}

#[test]
fn a_node_that_joins_again_listens_by_a_new_connection() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    let own = "from pg_stat_activity where datname = current_database() and application_name = 'timer-durable'";
    let listening = format!("select coalesce(min(pid), 0) {own} and query like '%timer_echo%'");
    database.wait_for(&format!("select ({listening}) > 0"), "t");
    let first = database.sql(&listening);
    database.sql(&format!("select pg_terminate_backend(pid) {own} and query not like '%timer_echo%'"));
    assert!(matches!(node.0.counts(), Err(StoreError::Failed(_))));
    node.0.rejoin().unwrap();
    database.wait_for(&format!("select ({listening}) not in (0, {first})"), "t");
}

#[test]
fn a_gain_of_shards_is_told_after_a_look_that_failed() {
    let Some(database) = Database::create() else { return };
    let mut first = database.join();
    (0..64).for_each(|_| _ = first.insert());
    database.sql(
        "select timer.schedule('topic', ''::text, '1 hour') from generate_series(1, 200);
         create function refuse() returns trigger language plpgsql as $$ begin
             if old.foreign_xid is not null and new.foreign_xid is null then
                 raise exception 'no' using errcode = 'disk_full';
             end if;
             return new;
         end $$;
         create trigger refuse before update on timer.timeout for each row execute function refuse()",
    );
    let mut second = database.join();
    let begun = Instant::now();
    let mut gained = false;
    while second.shards() < 32 {
        assert!(begun.elapsed() < Duration::from_secs(30));
        let _refused = first.0.upkeep(&[]);
        gained |= second.0.upkeep(&[]).is_ok_and(|upkeep| upkeep.shards_gained);
        std::thread::park_timeout(Duration::from_millis(20));
    }
    assert!(!gained, "each look has failed");
    database.sql("drop trigger refuse on timer.timeout");
    let begun = Instant::now();
    while !gained && begun.elapsed() < 5 * LEASE {
        first.0.upkeep(&[]).unwrap();
        gained |= second.0.upkeep(&[]).unwrap().shards_gained;
        std::thread::park_timeout(Duration::from_millis(20));
    }
    assert!(gained, "the keeper has to load the rows of the new shards");
}
