//! Lists, counts, requeues and purges the dead letters of a store whose program is not running.
#![forbid(unsafe_code)]

use std::error::Error;
use std::process::ExitCode;

use examples::cli::{self, Args, Checks, Refused, Stop};
use examples::durable::{LEASE, StoreName};
use timer_durable::transaction::{Operation, Outcome};
use timer_durable::{DeadLetter, Store, TimeoutId};

const USAGE: &str = "\
Lists, counts, requeues and purges dead letters. A requeued timeout is due at once. It loses its key if another
timeout has it by now. The program that owns the store must not be running.

Usage: dead_letters --store STORE [OPTIONS]

  --store STORE   sqlite:FILE or postgres://URL
  --do ACTION     list | count | requeue | purge [default: list]
  --id ID         the dead letter to requeue or purge, or all [default: all]
  -h, --help      print this
";

/// The number of dead letters that are read or changed at a time.
const PAGE: usize = 500;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    List,
    Count,
    Requeue,
    Purge,
}

struct Options {
    store: StoreName,
    action: Action,
    id: Option<TimeoutId>,
}

fn main() -> ExitCode {
    cli::main("dead_letters", USAGE, parse, run)
}

fn parse(args: &mut Args) -> Result<Options, Stop> {
    let (mut store, mut action, mut id) = (None, Action::List, None);
    let actions =
        [("list", Action::List), ("count", Action::Count), ("requeue", Action::Requeue), ("purge", Action::Purge)];
    while let Some(option) = args.option()? {
        match option {
            "--store" => store = Some(StoreName::from_args(args)?),
            "--do" => action = args.choice(&actions)?,
            "--id" => {
                let read = |text: &str| if text == "all" { Some(None) } else { text.parse().ok().map(Some) };
                id = args.value("32 hexadecimal digits, a UUID, or all", read)?;
            }
            _ => return Err(args.unknown(option)),
        }
    }
    let store = store.ok_or_else(StoreName::missing)?;
    if action == Action::Count && id.is_some() {
        return Err(Stop::Refused(Refused("--id is not allowed with --do count, which counts all".to_owned())));
    }
    Ok(Options { store, action, id })
}

fn run(Options { store, action, id }: Options) -> Result<Checks, Box<dyn Error>> {
    let mut store = store.open(None, LEASE)?;
    if action == Action::Count {
        println!("{} dead letters", store.counts()?.dead);
        return Ok(Checks::default());
    }
    if action != Action::List {
        // Only a member of the store may write.
        store.rejoin()?;
    }
    let (mut after, mut met) = (None, 0);
    loop {
        let page = store.dead_letters(None, after, PAGE)?;
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        let page: Vec<&DeadLetter> = page.iter().filter(|letter| id.is_none_or(|id| letter.id == id)).collect();
        met += page.len();
        match action {
            Action::List => page.iter().for_each(|letter| print(letter)),
            _ => change(&mut store, action, &page)?,
        }
    }
    store.leave()?;
    match id {
        Some(id) if met == 0 => Err(Refused(format!("--id: '{id}' given; allowed: the id of a dead letter")).into()),
        _ => Ok(Checks::default()),
    }
}

fn print(letter: &DeadLetter) {
    let DeadLetter { id, topic, key, attempt, reason, .. } = letter;
    println!("{id} {topic} {} attempt {attempt}: {}", key.as_deref().unwrap_or("-"), reason.replace('\n', " "));
}

fn change(store: &mut impl Store, action: Action, letters: &[&DeadLetter]) -> Result<(), Box<dyn Error>> {
    // Only one of two letters with the same key can get the key back, so each letter has its own
    // batch.
    for letter in letters {
        let id = letter.id;
        let operation = match action {
            Action::Requeue => Operation::Requeue { id, due: store.now() },
            _ => Operation::Purge(id),
        };
        let is_written = store.write(&[operation])? == [Outcome::Changed(id)];
        println!(
            "{} {id}",
            match action {
                // Another process was faster.
                _ if !is_written => "already gone:",
                Action::Requeue => "requeued",
                _ => "purged",
            }
        );
    }
    Ok(())
}
