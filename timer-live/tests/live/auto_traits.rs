//! The auto traits of every public type, checked at compile time. A change of this list is a change
//! of the public API.

include!("../../../timer-core/tests/auto_traits/macros.rs");

auto_traits! {
    timer_live::ListenAddr: 1 1 1 1,
    timer_live::LivePage: 1 1 1 0,
    timer_live::ParseListenAddrError: 1 1 1 1,
    timer_live::Reply: 1 1 1 1,
    timer_live::Request: 1 1 1 1,
    timer_live::Server: 1 1 1 0,
    timer_live::Site: 1 1 1 0,
}
