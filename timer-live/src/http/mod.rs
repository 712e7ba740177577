//! The messages of HTTP: requests, replies, and the format and the host that a request asks for.

mod accept;
pub(crate) mod hosts;
mod plain_text;
mod reply;
mod request;

pub use reply::Reply;
pub use request::Request;

pub(crate) use accept::Format;
pub(crate) use reply::{HTML, JSON, NO_STORE};
pub(crate) use request::NoRequest;
