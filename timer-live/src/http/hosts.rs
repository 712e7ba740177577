//! The names under which a server on the loopback address answers.
//!
//! A page of any site can make the user's browser resolve a name of that site to 127.0.0.1 (DNS
//! rebinding). The browser then takes the server for that site and lets the page read its replies.
//! The header `Host` still has the site's name, by which the server tells such requests.

use std::net::{IpAddr, Ipv6Addr};

/// Returns `true` if `host` is an address, `localhost` or one of `names`. The port does not matter.
pub(crate) fn is_allowed(host: &str, names: &[String]) -> bool {
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address.parse::<Ipv6Addr>().is_ok();
    }
    let name = without_port(host);
    name.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost") || is_named(host, names)
}

/// Returns `true` if `host` is one of `names`. The port does not matter.
pub(crate) fn is_named(host: &str, names: &[String]) -> bool {
    names.iter().any(|name| name.eq_ignore_ascii_case(without_port(host)))
}

fn without_port(host: &str) -> &str {
    host.split_once(':').map_or(host, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn addresses_localhost_and_configured_names_are_allowed() {
        let names = ["metrics.internal".to_owned()];
        for host in
            ["127.0.0.1", "10.0.0.1:9184", "[::1]", "[::1]:80", "localhost", "LocalHost:1", "Metrics.Internal:443"]
        {
            assert!(is_allowed(host, &names), "{host}");
        }
        for host in
            ["", "rebind.example", "localhost.rebind.example", "127.0.0.1.rebind.example", "[a]:80", "user@localhost"]
        {
            assert!(!is_allowed(host, &names), "{host}");
        }
    }
}
