//! `cargo xtask stress`: timer-core's stress rounds for as long as one likes, or ten years of virtual time.
//!
//! The rounds themselves are tests; this builds them in release and says where to begin and for how long. The seed is
//! printed before anything else, so that every run can be had again.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::args::{Args, usage};
use crate::cargo::{Cargo, Failure};

const STORM: &str = "long::a_long_storm";
const DEFAULT_MINUTES: &str = "1";

pub(crate) fn command(mut args: Args) -> Result<(), Failure> {
    let ten_years = args.flag("--ten-years");
    let minutes = args.value("--minutes")?;
    let round = args.value("--round")?;
    let seed = args.value("--seed")?;
    args.done()?;
    if ten_years && (minutes.is_some() || round.is_some()) {
        return Err(usage("`--ten-years` takes as long as it takes, and `--seed` alone".to_owned()));
    }
    if round.is_some() && seed.is_none() {
        return Err(usage("`--round` is one of a seed: give `--seed` as well".to_owned()));
    }
    let seed = seed.map_or_else(|| Ok(from_the_clock()), |word| seed_of(&word))?;
    if ten_years {
        return test("ten_years", seed).rest(&["--nocapture".to_owned()]).run();
    }
    storm(minutes.as_deref().unwrap_or(DEFAULT_MINUTES), seed, round.as_deref())
}

fn storm(minutes: &str, seed: u64, round: Option<&str>) -> Result<(), Failure> {
    if !minutes.parse().is_ok_and(|minutes: f64| minutes > 0.0 && minutes.is_finite()) {
        return Err(usage(format!("`--minutes {minutes}`: a number above 0 is wanted")));
    }
    let mut test = test("stress", seed).env("TIMER_STRESS_MINUTES", minutes);
    if let Some(round) = round {
        if round.parse::<u32>().is_err() {
            return Err(usage(format!("`--round {round}`: not a number")));
        }
        test = test.env("TIMER_STRESS_ROUND", round);
    }
    let run = test
        .rest(&["--ignored", "--exact", STORM, "--nocapture", "--quiet", "--test-threads", "1"].map(str::to_owned))
        .run();
    let what = "the storm has found something; what to run to see it again is said above";
    run.map_err(|failure| Failure { what: what.to_owned(), ..failure })
}

fn test(name: &str, seed: u64) -> Cargo {
    let cargo = Cargo::new("test --release -p timer-core --test").arg(name);
    cargo.env("TIMER_STRESS_SEED", format!("{seed:#x}"))
}

fn from_the_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // The lower half changes fastest; 32 bits are short enough to be typed again.
    since.as_nanos() as u64 >> 10 & 0xFFFF_FFFF
}

/// Decimal, or hexadecimal after `0x`.
fn seed_of(word: &str) -> Result<u64, Failure> {
    let seed = match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => word.parse(),
    };
    seed.map_err(|_| usage(format!("`--seed {word}`: a number is wanted, decimal or after 0x")))
}

#[cfg(test)]
mod tests {
    use super::{STORM, command, seed_of};
    use crate::args::Args;
    use crate::cargo::root;

    #[test]
    fn a_seed_is_read_as_it_is_printed() {
        assert_eq!(seed_of("0x71350a4e").unwrap(), 0x7135_0A4E);
        assert_eq!(seed_of("17").unwrap(), 17);
        assert_eq!(seed_of("seventeen").unwrap_err().code, 2);
    }

    #[test]
    fn a_wrong_line_is_told_before_anything_is_built() {
        for line in ["--minutes 0", "--minutes soon", "--round 3", "--round x --seed 1", "--ten-years --minutes 2", "x"]
        {
            let failure = command(Args::new(line.split(' ').map(str::to_owned))).unwrap_err();
            assert_eq!(failure.code, 2, "{line}: {}", failure.what);
        }
    }

    #[test]
    fn the_storm_is_where_it_is_looked_for() {
        let (module, test) = STORM.split_once("::").unwrap();
        let file = root().join("timer-core/tests/stress").join(module).with_extension("rs");
        assert!(std::fs::read_to_string(file).unwrap().contains(&format!("fn {test}()")));
    }
}
