//! The checks of a server that a connection asks for.

/// The checks of a server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verification {
    /// An authority that is trusted has signed it.
    Authority,
    /// The same, and it is for the host of the URL.
    Full,
}
