//! Listen addresses, with Go's error texts.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use tokio::net::TcpListener;

/// The server cannot listen on an address.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum AddressError {
    /// The address is invalid.
    #[error("listen tcp: address {address}: {problem}")]
    Address {
        /// The address.
        address: String,
        /// The problem.
        problem: AddressProblem,
    },
    /// The port is an unknown service name.
    #[error("listen tcp: lookup tcp/{service}: unknown port")]
    UnknownService {
        /// The name of the service.
        service: String,
    },
    /// The bind failed.
    #[error("listen tcp :{port}: bind: {}", mainstay_gocompat::io_error_text(source))]
    Bind {
        /// The port.
        port: u16,
        /// The error of the system.
        source: io::Error,
    },
}

/// The problem of an invalid address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in super::super) enum AddressProblem {
    /// The port is missing.
    #[error("missing port in address")]
    NoPort,
    /// A bracket is not closed.
    #[error("missing ']' in address")]
    NotClosed,
    /// The address has more than one colon.
    #[error("too many colons in address")]
    Colons,
    /// An opening bracket is misplaced.
    #[error("unexpected '[' in address")]
    Opened,
    /// A closing bracket is misplaced.
    #[error("unexpected ']' in address")]
    Closed,
    /// The port is invalid.
    #[error("invalid port")]
    Port,
}

/// Listens on a port on all addresses of the machine.
///
/// # Errors
/// If the port is invalid or the bind fails.
pub(in super::super) async fn listen(port: &str) -> Result<TcpListener, AddressError> {
    let number = port_of(&format!(":{port}"))?;
    let bound = match TcpListener::bind((Ipv6Addr::UNSPECIFIED, number)).await {
        // A machine without IPv6.
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, number)).await
        }
        bound => bound,
    };
    bound.map_err(|source| AddressError::Bind { port: number, source })
}

/// Checks an address that is not used; empty is valid.
///
/// # Errors
/// If the address is invalid.
pub(super) fn check(address: &str) -> Result<(), AddressError> {
    if address.is_empty() { Ok(()) } else { port_of(address).map(drop) }
}

/// The port of an address such as `host:port`, `[::1]:port` or `:port`.
fn port_of(address: &str) -> Result<u16, AddressError> {
    let invalid = |problem| AddressError::Address { address: address.to_owned(), problem };
    let colon = address.rfind(':').ok_or_else(|| invalid(AddressProblem::NoPort))?;
    let (host, rest) = if address.starts_with('[') {
        let end = address.find(']').ok_or_else(|| invalid(AddressProblem::NotClosed))?;
        match end + 1 {
            next if next == colon => {}
            next if address[next..].starts_with(':') => {
                return Err(invalid(AddressProblem::Colons));
            }
            _ => return Err(invalid(AddressProblem::NoPort)),
        }
        (&address[1..end], &address[end + 1..])
    } else {
        if address[..colon].contains(':') {
            return Err(invalid(AddressProblem::Colons));
        }
        (&address[..colon], address)
    };
    if host.contains('[') || rest.contains('[') {
        return Err(invalid(AddressProblem::Opened));
    }
    if rest.contains(']') {
        return Err(invalid(AddressProblem::Closed));
    }
    port_number(&address[colon + 1..])
}

fn port_number(text: &str) -> Result<u16, AddressError> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // A service name. Only here, blanks around a number are accepted.
        let padded = text.trim_start().parse().ok();
        return padded
            .or_else(|| service(text))
            .ok_or_else(|| AddressError::UnknownService { service: text.to_owned() });
    }
    let value = if digits.is_empty() { Some(0) } else { digits.parse().ok() };
    let value = value.filter(|&value: &u16| value == 0 || !text.starts_with('-'));
    value.ok_or_else(|| AddressError::Address {
        address: text.to_owned(),
        problem: AddressProblem::Port,
    })
}

/// The port of a service in `/etc/services`.
fn service(name: &str) -> Option<u16> {
    let table = std::fs::read_to_string("/etc/services").unwrap_or_default();
    let name = name.to_lowercase();
    table.lines().find_map(|line| {
        let mut words = line.split('#').next()?.split_whitespace();
        let (first, port) = (words.next()?, words.next()?);
        let port = port.strip_suffix("/tcp")?.parse().ok()?;
        (first == name || words.any(|alias| alias == name)).then_some(port)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_as_in_go() {
        for (address, read) in [
            (":50051", Ok(50051)),
            (":", Ok(0)),
            ("localhost:6060", Ok(6060)),
            ("[::1]:1", Ok(1)),
            (":+1", Ok(1)),
            (":-1", Err("listen tcp: address -1: invalid port")),
            (":70000", Err("listen tcp: address 70000: invalid port")),
            (":99999999999", Err("listen tcp: address 99999999999: invalid port")),
            (": 7", Ok(7)),
            (":1x", Err("listen tcp: lookup tcp/1x: unknown port")),
            (":1:2", Err("listen tcp: address :1:2: too many colons in address")),
            ("::1:5", Err("listen tcp: address ::1:5: too many colons in address")),
            ("nonsense", Err("listen tcp: address nonsense: missing port in address")),
            ("[::1", Err("listen tcp: address [::1: missing ']' in address")),
            ("[a]b:1", Err("listen tcp: address [a]b:1: missing port in address")),
            ("[a]:b:1", Err("listen tcp: address [a]:b:1: too many colons in address")),
            ("a[b:1", Err("listen tcp: address a[b:1: unexpected '[' in address")),
            ("a]b:1", Err("listen tcp: address a]b:1: unexpected ']' in address")),
        ] {
            let found = port_of(address).map_err(|error| error.to_string());
            assert_eq!(found, read.map_err(str::to_owned), "{address}");
        }
        assert!(check("").is_ok(), "an empty address is valid");
    }

    #[tokio::test]
    async fn a_busy_port_is_an_error() {
        let first = listen("0").await.unwrap();
        let port = first.local_addr().unwrap().port();
        let error = listen(&port.to_string()).await.unwrap_err().to_string();
        assert_eq!(error, format!("listen tcp :{port}: bind: address already in use"));
    }
}
