//! Finding the operations that a database refuses.

use super::StoreError;
use crate::transaction::Outcome;
use std::time::Instant;

/// Finds the operations of a batch that a database refuses without naming them, for a
/// [`Store`](super::Store).
///
/// A database undoes a whole transaction if a constraint or a trigger refuses one of its rows. A
/// divider executes a batch in parts, each of which is a transaction. It divides a part that is
/// refused by eight, until one operation is left, which has to be the one at fault. Later parts
/// stay small and grow again while they are accepted, also in the next batch.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, Instant};
/// use timer_durable::StoreError;
/// use timer_durable::store::{Divided, Divider};
///
/// let until = Instant::now() + Duration::from_secs(60);
/// let divided = Divider::new().execute(&[1, 2, -3, 4], until, |part| match part.iter().min() {
///     Some(least) if *least < 0 => Err(StoreError::Refused("a negative number".to_owned())),
///     _ => Ok(part.to_vec()),
/// })?;
/// assert_eq!(divided[2], Divided::Refused("a negative number".to_owned()));
/// assert_eq!(divided[3], Divided::Done(4));
/// # Ok::<(), StoreError>(())
/// ```
#[derive(Debug)]
pub struct Divider {
    /// The largest number of operations in the next part.
    size: usize,
}

/// The number by which the size of a part that is refused is divided. A larger one takes fewer
/// transactions until the first operation is reached, and a smaller one takes fewer in all.
const DIVISOR: usize = 8;

/// The result of one operation, as found by a [`Divider`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Divided<R> {
    /// The operation was executed with this result.
    Done(R),
    /// The database refuses the operation, for this reason.
    Refused(String),
    /// The operation was not executed, because the deadline came or the store failed before.
    NotReached,
}

impl Divided<Outcome> {
    /// Returns the outcome for the keeper.
    #[must_use]
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Done(outcome) => outcome,
            Self::Refused(why) => Outcome::Refused(why),
            Self::NotReached => Outcome::NotReached,
        }
    }
}

impl Divider {
    /// Returns a divider whose first part is a whole batch.
    #[must_use]
    pub const fn new() -> Self {
        Self { size: usize::MAX }
    }

    /// Executes `items` in parts until the deadline, or until one of them has a result. Returns one
    /// result for each of them, in the same order. `execute` executes a part as one transaction,
    /// and returns [`StoreError::Refused`] if the database refuses it.
    ///
    /// # Errors
    ///
    /// The other errors of `execute`. If earlier parts were written and nothing of the one that has
    /// failed, the rest is [not reached](Divided::NotReached) instead. The next call meets the error
    /// again, if it lasts.
    pub fn execute<T, R>(
        &mut self,
        items: &[T],
        until: Instant,
        mut execute: impl FnMut(&[T]) -> Result<Vec<R>, StoreError>,
    ) -> Result<Vec<Divided<R>>, StoreError> {
        let mut divided = Vec::with_capacity(items.len());
        let mut rest = items;
        while !rest.is_empty() && (divided.is_empty() || Instant::now() < until) {
            let (part, later) = rest.split_at(self.size.min(rest.len()));
            match execute(part) {
                Ok(results) => {
                    divided.extend(results.into_iter().map(Divided::Done));
                    self.size = self.size.saturating_mul(2);
                    rest = later;
                }
                Err(StoreError::Refused(why)) if part.len() == 1 => {
                    divided.push(Divided::Refused(why));
                    rest = later;
                }
                Err(StoreError::Refused(_)) => self.size = part.len().div_ceil(DIVISOR),
                Err(error) if divided.is_empty() || matches!(error, StoreError::InDoubt(_)) => return Err(error),
                Err(_) => break,
            }
        }
        divided.resize_with(items.len(), || Divided::NotReached);
        Ok(divided)
    }
}

impl Default for Divider {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const NOT: StoreError = StoreError::Fenced;

    /// Executes 64 items, of which `bad` are refused, and returns the results and the parts.
    fn divide(divider: &mut Divider, until: Instant, bad: &[usize]) -> (Vec<Divided<usize>>, Vec<usize>) {
        let items: Vec<usize> = (0..64).collect();
        let mut parts = Vec::new();
        let divided = divider.execute(&items, until, |part| {
            parts.push(part.len());
            let is_bad = part.iter().any(|item| bad.contains(item));
            if is_bad { Err(StoreError::Refused("bad".to_owned())) } else { Ok(part.to_vec()) }
        });
        (divided.unwrap(), parts)
    }

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn only_the_operations_at_fault_are_refused() {
        let (divided, parts) = divide(&mut Divider::new(), later(), &[5, 6, 40]);
        for (n, result) in divided.iter().enumerate() {
            let is_bad = [5, 6, 40].contains(&n);
            assert_eq!(*result, if is_bad { Divided::Refused("bad".to_owned()) } else { Divided::Done(n) });
        }
        assert!(parts.len() < 48, "{parts:?}");
        assert_eq!(divide(&mut Divider::new(), later(), &[]).1, [64], "one transaction");
    }

    #[test]
    fn a_search_ends_at_the_deadline_with_one_result() {
        let mut divider = Divider::new();
        let past = Instant::now();
        let mut not_reached = || {
            let (divided, parts) = divide(&mut divider, past, &[0]);
            (divided.iter().filter(|result| **result == Divided::NotReached).count(), parts)
        };
        assert_eq!(not_reached(), (63, vec![64, 8, 1]));
        assert_eq!(not_reached(), (63, vec![1]), "it goes on with small parts");
    }

    #[test]
    fn a_failure_after_a_part_was_written_is_met_again() {
        let mut divider = Divider { size: 2 };
        let mut written = 0;
        let divided = divider.execute(&[1, 2, 3, 4], later(), |part| {
            written += part.len();
            if written > 2 { Err(NOT) } else { Ok(part.to_vec()) }
        });
        let divided = divided.unwrap();
        assert_eq!(divided[1..3], [Divided::Done(2), Divided::NotReached]);
        assert_eq!(divider.execute(&[3, 4], later(), |_| Err::<Vec<()>, _>(NOT)), Err(NOT));
        let doubt = StoreError::InDoubt("no answer".to_owned());
        assert_eq!(divider.execute(&[3], later(), |_| Err::<Vec<()>, _>(doubt.clone())), Err(doubt));
    }
}
