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
    // The models that must fail do it by a panic each: nobody wants to read those unless something else fails too.
    let test = test().env("LOOM_MAX_PREEMPTIONS", preemptions.to_string()).env("RUST_BACKTRACE", "0").rest(&rest);
    if std::env::var_os("LOOM_LOG").is_some() {
        test.run()?;
    } else {
        let mut report = Report::default();
        let ran = test.quietly(|line| report.read(line).into_iter().for_each(|line| println!("{line}")));
        if ran.is_err() {
            print!("{}", report.unread);
        }
        ran?;
    }
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

/// Makes one line of what the test program prints about each model: what it proves, and in how many executions.
#[derive(Default)]
struct Report {
    model: String,
    executions: String,
    /// What was read, for those who need it.
    unread: String,
}

impl Report {
    fn read(&mut self, line: &str) -> Option<String> {
        self.unread += line;
        self.unread.push('\n');
        let mut rest = line;
        if let Some((name, after)) = line.strip_prefix("test ").and_then(|line| line.split_once(" ... ")) {
            self.model = name.trim_end_matches(" - should panic").to_owned();
            self.executions.clear();
            rest = after;
        }
        match rest.trim() {
            "ok" => {
                let what = if self.executions.is_empty() { "fails, as it must" } else { &self.executions };
                Some(format!("{} {what}", statement(&self.model)))
            }
            "FAILED" => Some(format!("{} FAILED", statement(&self.model))),
            found if found.ends_with("executions") => {
                self.executions = found.to_owned();
                None
            }
            _ => None,
        }
    }
}

/// `loom_models::inbox::loom_inbox_no_entry_is_stranded` as a sentence in columns.
fn statement(name: &str) -> String {
    let mut parts = name.rsplit("::");
    let (last, module) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let text = last.trim_start_matches("loom_").trim_start_matches(module).replace('_', " ");
    let text = match text.trim().strip_prefix("negative ") {
        Some(fault) => format!("(fault) {fault}"),
        None => text.trim().to_owned(),
    };
    format!("  {module:<9} {text:<72}")
}

fn summary(models: usize, preemptions: u32) -> String {
    let s = if models == 1 { "" } else { "s" };
    format!("{models} model{s}, preemption bound {preemptions}")
}

#[cfg(test)]
mod tests {
    use super::{Report, select, summary};

    #[test]
    fn each_model_is_a_sentence_with_its_executions() {
        let mut report = Report::default();
        assert_eq!(report.read("test loom_models::stop::loom_stop_and_cancel ... 87 executions"), None);
        let line = report.read("ok").unwrap();
        assert!(line.starts_with("  stop      and cancel ") && line.ends_with(" 87 executions"), "{line}");
        let fault = "test loom_models::stop::loom_stop_negative_counted_twice - should panic ... ok";
        let line = report.read(fault).unwrap();
        assert!(line.contains("(fault) counted twice") && line.ends_with("fails, as it must"), "{line}");
        assert!(report.read("test loom_models::stop::loom_stop_and_expire ... FAILED").unwrap().ends_with("FAILED"));
    }

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
