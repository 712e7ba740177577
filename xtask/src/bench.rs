//! `cargo xtask bench`: the workloads side by side with the peers, or the criterion benches of single operations; and the
//! smoke run that `ci` makes of the latter.

use crate::args::Args;
use crate::cargo::{Cargo, Failure};

/// The timers that are built without the feature `peers`, which brings the crates of the others.
const WITHOUT_FEATURE: &[&str] = &["timer", "timer-hashed", "btree", "heap", "floor"];

pub(crate) fn command(mut args: Args) -> Result<(), Failure> {
    if args.flag("--criterion") {
        return criterion(&args.done_with_rest()?);
    }
    let wanted = Wanted::take(args)?;
    // All at once: the report starts the others.
    wanted.cargo("build --release -p timer-bench --bins").run()?;
    wanted.cargo("run --quiet --release -p timer-bench --bin bench-report").rest(&wanted.words).run()
}

/// Every benchmark once, unmeasured: does it still build and run?
pub(crate) fn smoke() -> Result<(), Failure> {
    criterion(&["--test".to_owned()])
}

fn criterion(rest: &[String]) -> Result<(), Failure> {
    Cargo::new("bench -p timer-bench").rest(rest).run()
}

/// What is to be run side by side.
#[derive(Debug)]
struct Wanted {
    /// With the crates of the peers.
    peers: bool,
    /// The words for the report, which checks names and lists what there is.
    words: Vec<String>,
}

impl Wanted {
    fn take(mut args: Args) -> Result<Self, Failure> {
        let mut words = Vec::new();
        if args.flag("--quick") {
            words.push("--quick".to_owned());
        }
        let peers = args.value("--peers")?;
        let needed = |list: &String| list.split(',').any(|peer| !WITHOUT_FEATURE.contains(&peer));
        let feature = peers.as_ref().is_none_or(needed);
        let values = [("--peers", peers), ("--save", args.value("--save")?), ("--baseline", args.value("--baseline")?)];
        for (name, value) in values {
            words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        }
        words.extend(args.positional());
        args.done()?;
        Ok(Self { peers: feature, words })
    }

    fn cargo(&self, line: &str) -> Cargo {
        let cargo = Cargo::new(line);
        if self.peers { cargo.arg("--features").arg("peers") } else { cargo }
    }
}

#[cfg(test)]
mod tests {
    use super::Wanted;
    use crate::args::Args;
    use crate::cargo::Failure;

    fn wanted(line: &str) -> Result<Wanted, Failure> {
        Wanted::take(Args::new(line.split_whitespace().map(str::to_owned)))
    }

    #[test]
    fn the_words_for_the_report_are_handed_on() {
        let wanted = wanted("W1,W2 --save a --quick --peers tokio,heap --baseline=b").unwrap();
        assert_eq!(wanted.words.join(" "), "--quick --peers tokio,heap --save a --baseline b W1,W2");
    }

    #[test]
    fn the_crates_of_the_peers_are_built_only_where_they_are_needed() {
        assert!(wanted("").unwrap().peers);
        assert!(wanted("--peers heap,tokio").unwrap().peers);
        assert!(!wanted("--peers heap,btree,timer-hashed").unwrap().peers);
    }

    #[test]
    fn what_is_not_known_is_an_error() {
        assert!(wanted("--loud").unwrap_err().what.contains("`--loud`"));
        assert!(wanted("W1 W2").unwrap_err().what.contains("`W2`"));
        assert!(wanted("-- --test").is_err());
    }
}
