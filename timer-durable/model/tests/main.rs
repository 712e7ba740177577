//! The explicit-state model of the durable protocol.
//!
//! The model is the protocol without its data. It has a store whose transactions are atomic steps,
//! one or two nodes that compose transactions from their memory and apply the answers, and the
//! faults that can happen in between. The checker visits every state that a bounded configuration
//! can reach, and evaluates the promises in each of them.
//!
//! # The protocol
//!
//! The store is a list of timeouts, sorted by due time and id. A node owns *shards* of the list,
//! and its memory holds the head of them: **every pending row of its shards before the *bound* is
//! in memory**. The keeper of the node has one transaction under way at a time, with the name that
//! it has in the product ([`transaction::Transaction`]):
//!
//! 1. `insert`, `reset`, `retry` and `requeue` write a due time and leave the row in a shard of the
//!    writer. A writer without shards sets the *foreign* flag instead, and the owner's `sweep`
//!    collects the row. After the commit, the writer puts the row into its memory if it lies before
//!    the bound.
//! 2. `load` reads the next page behind the bound while memory has room. A page that is shorter
//!    than asked for moves the bound to infinity. A node with too many entries drops the latest
//!    ones and lowers the bound to the first of them.
//! 3. `begin` counts the attempt and writes the *epoch* of the shard into the row. It decides
//!    between a handler and a cancel. It answers `NotYet` if the row is pending and due later, so
//!    that an entry which was loaded with an older due time is put back and not dropped.
//! 4. `done`, `retry` and `bury` need the attempt that `begin` has counted, and a row that is
//!    begun. A result whose answer was lost is sent again as it was.
//! 5. Every transaction starts with the *fence*, which refuses an instance that is not alive. `take
//!    over` ends an instance whose lease has lapsed, and raises the epoch of its shards, so that
//!    the rows which the dead instance had begun are pending again. The new owner drops its memory
//!    and loads from the beginning.
//! 6. After a lost answer the node *rejoins*. One transaction ends the old instance, creates a new
//!    one and raises the epochs. The node makes the new instance's id itself, because the answer of
//!    this transaction can be lost as well, and the next rejoin has to end that instance, too.
//! 7. A node starts an attempt only while its lease holds by its own clock.
//! 8. `release` takes the rows whose handlers run here along into a shard that the node keeps. A
//!    node that keeps none waits for its handlers.
//!
//! A store that belongs to one process, as an SQLite file does, has no leases and no second node,
//! and a transaction ends with its process. A start is then a rejoin.
//!
//! # Inserts in doubt
//!
//! An insert whose answer was lost may still be executed, after it was repeated on another node and
//! cancelled there. It must not live again, so an id carries the time of its birth and the instance
//! that made it (none if a caller made it), and
//!
//! - the store refuses an insert later than [`store::WINDOW`] after the birth of its id, and
//! - a row that ends within this window leaves a tombstone until the window closes, unless the
//!   instance that made the id ends the row itself.
//!
//! The exception makes tombstones rare, because most timeouts end where they were made, or later
//! than the window. It is sound because the keeper of an instance knows the answer of its insert
//! before it sends the next transaction. The tombstone has to occupy the primary key, because the
//! late insert may run at the same time as the cancel, and only the key puts the two in an order.
//! The mutants `NoTombstone`, `TombstoneOnlyForCallers`, `TombstoneExpiresEarly` and `InsertAnyAge`
//! show the traces without each part.
//!
//! # Faults
//!
//! A [`state::Budget`] limits crashes, lapsing leases, broken connections, transactions that are
//! executed late, answers that arrive late, and calls. The node's idea of the store's clock may be
//! one tick ahead. Clients that are not nodes insert, reset and cancel without a lease.
//!
//! # Promises
//!
//! See [`properties`]. To check D2, each state is played to the end. The faults stop, leases of
//! dead instances lapse, the nodes that are left do their duties, and every timeout has to end.
//!
//! # Running it
//!
//! `cargo test -p timer-durable-model -- --nocapture` explores the configurations that end within
//! seconds, prints the states of each, and prints the trace that catches each mutant. The
//! environment variable `TIMER_MODEL_LONG` adds the larger configurations, and explores the smaller
//! ones for the mutants that are listed as harmless.
//!
//! The model has no batches (a commit orders their parts, and no id is in a batch twice), no
//! payloads, no periodic schedules, not more nodes and rows than a configuration has, and no steps
//! of the store's clock (the store keeps its clock from going back).

mod action;
mod composing;
mod configurations;
mod mutants;
mod node;
mod properties;
mod protocol;
mod state;
mod store;
mod transaction;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use stateright::{Checker, Expectation, HasDiscoveries, Model};

use action::Action;
use configurations::Protocol;
use mutants::{Expected, Mutant};

