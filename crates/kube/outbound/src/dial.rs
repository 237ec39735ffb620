//! Dialling of addresses from objects, each checked right before it is dialled.
//!
//! ```text
//! text of an object ─► address, or name ─► its addresses ─► check in canonical form ─► connection
//! ```
//!
//! A name is resolved once, and the resulting addresses are checked and dialled, which prevents DNS
//! rebinding. The check also covers objects that validation did not see, or that were stored before
//! it existed.

use mainstay_formats::destination::{parse_legacy, special_range};
use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::net::{TcpStream, lookup_host};

/// Author of an address: decides which addresses are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressAuthor {
    /// A user of a namespace: endpoints, external names of Services, redirects. Loopback and link-local
    /// addresses are not allowed.
    User,
    /// An administrator, in the URL of a cluster-scoped configuration. All addresses are allowed, as in
    /// Kubernetes.
    Administrator,
}

/// Connects to a host by its address or name.
pub async fn dial(host: &str, port: u16, author: AddressAuthor) -> io::Result<TcpStream> {
    let addresses: Vec<SocketAddr> = match parse_legacy(host.trim_matches(['[', ']'])) {
        Some(address) => vec![SocketAddr::new(address, port)],
        None => lookup_host((host, port)).await?.collect(),
    };
    let mut failure = None;
    for address in addresses {
        if author == AddressAuthor::User
            && let Err(error) = check_address(address.ip())
        {
            failure = Some(error);
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = Some(error),
        }
    }
    let no_address = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    Err(failure.unwrap_or_else(no_address))
}

/// Refuses an address that a user may not write.
pub fn check_address(address: IpAddr) -> io::Result<()> {
    match special_range(address) {
        None => Ok(()),
        Some(why) => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("address not allowed: {why}"),
        )),
    }
}

/// The text of Go's client for a failed dial; none for a name without an address.
pub fn dial_error_text(error: &io::Error) -> Option<String> {
    Some(match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        io::ErrorKind::TimedOut => "connect: connection timed out".to_owned(),
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => error.to_string(),
        _ if error.raw_os_error().is_none() => return None,
        _ => format!("connect: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn users_cannot_dial_loopback_addresses_in_any_notation() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in [
            "127.0.0.1",
            "[::ffff:127.0.0.1]",
            "::ffff:127.0.0.1",
            "::ffff:7f00:1",
            "0127.0.0.01",
            "0177.0.0.1",
            "127.1",
            "0x7f000001",
            "2130706433",
            "0",
            "0.0.0.0",
            "::1",
            "::",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "localhost",
            "169.254.169.254",
            "::ffff:169.254.169.254",
            "fe80::1%lo",
        ] {
            if host == "0177.0.0.1" {
                // Decimal in Kubernetes, so an ordinary address: 177.0.0.1.
                assert_eq!(parse_legacy(host), Some(IpAddr::from([177, 0, 0, 1])));
                continue;
            }
            let error = dial(host, port, AddressAuthor::User).await.unwrap_err();
            let refused = error.to_string().starts_with("address not allowed: ");
            // A resolver may not know the other notations.
            assert!(refused || dial_error_text(&error).is_none(), "{host}: {error}");
        }
        dial("127.0.0.1", port, AddressAuthor::Administrator).await.unwrap();
        dial("localhost", port, AddressAuthor::Administrator).await.unwrap();
    }
}
