//! `cargo xtask loom`: timer-core's models, each explored in every order that the bound on preemptions allows.
//!
//! The cfg goes into the child's flags alone, and into a target folder of its own: neither this program nor an
//! ordinary build sees it.

use crate::args::{Args, usage};
use crate::cargo::{Cargo, Failure, target_dir};

const DEFAULT_PREEMPTIONS: u32 = 2;

pub(crate) fn command(mut args: Args) -> Result<(), Failure> {
    let compile_only = args.flag("--compile-only");
    let preemptions = match args.value("--preemptions")? {
        None => DEFAULT_PREEMPTIONS,
        Some(word) => match word.parse() {
            Ok(number) => number,
            Err(_) => return Err(usage(format!("`--preemptions {word}`: not a number"))),
        },
    };
    let filter = args.positional();
    args.done()?;
    if compile_only {
        return compile();
    }
    run(filter.as_deref().unwrap_or_default(), preemptions)
}

/// Every model, at the bound for a change.
pub(crate) fn all() -> Result<(), Failure> {
    run("", DEFAULT_PREEMPTIONS)
}

/// Checks that the models still compile.
fn compile() -> Result<(), Failure> {
    cargo("check --profile test -p timer-core --lib").run()
}

/// The test program takes several filters as "any of them", so the models are listed first and then named exactly.
fn run(filter: &str, preemptions: u32) -> Result<(), Failure> {
    let list = ["loom", "--list", "--format", "terse"].map(str::to_owned);
    let models = select(&test().rest(&list).output()?, filter);
    if models.is_empty() {
        return Err(Failure::new(format!("no model has `{filter}` in its name")));
    }
    eprintln!("{}", summary(models.len(), preemptions));
    let mut rest = models.clone();
    rest.extend(["--exact", "--nocapture", "--test-threads", "1"].map(str::to_owned));
    // The models that must fail do it by a panic each; their backtraces are of no use.
    let mut test = test().env("LOOM_MAX_PREEMPTIONS", preemptions.to_string()).env("RUST_BACKTRACE", "0");
    if std::env::var_os("LOOM_LOG").is_none() {
        // One line per model: how many executions it took.
        test = test.env("LOOM_LOG", "loom::model=info").env("NO_COLOR", "1");
    }
    test.rest(&rest).run()?;
    println!("{}", summary(models.len(), preemptions));
    Ok(())
}

fn test() -> Cargo {
    cargo("test --release -p timer-core --lib").env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true")
}

fn cargo(line: &str) -> Cargo {
    let cargo = Cargo::new(line).arg("--target-dir").arg(target_dir().join("loom"));
    cargo.rustflags("--cfg timer_loom")
}

/// The models of a listing whose name contains `filter`.
fn select(listing: &str, filter: &str) -> Vec<String> {
    let tests = listing.lines().filter_map(|line| line.strip_suffix(": test"));
    let models = tests.filter(|name| name.contains("loom") && name.contains(filter));
    models.map(str::to_owned).collect()
}

fn summary(models: usize, preemptions: u32) -> String {
    let s = if models == 1 { "" } else { "s" };
    format!("{models} model{s}, preemption bound {preemptions}")
}

#[cfg(test)]
mod tests {
    use super::{select, summary};

    #[test]
    fn a_filter_narrows_the_models_and_never_widens_them() {
        let listing = "state::loom_cancel_meets_expiry: test\ninbox::loom_push: test\nstate::cancel_twice: test\n";
        assert_eq!(select(listing, "").len(), 2);
        assert_eq!(select(listing, "cancel"), ["state::loom_cancel_meets_expiry"]);
        assert!(select(listing, "wheel").is_empty());
    }

    #[test]
    fn the_bound_is_printed() {
        assert_eq!(summary(12, 3), "12 models, preemption bound 3");
    }
}
