//! The auto traits of every public type, checked at compile time. A change of this list is a change
//! of the public API.

use timer_durable::Topic;

include!("../../../timer-core/tests/auto_traits/macros.rs");

auto_traits! {
    timer_durable_postgres::ConnectError: 1 1 1 1,
    timer_durable_postgres::InSchema<'static, Topic<Task>>: 1 1 1 1,
    timer_durable_postgres::PostgresOptions: 1 1 1 0,
    timer_durable_postgres::PostgresReader: 1 1 1 0,
    timer_durable_postgres::PostgresStore: 1 0 1 0,
}
