//! The command `timer`, which shows and changes durable timeouts.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod open;
mod print;

use std::process::ExitCode;

const USAGE: &str = "\
Shows and changes durable timeouts in an SQLite file or a PostgreSQL database.

Usage: timer --store STORE COMMAND [OPTIONS]

Commands:
  list              timeouts that are pending or running
  show TARGET       one of them or a dead letter, with its payload
  counts            the number of timeouts and of dead letters
  dead              dead letters
  cancel TARGET     end a pending timeout
  cancel TOPIC --prefix PREFIX
                    end the pending timeouts of a topic whose keys begin with this
  run TARGET        make a pending timeout due now
  requeue ID|all    make a dead letter pending again and due now
  purge ID|all      delete a dead letter
  pause TOPIC       let no timeout of a topic begin, on all nodes
  resume TOPIC      end a pause
  upgrade           bring the schema of an earlier release to this one

A TARGET is an ID, or a TOPIC and a KEY. While a program owns an SQLite file, only list, show, counts
and dead work. A change of a PostgreSQL database joins it as a node for a moment.

Options:
  --store STORE     a file, sqlite:FILE or postgres://USER@HOST/DATABASE
  --topic TOPIC     list, dead, requeue all, purge all: only this topic
  --prefix PREFIX   the same, and cancel: only keys that begin with this; list and cancel need a topic
  --older-than TIME dead, requeue all, purge all: only those that died longer ago, such as 30d
  --state STATE     list: only pending, running, retrying or queued
  --within TIME     list: only those that are due within this time, such as 90s or 2h
  --limit N         list, dead: at most N rows [default: 100]
  --without-key     requeue: as timeouts without keys, beside those that have the keys
  --json            one JSON object per line
  -h, --help        print this
  -V, --version     print the version

The exit code is 0 if the store is now as the command asks, 1 if not, and 2 for a command line that is
not understood. To pause what is paused, or to requeue all of no dead letters, succeeds.
";

fn main() -> ExitCode {
    let options = match args::parse(std::env::args_os().skip(1)) {
        Ok(args::Parsed::Run(options)) => options,
        Ok(args::Parsed::Help) => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Ok(args::Parsed::Version) => {
            println!("timer {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("timer: {error}\nSee timer --help.");
            return ExitCode::from(2);
        }
    };
    match commands::run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The text may have a name of the store.
            eprintln!("timer: {}", print::visible(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}
