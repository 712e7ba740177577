//! Drives several processes of `timeouts` on one PostgreSQL, ends and disturbs them and the server
//! in every way that can go wrong, and balances their answers.
//!
//! Nothing that was accepted is lost, nothing begins that was cancelled, no attempt runs twice, and
//! nothing is early by the server's clock.
//!
//! The environment variable `TIMER_LEDGER_KILLS` sets the number of kills (16). The test makes a
//! tenth as many kills at each chosen point, and a quarter as many during events of sessions.
#![cfg(unix)]
#![allow(clippy::expect_used, reason = "tests")]

mod account;
mod cluster;
mod points;
mod proxy;
mod sessions;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "../ledger/shim.rs"]
mod shim;

use std::time::Duration;

use cluster::{Cluster, LEASE};
use points::{Point, Points};
use proxy::Proxy;
use sessions::Sessions;
use timer_durable_tests::postgres_server::{Server, Shutdown};

const MILLI: Duration = Duration::from_millis(1);

fn kills() -> u64 {
    let Ok(text) = std::env::var("TIMER_LEDGER_KILLS") else { return 16 };
    text.parse().unwrap_or_else(|_| panic!("TIMER_LEDGER_KILLS: '{text}' given; allowed: a whole number"))
}

fn assert_balanced(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults, first:\n{}", faults.len(), faults[..faults.len().min(10)].join("\n"));
}

/// Nodes die at random moments, and close to the moments at which they take over or stop.
#[test]
fn nothing_is_lost_by_kills() {
    let Some(server) = Server::start_for_tests() else { return };
    let database = server.create_database();
    let mut cluster = Cluster::new(server.url(&database), 3);
    let mut left = kills();
    while left > 0 {
        let time = cluster.random.u64(20..400);
        cluster.load(time as u32 * MILLI);
        let index = cluster.random.usize(..cluster.nodes.len());
        if left % 8 == 3 {
            // In a release.
            cluster.nodes[index].tell("quit");
            let pause = cluster.random.u64(0..5_000);
            std::thread::sleep(Duration::from_micros(pause));
        }
        cluster.kill(index);
        left -= 1;
        if left % 8 == 5 && left > 0 {
            // The second node dies about when it takes over from the first one.
            let pause = cluster.random.u64(LEASE * 700..LEASE * 1_100);
            cluster.load(pause as u32 * MILLI);
            cluster.kill(0);
            left -= 1;
        }
        while cluster.nodes.len() < 3 {
            cluster.start(&[]);
        }
    }
    assert_balanced(&cluster.settle(&server, &database));
}

/// Nodes die in the middle of a take-over and of a release. The statement under way is either
/// executed without them or undone.
#[test]
fn nothing_is_lost_by_kills_at_chosen_points() {
    let Some(server) = Server::start_for_tests() else { return };
    let database = server.create_database();
    // The first connection installs the schema, so that the trigger can be added.
    Cluster::new(server.url(&database), 1).quit(0);
    let points = Points::install(&server, &database);
    // A statement of a node may take half of its lease.
    let mut cluster = Cluster::with_lease(server.url(&database), 3, 4);
    let most = (kills() / 10).max(1);
    for point in [Point::TakeOver, Point::Release] {
        let mut hits = 0;
        let mut misses = 0;
        while hits < most {
            assert!(misses < 20 + most, "{point:?}: {hits} of {most}, {misses} missed");
            cluster.load(300 * MILLI);
            points.close(point);
            let index = cluster.random.usize(..cluster.nodes.len());
            let first = cluster.name(index);
            match point {
                Point::TakeOver => cluster.kill(index),
                Point::Release => _ = cluster.nodes[index].tell("quit"),
            }
            let held = points.wait(Duration::from_secs(10));
            let victim = held.as_ref().and_then(|name| cluster.find(name));
            victim.into_iter().for_each(|index| cluster.kill(index));
            // A statement that is no longer held ended before the kill.
            let is_hit = victim.is_some() && points.held() == held;
            *(if is_hit { &mut hits } else { &mut misses }) += 1;
            if cluster.random.bool() {
                // The server gives up the statement.
                while points.held().is_some() {
                    std::thread::sleep(5 * MILLI);
                }
            }
            points.open();
            if let Some(index) = cluster.find(&first) {
                cluster.quit(index);
            }
            while cluster.nodes.len() < 3 {
                cluster.start(&[]);
            }
        }
        println!("{point:?}: {hits} kills, {misses} missed");
    }
    assert_balanced(&cluster.settle(&server, &database));
}

/// A node that is frozen for longer than its lease is taken over, and its late results are refused.
#[test]
fn nothing_is_lost_by_freezes() {
    let Some(server) = Server::start_for_tests() else { return };
    let database = server.create_database();
    let mut cluster = Cluster::new(server.url(&database), 2);
    cluster.wait_until_joined(&server, &database);
    for leases in [300, 1_500, 2_500, 1_100] {
        cluster.load(500 * MILLI);
        cluster.freeze(0, |others| others.load((LEASE * leases) as u32 * MILLI));
    }
    cluster.load(500 * MILLI);
    assert_balanced(&cluster.settle(&server, &database));
}

