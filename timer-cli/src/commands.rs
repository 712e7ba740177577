//! The commands.

use std::error::Error;
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;
use timer_durable::store::{Reader, Store};
use timer_durable::transaction::{Operation, Outcome, Target};
use timer_durable::{DeadFilter, DeadLetter, Filter, PendingRow, TimeoutId};

use crate::args::{Command, Options};
use crate::open;
use crate::print::{self, Printer};

type Failure = Box<dyn Error>;

/// The number of rows that are read or changed at a time.
const PAGE: usize = 500;

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let Options { store, json, .. } = options;
    match &options.command {
        Command::List => list(options, &mut *open::to_read(store)?),
        Command::Dead => dead(options, &mut *open::to_read(store)?),
        Command::Show(target) => {
            let mut store = open::to_read(store)?;
            if let Some(found) = store.get(target)? {
                return Ok(print::timeout(&found, *json)?);
            }
            let letter = find_letter(&mut *store, target)?;
            Ok(print::dead_letter(&letter.ok_or("no such timeout is pending, running or dead")?, *json)?)
        }
        Command::Counts => {
            let counts = open::to_read(store)?.counts()?;
            let text = format!("{} pending or running, {} dead", counts.pending, counts.dead);
            Ok(print::line(&if *json { json!(counts).to_string() } else { text })?)
        }
        Command::Cancel(target) => change(store, "cancelled", |_| Operation::Cancel(target.clone())),
        Command::Run(target) => {
            change(store, "due now", |store| Operation::Reset { target: target.clone(), due: store.now() })
        }
        Command::CancelMany { topic, prefix } => {
            let filter = Filter::new().topic(topic).key_prefix(prefix);
            open::to_change(store, |store| cancel_many(store, &filter))
        }
        Command::Requeue { id, without_key } => open::to_change(store, |store| {
            let without_key = *without_key;
            let requeue = |store: &dyn Store, id| Operation::Requeue { id, due: store.now(), without_key };
            letters(store, options, *id, "requeued", requeue)
        }),
        Command::Pause(topic) => open::to_change(store, |store| pause(store, topic)),
        Command::Resume(topic) => open::to_change(store, |store| resume(store, topic)),
        Command::Upgrade => open::upgrade(store),
        Command::Purge(id) => {
            open::to_change(store, |store| letters(store, options, *id, "purged", |_, id| Operation::Purge(id)))
        }
    }
}

fn list(options: &Options, store: &mut dyn Reader) -> Result<(), Failure> {
    let mut filter = Filter::new();
    filter.topic = options.topic.clone();
    filter.key_prefix = options.prefix.clone();
    filter.state = options.state;
    if let Some(end) = options.within.and_then(|within| SystemTime::now().checked_add(within)) {
        filter = filter.due(..=end);
    }
    let mut printer = Printer::new(options.json, &["ID", "TOPIC", "KEY", "DUE", "", "STATE", "ATTEMPT"]);
    let mut after = None::<PendingRow>;
    let mut left = options.limit;
    while left > 0 {
        let page = store.list(&filter, after.as_ref(), left.min(PAGE))?;
        let Some(last) = page.last() else { break };
        after = Some(last.clone());
        left -= page.len();
        page.iter().try_for_each(|row| printer.row(row))?;
    }
    Ok(printer.finish()?)
}

fn dead(options: &Options, store: &mut dyn Reader) -> Result<(), Failure> {
    let mut printer = Printer::new(options.json, &["ID", "TOPIC", "KEY", "DIED", "ATTEMPT", "REASON"]);
    let filter = dead_filter(options);
    let mut after = None;
    let mut left = options.limit;
    while left > 0 {
        let page = store.dead_letters(options.topic.as_deref(), after, PAGE)?;
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        for letter in page.iter().filter(|letter| filter.shows(letter)).take(left) {
            printer.letter(letter)?;
            left -= 1;
        }
    }
    Ok(printer.finish()?)
}

/// Returns the filter of the options.
fn dead_filter(options: &Options) -> DeadFilter {
    let mut filter = DeadFilter::new();
    filter.topic = options.topic.clone();
    filter.key_prefix = options.prefix.clone();
    match options.older_than.and_then(|age| SystemTime::now().checked_sub(age)) {
        Some(end) => filter.died(..end),
        None => filter,
    }
}

