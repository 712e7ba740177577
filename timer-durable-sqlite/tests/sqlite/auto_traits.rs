//! The auto traits of every public type, checked at compile time. A change of this list is a change
//! of the public API.

include!("../../../timer-core/tests/auto_traits/macros.rs");

auto_traits! {
    timer_durable_sqlite::OpenError: 1 1 1 1,
    timer_durable_sqlite::OtherStoreError: 1 1 1 1,
    timer_durable_sqlite::SqliteHandle: 1 1 1 1,
    timer_durable_sqlite::SqliteReader: 1 0 1 0,
    timer_durable_sqlite::SqliteStore: 1 0 1 0,
    timer_durable_sqlite::SqliteTransaction<'static, 'static>: 0 0 1 0,
}
