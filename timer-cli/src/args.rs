//! The command line.

use std::ffi::OsString;
use std::time::Duration;

use lexopt::{Arg, ValueExt};
use timer_durable::transaction::Target;
use timer_durable::{TimeoutId, TimeoutState};

/// The command with its operands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    List,
    Show(Target),
    Counts,
    Dead,
    Cancel(Target),
    /// Cancels the timeouts of the topic and the prefix.
    CancelMany {
        topic: String,
        prefix: String,
    },
    Run(Target),
    /// `None` is all dead letters.
    Requeue {
        id: Option<TimeoutId>,
        without_key: bool,
    },
    Purge(Option<TimeoutId>),
    Pause(String),
    Resume(String),
    Upgrade,
}

/// The options of a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) store: String,
    pub(crate) command: Command,
    pub(crate) topic: Option<String>,
    pub(crate) prefix: Option<String>,
    pub(crate) state: Option<TimeoutState>,
    pub(crate) within: Option<Duration>,
    pub(crate) older_than: Option<Duration>,
    pub(crate) limit: usize,
    pub(crate) json: bool,
}

/// A command line that was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    Run(Options),
    Help,
    Version,
}

const COMMANDS: [&str; 11] =
    ["list", "show", "counts", "dead", "cancel", "run", "requeue", "purge", "pause", "resume", "upgrade"];

const STORES: &str = "a file, sqlite:FILE, postgres://USER@HOST/DATABASE";

const CANCELS: &str = "allowed: cancel ID, cancel TOPIC KEY, cancel --topic TOPIC --prefix PREFIX";

/// Reads a command line. An error names the given and the allowed values.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Parsed, lexopt::Error> {
    let mut parser = lexopt::Parser::from_args(args);
    let mut store = None;
    let mut topic = None;
    let mut prefix = None;
    let mut state = None;
    let mut within = None;
    let mut older_than = None;
    let mut limit = None;
    let mut json = false;
    let mut without_key = false;
    let mut words = Vec::new();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("store") => store = Some(parser.value()?.string()?),
            Arg::Long("topic") => topic = Some(parser.value()?.string()?),
            Arg::Long("prefix") => prefix = Some(parser.value()?.string()?),
            Arg::Long("state") => state = Some(read_state(&parser.value()?.string()?)?),
            Arg::Long("within") => within = Some(parser.value()?.parse_with(humantime::parse_duration)?),
            Arg::Long("older-than") => older_than = Some(parser.value()?.parse_with(humantime::parse_duration)?),
            Arg::Long("limit") => limit = Some(parser.value()?.parse()?),
            Arg::Long("json") => json = true,
            Arg::Long("without-key") => without_key = true,
            Arg::Short('h') | Arg::Long("help") => return Ok(Parsed::Help),
            Arg::Short('V') | Arg::Long("version") => return Ok(Parsed::Version),
            Arg::Value(word) => words.push(word.string()?),
            other => return Err(other.unexpected()),
        }
    }
    let store = store.ok_or_else(|| format!("--store is missing; allowed: {STORES}"))?;
    check_store(&store)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let name = words.first().copied().unwrap_or_default();
    for (option, is_given, allowed) in [
        ("--topic", topic.is_some(), &["list", "dead", "cancel", "requeue", "purge"][..]),
        ("--prefix", prefix.is_some(), &["list", "dead", "cancel", "requeue", "purge"]),
        ("--older-than", older_than.is_some(), &["dead", "requeue", "purge"]),
        ("--state", state.is_some(), &["list"]),
        ("--within", within.is_some(), &["list"]),
        ("--limit", limit.is_some(), &["list", "dead"]),
        ("--without-key", without_key, &["requeue"]),
    ] {
        if is_given && COMMANDS.contains(&name) && !allowed.contains(&name) {
            return Err(format!("{option} goes with {}, and not with '{name}'", allowed.join(", ")).into());
        }
    }
    let mut command = command(&words, topic.as_deref(), prefix.as_deref())?;
    if let Command::Requeue { without_key: given, .. } = &mut command {
        *given = without_key;
    }
    let is_one = matches!(command, Command::Requeue { id: Some(_), .. } | Command::Purge(Some(_)));
    if is_one && (topic.is_some() || prefix.is_some() || older_than.is_some()) {
        return Err("--topic, --prefix and --older-than need `all`".into());
    }
    let limit = limit.unwrap_or(100);
    Ok(Parsed::Run(Options { store, command, topic, prefix, state, within, older_than, limit, json }))
}