/// Returns the dead letter with an id, or the last one with a key.
fn find_letter(store: &mut dyn Reader, target: &Target) -> Result<Option<DeadLetter>, Failure> {
    let (topic, key) = match target {
        Target::Id(id) => {
            let before = id.as_u128().checked_sub(1).map(TimeoutId::from_u128);
            return Ok(store.dead_letters(None, before, 1)?.pop().filter(|letter| letter.id == *id));
        }
        Target::Key { topic, key } => (topic, key),
    };
    let mut after = None;
    let mut found = None;
    loop {
        let page = store.dead_letters(Some(topic), after, PAGE)?;
        let Some(last) = page.last() else { return Ok(found) };
        after = Some(last.id);
        found = page.into_iter().rfind(|letter| letter.key.as_ref() == Some(key)).or(found);
    }
}

fn pause(store: &mut dyn Store, topic: &str) -> Result<(), Failure> {
    store.set_paused(topic, true)?;
    let is_known = !store.list(&Filter::new().topic(topic), None, 1)?.is_empty();
    let known = if is_known { "" } else { ", which has no timeouts now" };
    Ok(print::line(&print::visible(&format!("paused: {topic}{known}")))?)
}

fn resume(store: &mut dyn Store, topic: &str) -> Result<(), Failure> {
    let was_paused = store.paused_topics()?.iter().any(|paused| paused == topic);
    store.set_paused(topic, false)?;
    let text = if was_paused { format!("resumed: {topic}") } else { format!("{topic} was not paused") };
    Ok(print::line(&print::visible(&text))?)
}

/// Returns the time until which the store looks for the operations that the database refuses.
fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// Changes one pending timeout.
fn change(store: &str, done: &str, operation: impl FnOnce(&dyn Store) -> Operation) -> Result<(), Failure> {
    let outcome = open::to_change(store, |store| {
        let operation = operation(store);
        Ok(store.write(&[operation], deadline())?.remove(0))
    })?;
    match outcome {
        Outcome::Changed(id) => Ok(print::line(&format!("{done}: {id}"))?),
        Outcome::Running => Err("an attempt is running, and nothing was changed".into()),
        Outcome::NotFound => Err("no such timeout is pending".into()),
        Outcome::Locked => Err("another transaction has locked the timeout; nothing was changed".into()),
        Outcome::Refused(why) => Err(format!("the store refuses this: {why}").into()),
        other => Err(format!("the store answered {other:?}").into()),
    }
}

/// Cancels the timeouts that the filter shows, a page at a time.
fn cancel_many(store: &mut dyn Store, filter: &Filter) -> Result<(), Failure> {
    let mut after = None::<PendingRow>;
    let mut cancelled = 0;
    let mut left = 0;
    loop {
        let page = store.list(filter, after.as_ref(), PAGE)?;
        let Some(last) = page.last() else { break };
        after = Some(last.clone());
        let batch: Vec<Operation> = page.iter().map(|row| Operation::Cancel(Target::Id(row.id))).collect();
        for outcome in store.write(&batch, deadline())? {
            match outcome {
                Outcome::Changed(_) => cancelled += 1,
                Outcome::NotFound => {}
                _ => left += 1,
            }
        }
    }
    Ok(print::line(&format!("{cancelled} cancelled, {left} running or locked"))?)
}

/// Changes one dead letter, or all that the options name.
fn letters(
    store: &mut dyn Store,
    options: &Options,
    id: Option<TimeoutId>,
    done: &str,
    operation: impl Fn(&dyn Store, TimeoutId) -> Operation,
) -> Result<(), Failure> {
    let change = |store: &mut dyn Store, id| {
        // The first of two letters with the same key gets it back, so each has its own batch.
        let operation = operation(store, id);
        let outcome = store.write(&[operation], deadline())?.remove(0);
        if outcome == Outcome::Changed(id) {
            print::line(&format!("{done}: {id}"))?;
        }
        Ok::<Outcome, Failure>(outcome)
    };
    if let Some(id) = id {
        return match change(store, id)? {
            Outcome::Changed(_) => Ok(()),
            Outcome::Kept(holder) => Err(format!(
                "the timeout {holder} has the key of the dead letter, and nothing was changed; see --without-key"
            )
            .into()),
            _ => Err("there is no such dead letter".into()),
        };
    }
    let filter = dead_filter(options);
    let mut after = None;
    let mut changed = 0;
    let mut taken = 0;
    loop {
        let page = store.dead_letters(options.topic.as_deref(), after, PAGE)?;
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        for letter in page.iter().filter(|letter| filter.shows(letter)) {
            match change(store, letter.id)? {
                Outcome::Changed(_) => changed += 1,
                Outcome::Kept(_) => taken += 1,
                _ => {}
            }
        }
    }
    print::line(&format!("{changed} {done}"))?;
    match taken {
        0 => Ok(()),
        taken => Err(format!("{taken} stay dead, because other timeouts have their keys; see --without-key").into()),
    }
}
