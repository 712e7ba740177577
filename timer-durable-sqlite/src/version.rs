//! Checks of the version of SQLite with which the program was linked.

use super::OpenError;

/// The oldest version with which the store was tested, and its number.
const MIN_SQLITE: (&str, i32) = ("3.46.0", 3_046_000);

/// Refuses a version that is too old, and warns of one whose write-ahead log has a fault.
pub(super) fn check() -> Result<(), OpenError> {
    let number = rusqlite::version_number();
    refuse_old(number)?;
    if can_lose_log(number) {
        let version = version(number);
        tracing::warn!(%version, "this SQLite can damage the file if another program writes back the log");
    }
    Ok(())
}

fn version(number: i32) -> String {
    format!("{}.{}.{}", number / 1_000_000, number / 1_000 % 1_000, number % 1_000)
}

fn refuse_old(number: i32) -> Result<(), OpenError> {
    let (needed, least) = MIN_SQLITE;
    if number < least { Err(OpenError::OldSqlite { found: version(number), needed }) } else { Ok(()) }
}

/// Returns `true` for a version in which a checkpoint beside a commit that begins the log anew may
/// leave out that commit (<https://sqlite.org/wal.html#walresetbug>).
fn can_lose_log(number: i32) -> bool {
    number < 3_051_003 && !(3_050_007..3_051_000).contains(&number)
}

#[cfg(test)]
mod tests {
    use super::{can_lose_log, refuse_old};

    #[test]
    fn an_old_sqlite_is_refused_with_both_versions() {
        let error = refuse_old(3_045_003).map_err(|error| error.to_string());
        assert_eq!(error, Err("the program has SQLite 3.45.3; the store needs 3.46.0 or a later one".to_owned()));
    }

    #[test]
    fn a_sqlite_whose_log_has_a_fault_is_known() {
        let faulty = [3_046_000, 3_049_002, 3_050_006, 3_051_000, 3_051_002];
        let sound = [3_050_007, 3_051_003, 3_052_000, 3_053_002];
        assert!(faulty.into_iter().all(can_lose_log) && !sound.into_iter().any(can_lose_log));
    }
}
