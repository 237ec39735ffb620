//! IP library: `ip("10.0.0.1").isLoopback()`.

use crate::library::args::{compare_opaque, exactly, library_type, new_string, opaque, str, wrap};
use crate::library::{FunctionLibrary, Overload};
use crate::types::Type;
use crate::value::{Error, Opaque, Value, ValueResult, WorkBudget};
use mainstay_formats::address::parse_address;
use mainstay_gocompat::quote;
use std::any::Any;
use std::net::IpAddr;

/// `ip`, `isIP`, `ip.isCanonical`, and the methods of addresses.
pub static LIBRARY: FunctionLibrary = FunctionLibrary {
    name: "kubernetes.net.ip",
    overloads,
    macros: &[],
    types: || vec![(NAME, library_type(NAME))],
};

/// The name of the type.
pub(super) const NAME: &str = "net.IP";

/// An address as a value.
#[derive(Debug)]
pub(super) struct Address(pub(super) IpAddr);

impl Opaque for Address {
    fn cel_type(&self) -> Type {
        library_type(NAME)
    }

    fn equals(&self, other: &Value<'_>) -> Result<bool, Error> {
        compare_opaque(other, |other: &Self| self.0 == other.0)
    }

    fn size(&self) -> Option<u64> {
        Some(if self.0.is_ipv4() { 4 } else { 16 })
    }

    fn go_inside(&self) -> Option<String> {
        Some(format!("(netip.Addr){}", self.0))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn overloads() -> Vec<Overload> {
    use Type::{Bool, Int, String};
    let address = || library_type(NAME);
    let predicate = |function, id, run| Overload::method(function, id, vec![address()], Bool, run);
    vec![
        Overload::function("ip", "string_to_ip", vec![String], address(), |args, work| {
            Ok(wrap(Address(parse(str(&exactly::<1>(args)?[0])?, work)?)))
        }),
        Overload::method("family", "ip_family", vec![address()], Int, |args, _| {
            Ok(Value::Int(if receiver(args)?.is_ipv4() { 4 } else { 6 }))
        }),
        Overload::function("ip.isCanonical", "ip_is_canonical", vec![String], Bool, is_canonical),
        predicate("isUnspecified", "ip_is_unspecified", |args, _| {
            Ok(Value::Bool(receiver(args)?.is_unspecified()))
        }),
        predicate("isLoopback", "ip_is_loopback", |args, _| {
            Ok(Value::Bool(receiver(args)?.is_loopback()))
        }),
        predicate("isLinkLocalMulticast", "ip_is_link_local_multicast", |args, _| {
            Ok(Value::Bool(is_link_local_multicast(receiver(args)?)))
        }),
        predicate("isLinkLocalUnicast", "ip_is_link_local_unicast", |args, _| {
            Ok(Value::Bool(is_link_local_unicast(receiver(args)?)))
        }),
        predicate("isGlobalUnicast", "ip_is_global_unicast", |args, _| {
            Ok(Value::Bool(is_global_unicast(receiver(args)?)))
        }),
        Overload::function("isIP", "is_ip", vec![String], Bool, |args, work| {
            Ok(Value::Bool(parse(str(&exactly::<1>(args)?[0])?, work).is_ok()))
        }),
        Overload::function("string", "ip_to_string", vec![address()], String, |args, _| {
            Ok(new_string(receiver(args)?.to_string()))
        }),
    ]
}

fn receiver(args: &[Value<'_>]) -> Result<IpAddr, Error> {
    let [address] = exactly(args)?;
    opaque(address).map(|address: &Address| address.0)
}

/// Parses an address. Zones and IPv4-mapped IPv6 addresses are errors.
pub(super) fn parse(text: &str, work: &WorkBudget) -> Result<IpAddr, Error> {
    let quoted = || quote(text);
    let parsed = parse_address(text).map_err(|why| {
        Error::text(
            format!("IP Address {} parse error during conversion from string: {why}", quoted()),
            work,
        )
    })?;
    if !parsed.zone.is_empty() {
        return Err(Error::text(
            format!("IP address {} with zone value is not allowed", quoted()),
            work,
        ));
    }
    if is_mapped(parsed.address) {
        return Err(Error::text(mapped_address_error(text), work));
    }
    Ok(parsed.address)
}

/// Whether it is an IPv4-mapped IPv6 address.
pub(super) fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

/// The error for IPv4-mapped IPv6 addresses.
pub(super) fn mapped_address_error(text: &str) -> String {
    format!("IPv4-mapped IPv6 address {} is not allowed", quote(text))
}

fn is_canonical<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [text] = exactly(args)?;
    let text = str(text)?;
    Ok(Value::Bool(parse(text, work)?.to_string() == text))
}

fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets().starts_with(&[224, 0, 0]),
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// As in Go, private addresses count as global unicast.
fn is_global_unicast(address: IpAddr) -> bool {
    !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && !is_link_local_unicast(address)
        && !matches!(address, IpAddr::V4(address) if address.is_broadcast())
}