/// Returns the command of the words that are no options.
fn command(words: &[&str], topic: Option<&str>, prefix: Option<&str>) -> Result<Command, lexopt::Error> {
    let many = |topic: &str, prefix: &str| Command::CancelMany { topic: topic.to_owned(), prefix: prefix.to_owned() };
    Ok(match (words, topic, prefix) {
        (["list"], Some(_), Some(_)) | (["list"], _, None) => Command::List,
        (["list" | "cancel"], None, Some(_)) => return Err("--prefix needs --topic".into()),
        (["cancel"], Some(topic), Some(prefix)) => many(topic, prefix),
        (["cancel", topic], None, Some(prefix)) => many(topic, prefix),
        (["cancel", ..], Some(_), _) | (["cancel", ..], _, Some(_)) => return Err(CANCELS.into()),
        (["counts"], ..) => Command::Counts,
        (["dead"], ..) => Command::Dead,
        (["show", rest @ ..], ..) => Command::Show(target(rest)?),
        (["cancel", rest @ ..], ..) => Command::Cancel(target(rest)?),
        (["run", rest @ ..], ..) => Command::Run(target(rest)?),
        (["requeue", rest @ ..], ..) => Command::Requeue { id: letter(rest)?, without_key: false },
        (["purge", rest @ ..], ..) => Command::Purge(letter(rest)?),
        (["pause", topic], ..) => Command::Pause((*topic).to_owned()),
        (["resume", topic], ..) => Command::Resume((*topic).to_owned()),
        (["upgrade"], ..) => Command::Upgrade,
        (words, ..) => {
            return Err(format!("the command is '{}'; allowed: {}", words.join(" "), COMMANDS.join(", ")).into());
        }
    })
}

fn target(words: &[&str]) -> Result<Target, lexopt::Error> {
    match words {
        [id] => id.parse().map(Target::Id).map_err(|error| lexopt::Error::Custom(Box::new(error))),
        [topic, key] => Ok(Target::Key { topic: (*topic).to_owned(), key: (*key).to_owned() }),
        _ => Err(format!("the target is '{}'; allowed: ID, or TOPIC KEY", words.join(" ")).into()),
    }
}

/// Reads the id of a dead letter, or `None` for all of them.
fn letter(words: &[&str]) -> Result<Option<TimeoutId>, lexopt::Error> {
    match words {
        ["all"] => Ok(None),
        [id] => id.parse().map(Some).map_err(|error| lexopt::Error::Custom(Box::new(error))),
        _ => Err(format!("the dead letter is '{}'; allowed: ID, all", words.join(" ")).into()),
    }
}

/// Refuses a URL of an unknown scheme. The error does not repeat the rest of the URL, which may
/// have a password.
fn check_store(store: &str) -> Result<(), lexopt::Error> {
    match store.split_once("://") {
        Some((scheme, _)) if !scheme.contains('/') && !["sqlite", "postgres", "postgresql"].contains(&scheme) => {
            Err(format!("--store: '{scheme}://' given; allowed: {STORES}").into())
        }
        _ => Ok(()),
    }
}

fn read_state(text: &str) -> Result<TimeoutState, lexopt::Error> {
    match text {
        "pending" => Ok(TimeoutState::Pending),
        "running" => Ok(TimeoutState::Running),
        "retrying" => Ok(TimeoutState::Retrying),
        "queued" => Ok(TimeoutState::Queued),
        other => Err(format!("--state: '{other}' given; allowed: pending, running, retrying, queued").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Command, String> {
        match parse(line.split(' ').map(OsString::from)) {
            Ok(Parsed::Run(options)) => Ok(options.command),
            Ok(other) => Err(format!("{other:?}")),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_target_is_an_id_or_a_key() {
        let key = Target::Key { topic: "t".to_owned(), key: "k".to_owned() };
        assert_eq!(read("--store a cancel t k"), Ok(Command::Cancel(key)));
        let id = TimeoutId::from_u128(7);
        assert_eq!(read(&format!("show {id} --store a")), Ok(Command::Show(Target::Id(id))));
        assert_eq!(read("--store a purge all"), Ok(Command::Purge(None)));
        let many = Command::CancelMany { topic: "t".to_owned(), prefix: "7/".to_owned() };
        for line in ["--store a cancel --topic t --prefix 7/", "--store a cancel t --prefix 7/"] {
            assert_eq!(read(line).as_ref(), Ok(&many));
        }
    }

    #[test]
    fn a_refusal_names_the_allowed_values() {
        for (line, text) in [
            ("list", "--store is missing"),
            ("--store a eat", "the command is 'eat'; allowed: list, show"),
            ("--store a cancel", "allowed: ID, or TOPIC KEY"),
            ("--store a requeue", "allowed: ID, all"),
            ("--store a show 17", "32 hexadecimal digits"),
            ("--store a list --prefix x", "--prefix needs --topic"),
            ("--store a list --state old", "allowed: pending, running, retrying, queued"),
            ("--store a list --within soon", "soon"),
            ("--store a list --size 3", "--size"),
            ("--store mysql://me:secret@db/shop list", "'mysql://' given; allowed: a file, sqlite:FILE, postgres://"),
            ("--store a cancel t k --prefix x", "cancel TOPIC KEY, cancel --topic TOPIC --prefix PREFIX"),
            ("--store a cancel k --topic t", "cancel TOPIC KEY, cancel --topic TOPIC --prefix PREFIX"),
            ("--store a purge 00000000000000000000000000000007 --older-than 1d", "--older-than need `all`"),
            ("--store a show t k --limit 3", "--limit goes with list, dead, and not with 'show'"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(text), "{line}: {error}");
        }
    }
}
