//! The numbers of timeouts by their end, for one round or for many.

use std::fmt;
use std::ops::AddAssign;
use timer_core::TimerStats;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) rounds: u64,
    pub(crate) accepted: u64,
    pub(crate) rejected: u64,
    pub(crate) expired: u64,
    pub(crate) cancelled: u64,
    /// Handed back by `stop`.
    pub(crate) handed_back: u64,
    /// Ended with the timer, which alone knows the end.
    pub(crate) with_timer: u64,
    pub(crate) panics: u64,
    /// Moves that returned `true`.
    pub(crate) resets: u64,
}

impl Counts {
    /// Reads the counts of a timer that has ended and handed back `handed_back` timeouts.
    pub(crate) fn from_stats(stats: &TimerStats, handed_back: u64) -> Self {
        assert_eq!(stats.pending, 0, "timeouts are pending at the end");
        Self {
            accepted: stats.scheduled,
            rejected: stats.rejected,
            expired: stats.expired,
            cancelled: stats.cancelled - handed_back,
            handed_back,
            panics: stats.task_panics,
            ..Self::default()
        }
    }

    pub(crate) fn ended(&self) -> u64 {
        self.expired + self.cancelled + self.handed_back + self.with_timer
    }

    /// Returns `true` if every accepted timeout has ended.
    pub(crate) fn balances(&self) -> bool {
        self.accepted == self.ended()
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        let Self { rounds, accepted, rejected, expired, cancelled, handed_back, with_timer, panics, resets } = other;
        self.rounds += rounds;
        self.accepted += accepted;
        self.rejected += rejected;
        self.expired += expired;
        self.cancelled += cancelled;
        self.handed_back += handed_back;
        self.with_timer += with_timer;
        self.panics += panics;
        self.resets += resets;
    }
}

/// A table of counts by name, with a sum.
#[derive(Default)]
pub(crate) struct Table(Vec<(String, Counts)>);

impl Table {
    pub(crate) fn add(&mut self, name: &str, counts: Counts) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum += counts,
            None => self.0.push((name.to_owned(), counts)),
        }
    }

    pub(crate) fn sum(&self) -> Counts {
        let mut sum = Counts::default();
        self.0.iter().for_each(|(_, counts)| sum += *counts);
        sum
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads =
            ["rounds", "accepted", "expired", "cancelled", "handed back", "with timer", "rejected", "panics", "resets"];
        let row = |f: &mut fmt::Formatter<'_>, name: &str, cells: [String; 9]| {
            write!(f, "{name:<24}")?;
            cells.iter().try_for_each(|cell| write!(f, " {cell:>12}"))?;
            writeln!(f)
        };
        row(f, "", heads.map(str::to_owned))?;
        let mut rows = self.0.clone();
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        rows.push(("all".to_owned(), self.sum()));
        for (name, counts) in rows {
            let Counts { rounds, accepted, rejected, expired, cancelled, handed_back, with_timer, panics, resets } =
                counts;
            let counts = [rounds, accepted, expired, cancelled, handed_back, with_timer, rejected, panics, resets];
            row(f, &name, counts.map(grouped))?;
        }
        Ok(())
    }
}

/// Formats 1234567 as 1,234,567.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[test]
fn a_sum_without_one_end_does_not_balance() {
    let mut table = Table::default();
    let one = Counts {
        rounds: 1,
        accepted: 1_000,
        expired: 990,
        cancelled: 7,
        handed_back: 2,
        with_timer: 1,
        ..Counts::default()
    };
    assert!(one.balances());
    table.add("one", one);
    table.add("other", Counts { accepted: 1_000, expired: 999, ..one });
    table.add("one", one);
    assert_eq!((table.sum().accepted, table.sum().ended()), (3_000, 3_009));
    assert!(!table.sum().balances() && table.0.len() == 2);
    assert!(table.to_string().contains(" 3,000 "), "{table}");
}