/// Sends events of sessions while the handlers of earlier events work and nodes die or freeze. The
/// last version of each session is indexed. No version is indexed twice or after a later one.
#[test]
fn no_session_loses_its_last_event() {
    let Some(server) = Server::start_for_tests() else { return };
    let database = server.create_database();
    // The first connection installs the schema, so that the trigger can be added.
    Cluster::new(server.url(&database), 1).quit(0);
    let sessions = Sessions::create(&server, &database);
    let mut cluster = Cluster::new(server.url(&database), 0);
    cluster.handler = sessions::HANDLER;
    (0..2).for_each(|_| cluster.start(&[]));
    cluster.wait_until_joined(&server, &database);
    for n in 1..=(kills() / 4).max(4) {
        let time = cluster.random.u64(20..400);
        sessions.send(time as u32 * MILLI);
        let index = cluster.random.usize(..2);
        if n % 4 == 0 {
            cluster.freeze(index, |_| sessions.send((LEASE * 1_300) as u32 * MILLI));
        } else {
            cluster.kill(index);
            cluster.start(&[]);
        }
    }
    assert_balanced(&cluster.settle(&server, &database));
    assert_balanced(&sessions.close());
}

/// The server restarts under load, after a checkpoint and after a crash, and is away for longer
/// than a lease.
#[test]
fn nothing_is_lost_by_restarts_of_the_server() {
    let Some(mut server) = Server::start_for_tests() else { return };
    let database = server.create_database();
    let mut cluster = Cluster::new(server.url(&database), 2);
    cluster.wait_until_joined(&server, &database);
    for (how, leases) in [(Shutdown::Fast, 0), (Shutdown::Immediate, 0), (Shutdown::Immediate, 1_500)] {
        cluster.load(1_000 * MILLI);
        cluster.all_suffer();
        server.stop(how);
        cluster.load((LEASE * leases) as u32 * MILLI);
        server.launch();
        cluster.load(500 * MILLI);
    }
    assert_balanced(&cluster.settle(&server, &database));
}

/// Connections are cut at any byte, refused, and answered late.
#[test]
fn nothing_is_lost_by_the_network() {
    let Some(server) = Server::start_for_tests() else { return };
    let database = server.create_database();
    let proxy = Proxy::start(server.port());
    let url = format!("postgres://timer@127.0.0.1:{}/{database}", proxy.port());
    let mut cluster = Cluster::new(url, 2);
    cluster.wait_until_joined(&server, &database);
    cluster.load(1_000 * MILLI);
    cluster.all_suffer();
    for _ in 0..20 {
        proxy.cut_after(cluster.random.i64(0..100_000));
        while !proxy.has_cut() {
            cluster.load(20 * MILLI);
        }
    }
    cluster.load(500 * MILLI);
    proxy.refuse(true);
    cluster.load((LEASE * 1_500) as u32 * MILLI);
    proxy.refuse(false);
    cluster.load(500 * MILLI);
    proxy.delay(1_000 * MILLI);
    cluster.load(2_000 * MILLI);
    proxy.delay(Duration::ZERO);
    cluster.load(500 * MILLI);
    assert_balanced(&cluster.settle(&server, &database));
}

/// The clocks of the nodes are a minute apart. Only the server's clock counts.
#[test]
fn clocks_of_nodes_do_not_matter() {
    let (Some(server), Some(library)) = (Server::start_for_tests(), shim::library()) else { return };
    let database = server.create_database();
    let folder = std::env::temp_dir().join(format!("timer-clocks-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut cluster = Cluster::new(server.url(&database), 0);
    for seconds in [-60_i64, 0, 60] {
        let clock = folder.join(seconds.to_string());
        std::fs::write(&clock, (seconds * 1_000_000).to_ne_bytes()).expect("the clock's file");
        let library = library.display().to_string();
        cluster.start(&[("LD_PRELOAD", library), ("SHIM_CLOCK", clock.display().to_string())]);
    }
    cluster.load(2_000 * MILLI);
    cluster.kill(0);
    cluster.load(2_000 * MILLI);
    assert_balanced(&cluster.settle(&server, &database));
    std::fs::remove_dir_all(folder).expect("the folder is removed");
}

/// Twenty nodes start at once, and nineteen are killed at once. The last one runs everything, and
/// at no commit a shard changes its owner while the old one is alive.
#[test]
fn a_herd_leaves_everything_to_its_last_node() {
    let Some(server) = Server::start_for_tests() else { return };
    let database = server.create_database();
    // The first connection installs the schema, so that the trigger sees all changes.
    Cluster::new(server.url(&database), 1).quit(0);
    server.sql(
        &database,
        "create table public.fault(shard int, old bigint, new bigint);
         create function watch() returns trigger language plpgsql as $$ begin
             if old.owner is distinct from new.owner and (
                 new.epoch < old.epoch or (new.owner is not null and new.epoch = old.epoch)
                 or (old.owner is not null and new.owner is not null
                     and exists (select from timer.node where id = old.owner and alive))
             ) then insert into public.fault values (new.shard, old.owner, new.owner); end if;
             return null;
         end $$;
         create trigger watch after update on timer.shard for each row execute function watch()",
    );
    let mut cluster = Cluster::new(server.url(&database), 20);
    cluster.load(3_000 * MILLI);
    while cluster.nodes.len() > 1 {
        cluster.kill(1);
    }
    cluster.load(1_000 * MILLI);
    assert_balanced(&cluster.settle(&server, &database));
    assert_eq!(server.sql(&database, "select * from public.fault"), "");
}
