//! Values of flags: listen addresses and durations.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// The text is no listen address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write it as ADDR:PORT, such as 127.0.0.1:6443 or localhost:6443")]
pub(super) struct InvalidAddress;

/// Reads `ADDR:PORT`, `HOST:PORT` or a port alone, which means loopback.
pub(super) fn address(text: &str) -> Result<SocketAddr, InvalidAddress> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    let found = text.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.ok_or(InvalidAddress)
}

/// The text is no duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write it as a number and a unit, such as 90s, 10m or 1h30m")]
pub(super) struct InvalidDuration;

/// Reads a duration as `90s`, `10m` or `1h30m`.
pub(super) fn duration(text: &str) -> Result<Duration, InvalidDuration> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let read: jiff::SignedDuration = text.parse().map_err(|_| InvalidDuration)?;
    Duration::try_from(read).map_err(|_| InvalidDuration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_may_be_a_port_or_a_host() {
        for (text, read) in [
            ("6443", Some("127.0.0.1:6443")),
            ("[::1]:7", Some("[::1]:7")),
            ("0.0.0.0:1", Some("0.0.0.0:1")),
            ("nonsense", None),
            ("1.2.3.4", None),
        ] {
            let expected = read.map(|address| address.parse().unwrap());
            assert_eq!(address(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn a_duration_has_a_unit() {
        for (text, seconds) in
            [("90s", Some(90)), ("1h30m", Some(5400)), ("10m", Some(600)), ("0", Some(0))]
        {
            let found = duration(text).ok().map(|duration| duration.as_secs());
            assert_eq!(found, seconds, "{text}");
        }
        for text in ["10", "", "-3s", "soon"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
