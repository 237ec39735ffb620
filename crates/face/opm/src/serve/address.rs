//! Addresses to listen on, refused in the words of upstream's language.

use super::super::go;
use std::net::{Ipv4Addr, Ipv6Addr};
use tokio::net::TcpListener;

/// Listens on that port, on every address of the machine.
///
/// # Errors
/// Why that cannot be done.
pub(in super::super) async fn listen(port: &str) -> Result<TcpListener, String> {
    let number = port_of(&format!(":{port}"))?;
    let bound = match TcpListener::bind((Ipv6Addr::UNSPECIFIED, number)).await {
        // A machine without IPv6.
        Err(error) if error.kind() != std::io::ErrorKind::AddrInUse => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, number)).await
        }
        bound => bound,
    };
    bound.map_err(|error| format!("listen tcp :{number}: bind: {}", go::reason(&error)))
}

/// Checks an address that nobody will listen on; empty is none.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check(address: &str) -> Result<(), String> {
    if address.is_empty() { Ok(()) } else { port_of(address).map(drop) }
}

/// The port of an address such as `host:port`, `[::1]:port` or `:port`.
fn port_of(address: &str) -> Result<u16, String> {
    let wrong = |why: &str| format!("listen tcp: address {address}: {why}");
    let colon = address.rfind(':').ok_or_else(|| wrong("missing port in address"))?;
    let (host, rest) = if address.starts_with('[') {
        let end = address.find(']').ok_or_else(|| wrong("missing ']' in address"))?;
        match end + 1 {
            next if next == colon => {}
            next if address[next..].starts_with(':') => {
                return Err(wrong("too many colons in address"));
            }
            _ => return Err(wrong("missing port in address")),
        }
        (&address[1..end], &address[end + 1..])
    } else {
        if address[..colon].contains(':') {
            return Err(wrong("too many colons in address"));
        }
        (&address[..colon], address)
    };
    if host.contains('[') || rest.contains('[') {
        return Err(wrong("unexpected '[' in address"));
    }
    if rest.contains(']') {
        return Err(wrong("unexpected ']' in address"));
    }
    port_number(&address[colon + 1..])
}

fn port_number(text: &str) -> Result<u16, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // A name of a service. Blanks around a number are forgiven on this way only.
        let padded = text.trim_start().parse().ok();
        return padded
            .or_else(|| service(text))
            .ok_or_else(|| format!("listen tcp: lookup tcp/{text}: unknown port"));
    }
    let value = if digits.is_empty() { Some(0) } else { digits.parse().ok() };
    let value = value.filter(|&value: &u16| value == 0 || !text.starts_with('-'));
    value.ok_or_else(|| format!("listen tcp: address {text}: invalid port"))
}

/// The port of a service that the machine has a name for.
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
    fn addresses_are_read_as_upstream_reads_them() {
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
            assert_eq!(port_of(address), read.map_err(str::to_owned), "{address}");
        }
        assert_eq!(check(""), Ok(()), "none is wanted");
    }

    #[tokio::test]
    async fn a_busy_port_is_told() {
        let first = listen("0").await.unwrap();
        let port = first.local_addr().unwrap().port();
        let error = listen(&port.to_string()).await.unwrap_err();
        assert_eq!(error, format!("listen tcp :{port}: bind: address already in use"));
    }
}
