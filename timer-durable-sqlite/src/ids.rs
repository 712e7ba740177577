//! The form of ids in a file, which SQLite orders as the numbers.

use timer_durable::TimeoutId;

pub(super) fn blob(id: TimeoutId) -> [u8; 16] {
    id.as_u128().to_be_bytes()
}

pub(super) fn id(bytes: [u8; 16]) -> TimeoutId {
    TimeoutId::from_u128(u128::from_be_bytes(bytes))
}