/// No configuration may take longer, so that a mistake in a bound does not use up the memory.
const LIMIT: Duration = Duration::from_secs(600);

fn is_long_run() -> bool {
    std::env::var_os("TIMER_MODEL_LONG").is_some()
}

/// The outcome of exploring one configuration.
struct Exploration {
    states: usize,
    depth: usize,
    seconds: f64,
    complete: bool,
    /// The first promise that is broken, and the actions that break it.
    broken: Option<(&'static str, Vec<Action>)>,
    /// Situations that should be possible and never came up.
    unseen: Vec<&'static str>,
}

fn explore(protocol: Protocol, threads: usize) -> Exploration {
    let start = Instant::now();
    let properties = protocol.properties();
    let checker = protocol.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures).timeout(LIMIT);
    let checker = checker.spawn_bfs().join();
    let found: HashMap<_, _> = checker.discoveries();
    let of = |expectation| properties.iter().filter(move |property| property.expectation == expectation);
    let unseen = of(Expectation::Sometimes).map(|property| property.name).filter(|name| !found.contains_key(name));
    let broken = of(Expectation::Always).filter_map(|property| Some((property.name, found.get(property.name)?)));
    let broken = broken.map(|(name, path)| (name, path.clone().into_actions()));
    Exploration {
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        seconds: start.elapsed().as_secs_f64(),
        complete: start.elapsed() < LIMIT,
        broken: broken.min_by_key(|(_, actions)| actions.len()),
        unseen: unseen.collect(),
    }
}

fn trace(name: &str, actions: &[Action]) -> String {
    actions.iter().fold(format!("      {name}"), |text, action| format!("{text}\n        {action:?}"))
}

#[test]
fn every_configuration_keeps_the_promises() {
    let mut failures = Vec::new();
    let mut sum = 0;
    for protocol in configurations::ALL.iter().filter(|protocol| !protocol.long || is_long_run()) {
        let name = protocol.name;
        let Exploration { states, depth, seconds, complete, broken, unseen } = explore(protocol.clone(), 2);
        println!("{name:<36} {states:>9} states, depth {depth:>2}, {seconds:>5.1} s");
        sum += states;
        if let Some((promise, actions)) = broken {
            failures.push(format!("{name}\n{}", trace(promise, &actions)));
        } else if !complete || !unseen.is_empty() {
            failures.push(format!("{name}: complete: {complete}, never seen: {unseen:?}"));
        }
    }
    println!("{sum} states in all");
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn every_mutant_is_caught() {
    let mut failures = Vec::new();
    let find = |name: &str| configurations::ALL.iter().find(|protocol| protocol.name == name);
    for (mutant, text, expected) in mutants::ALL {
        let Expected::CaughtIn(name) = expected else { continue };
        let Some(protocol) = find(name) else { panic!("{mutant:?}: no configuration is called {name}") };
        let outcome = explore(Protocol { mutant: Some(*mutant), ..protocol.clone() }, 1);
        match outcome.broken {
            Some((promise, actions)) => {
                println!("  {mutant:?}: {text}\n    {name}, {} steps", actions.len());
                println!("{}", trace(promise, &actions));
            }
            None => failures.push(format!("{mutant:?}: {text}; not caught in {name}, {} states", outcome.states)),
        }
    }
    let of_one = mutants::ALL
        .iter()
        .filter(|(_, _, expected)| matches!(expected, Expected::CaughtIn(name) if name.starts_with("one")));
    let of_one = of_one.count();
    let caught = mutants::ALL.len() - harmless().count();
    println!("{caught} mutants caught, {of_one} of them with one node; {} are harmless", harmless().count());
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    assert!(caught >= 30 && of_one >= 20, "{caught} mutants, {of_one} of one node");
}

/// A mutant that is listed as harmless and is caught shows that its reason is wrong.
#[test]
fn harmless_mutants_keep_the_promises() {
    for (mutant, reason) in harmless() {
        println!("  {mutant:?}: {reason}");
        if !is_long_run() {
            continue;
        }
        for protocol in configurations::ALL.iter().filter(|protocol| !protocol.long) {
            let outcome = explore(Protocol { mutant: Some(mutant), ..protocol.clone() }, 2);
            if let Some((promise, actions)) = outcome.broken {
                panic!("{mutant:?} is not harmless in {}\n{}", protocol.name, trace(promise, &actions));
            }
            assert!(outcome.complete, "{mutant:?} in {}: not explored within {LIMIT:?}", protocol.name);
        }
    }
}

fn harmless() -> impl Iterator<Item = (Mutant, &'static str)> {
    mutants::ALL.iter().filter_map(|(mutant, _, expected)| match expected {
        Expected::Harmless(reason) => Some((*mutant, *reason)),
        Expected::CaughtIn(_) => None,
    })
}
