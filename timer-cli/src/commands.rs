//! The commands.

use std::error::Error;
use std::time::SystemTime;

use serde_json::json;
use timer_durable::transaction::{Operation, Outcome, Target};
use timer_durable::{Filter, PendingRow, Reader, Store, TimeoutId};

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
            let found = open::to_read(store)?.get(target)?;
            Ok(print::timeout(&found.ok_or("no such timeout is pending or running")?, *json)?)
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
        Command::Requeue(id) => open::to_change(store, |store| {
            letters(store, options, *id, "requeued", |store, id| Operation::Requeue { id, due: store.now() })
        }),
        Command::Pause(topic) => open::to_change(store, |store| Ok(store.set_paused(topic, true)?)),
        Command::Resume(topic) => open::to_change(store, |store| Ok(store.set_paused(topic, false)?)),
        Command::Upgrade => open::upgrade(store),
        Command::Purge(id) => {
            open::to_change(store, |store| letters(store, options, *id, "purged", |_, id| Operation::Purge(id)))
        }
    }
}

fn list(options: &Options, store: &mut dyn Reader) -> Result<(), Failure> {
    let mut filter = Filter::new();
    (filter.topic, filter.key_prefix, filter.state) = (options.topic.clone(), options.prefix.clone(), options.state);
    if let Some(end) = options.within.and_then(|within| SystemTime::now().checked_add(within)) {
        filter = filter.due(..=end);
    }
    let mut printer = Printer::new(options.json, &["ID", "TOPIC", "KEY", "DUE", "", "STATE", "ATTEMPT"]);
    let (mut after, mut left) = (None::<PendingRow>, options.limit);
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
    let (mut after, mut left) = (None, options.limit);
    while left > 0 {
        let page = store.dead_letters(options.topic.as_deref(), after, left.min(PAGE))?;
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        left -= page.len();
        page.iter().try_for_each(|letter| printer.letter(letter))?;
    }
    Ok(printer.finish()?)
}

/// Changes one pending timeout.
fn change(store: &str, done: &str, operation: impl FnOnce(&dyn Store) -> Operation) -> Result<(), Failure> {
    let outcome = open::to_change(store, |store| {
        let operation = operation(store);
        Ok(store.write(&[operation])?.remove(0))
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
    let (mut after, mut cancelled, mut left) = (None::<PendingRow>, 0, 0);
    loop {
        let page = store.list(filter, after.as_ref(), PAGE)?;
        let Some(last) = page.last() else { break };
        after = Some(last.clone());
        let batch: Vec<Operation> = page.iter().map(|row| Operation::Cancel(Target::Id(row.id))).collect();
        for outcome in store.write(&batch)? {
            match outcome {
                Outcome::Changed(_) => cancelled += 1,
                Outcome::NotFound => {}
                _ => left += 1,
            }
        }
    }
    Ok(print::line(&format!("{cancelled} cancelled, {left} running or locked"))?)
}

/// Changes one dead letter, or all of the topic.
fn letters(
    store: &mut dyn Store,
    options: &Options,
    id: Option<TimeoutId>,
    done: &str,
    operation: impl Fn(&dyn Store, TimeoutId) -> Operation,
) -> Result<(), Failure> {
    let change = |store: &mut dyn Store, id| {
        // Only one of two letters with the same key can get the key back, so each has its own
        // batch.
        let operation = operation(store, id);
        let is_changed = store.write(&[operation])? == [Outcome::Changed(id)];
        if is_changed {
            print::line(&format!("{done}: {id}"))?;
        }
        Ok::<bool, Failure>(is_changed)
    };
    if let Some(id) = id {
        return if change(store, id)? { Ok(()) } else { Err("there is no such dead letter".into()) };
    }
    let mut after = None;
    loop {
        let page = store.dead_letters(options.topic.as_deref(), after, PAGE)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.id);
        page.iter().try_for_each(|letter| change(store, letter.id).map(drop))?;
    }
}
