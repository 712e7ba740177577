//! The order of timeouts in a store.

use crate::TimeoutId;
use crate::time::Micros;

/// A position in the list of timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The due time.
    pub due: Micros,
    /// The id, which orders timeouts with the same due time.
    pub id: TimeoutId,
}

impl Position {
    /// The position before all timeouts.
    pub const START: Self = Self { due: Micros::MIN, id: TimeoutId::from_u128(0) };
    /// The position after all timeouts.
    pub const END: Self = Self { due: Micros::MAX, id: TimeoutId::from_u128(u128::MAX) };

    /// Returns the position of the first timeout that is due at `due` or later.
    #[must_use]
    pub const fn at(due: Micros) -> Self {
        Self { due, id: TimeoutId::from_u128(0) }
    }

    /// Returns the next position.
    #[must_use]
    pub fn next(self) -> Self {
        Self { due: self.due, id: TimeoutId::from_u128(self.id.as_u128().saturating_add(1)) }
    }
}
