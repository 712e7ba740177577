//! The address of the server. A port alone means the loopback address.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::str::FromStr;

/// An address to listen on. A port alone means the loopback address 127.0.0.1, so other machines
/// have no access unless the address names an interface that they can reach.
///
/// # Examples
///
/// ```
/// use std::net::Ipv4Addr;
/// use timer_live::ListenAddr;
///
/// assert_eq!(ListenAddr::from(9184).to_string(), "127.0.0.1:9184");
/// assert_eq!(ListenAddr::from((Ipv4Addr::UNSPECIFIED, 9184)).to_string(), "0.0.0.0:9184");
/// assert_eq!("9184".parse::<ListenAddr>()?, ListenAddr::from(9184));
/// assert_eq!("[::]:9184".parse::<ListenAddr>()?.to_string(), "[::]:9184");
/// # Ok::<(), timer_live::ParseListenAddrError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ListenAddr(pub(super) SocketAddr);

impl From<u16> for ListenAddr {
    fn from(port: u16) -> Self {
        Self::from((Ipv4Addr::LOCALHOST, port))
    }
}

impl From<SocketAddr> for ListenAddr {
    fn from(addr: SocketAddr) -> Self {
        Self(addr)
    }
}

impl From<SocketAddrV4> for ListenAddr {
    fn from(addr: SocketAddrV4) -> Self {
        Self(addr.into())
    }
}

impl From<SocketAddrV6> for ListenAddr {
    fn from(addr: SocketAddrV6) -> Self {
        Self(addr.into())
    }
}

impl<A: Into<IpAddr>> From<(A, u16)> for ListenAddr {
    fn from(addr: (A, u16)) -> Self {
        Self(addr.into())
    }
}

impl FromStr for ListenAddr {
    type Err = ParseListenAddrError;

    fn from_str(given: &str) -> Result<Self, Self::Err> {
        let port = given.parse::<u16>().map(Self::from).ok();
        let addr = given.parse::<SocketAddr>().map(Self::from).ok();
        port.or(addr).ok_or_else(|| ParseListenAddrError { given: given.to_owned() })
    }
}

impl fmt::Display for ListenAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The error for a text that is not an address to listen on.
///
/// # Examples
///
/// ```
/// use timer_live::ListenAddr;
///
/// let error = "everywhere".parse::<ListenAddr>().unwrap_err();
/// assert!(error.to_string().starts_with("`everywhere` is not an address to listen on"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseListenAddrError {
    given: String,
}

impl fmt::Display for ParseListenAddrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { given } = self;
        write!(
            f,
            "`{given}` is not an address to listen on: allowed are a port from 0 to 65535 (on 127.0.0.1), or an IP address \
             and a port, such as 0.0.0.0:9184 or [::]:9184"
        )
    }
}

impl Error for ParseListenAddrError {}
