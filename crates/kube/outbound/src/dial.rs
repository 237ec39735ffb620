//! Connecting to what others wrote into objects: each address is judged right before it is dialled.
//!
//! ```text
//! text of an object ─► address, or name ─► its addresses ─► judged in canonical form ─► connection
//! ```
//!
//! A name is resolved once, and what it resolved to is judged and dialled: a name that leads to another
//! place at the second look (DNS rebinding) leads nowhere else here. Objects that were stored before their
//! addresses were judged, or written past validation, are judged here all the same.

use mainstay_formats::destination::{parse_legacy, special_range};
use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::net::{TcpStream, lookup_host};

/// Whose word it is that leads to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// That of a user of some namespace: endpoints, names behind Services, redirects. It leads to no
    /// loopback and no link-local address.
    User,
    /// That of an administrator, who wrote the URL into a cluster-wide configuration: it leads anywhere, as
    /// in Kubernetes.
    Administrator,
}

/// Connects to a host by its address or name.
pub async fn dial(host: &str, port: u16, origin: Origin) -> io::Result<TcpStream> {
    let addresses: Vec<SocketAddr> = match parse_legacy(host.trim_matches(['[', ']'])) {
        Some(address) => vec![SocketAddr::new(address, port)],
        None => lookup_host((host, port)).await?.collect(),
    };
    let mut failure = None;
    for address in addresses {
        if origin == Origin::User
            && let Err(error) = judge(address.ip())
        {
            failure = Some(error);
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = Some(error),
        }
    }
    let none = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    Err(failure.unwrap_or_else(none))
}

/// Refuses an address to which nobody is led by what a user wrote.
pub fn judge(address: IpAddr) -> io::Result<()> {
    match special_range(address) {
        None => Ok(()),
        Some(why) => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("address not allowed: {why}"),
        )),
    }
}

/// What Go's client says of a dial that failed; none for a name that has no address.
pub fn failure(error: &io::Error) -> Option<String> {
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
    async fn what_a_user_wrote_leads_to_no_loopback_address_in_whatever_form() {
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
                // Decimal in Kubernetes, and an address like any other: 177.0.0.1.
                assert_eq!(parse_legacy(host), Some(IpAddr::from([177, 0, 0, 1])));
                continue;
            }
            let error = dial(host, port, Origin::User).await.unwrap_err();
            let refused = error.to_string().starts_with("address not allowed: ");
            // What no resolver knows is nowhere.
            assert!(refused || failure(&error).is_none(), "{host}: {error}");
        }
        dial("127.0.0.1", port, Origin::Administrator).await.unwrap();
        dial("localhost", port, Origin::Administrator).await.unwrap();
    }
}
