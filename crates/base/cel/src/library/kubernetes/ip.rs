//! Addresses: `ip("10.0.0.1").isLoopback()`.

use crate::library::args::{exactly, made, named, opaque, same, str, wrap};
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
    types: || vec![(NAME, named(NAME))],
};

/// The name of the type.
pub(super) const NAME: &str = "net.IP";

/// An address as a value.
#[derive(Debug)]
pub(super) struct Address(pub(super) IpAddr);

impl Opaque for Address {
    fn cel_type(&self) -> Type {
        named(NAME)
    }

    fn equals(&self, other: &Value<'_>) -> Result<bool, Error> {
        same(other, |other: &Self| self.0 == other.0)
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
    let address = || named(NAME);
    let ask = |function, id, run| Overload::method(function, id, vec![address()], Bool, run);
    vec![
        Overload::function("ip", "string_to_ip", vec![String], address(), |args, work| {
            Ok(wrap(Address(parse(str(&exactly::<1>(args)?[0])?, work)?)))
        }),
        Overload::method("family", "ip_family", vec![address()], Int, |args, _| {
            Ok(Value::Int(if receiver(args)?.is_ipv4() { 4 } else { 6 }))
        }),
        Overload::function("ip.isCanonical", "ip_is_canonical", vec![String], Bool, canonical),
        ask("isUnspecified", "ip_is_unspecified", |args, _| {
            Ok(Value::Bool(receiver(args)?.is_unspecified()))
        }),
        ask("isLoopback", "ip_is_loopback", |args, _| {
            Ok(Value::Bool(receiver(args)?.is_loopback()))
        }),
        ask("isLinkLocalMulticast", "ip_is_link_local_multicast", |args, _| {
            Ok(Value::Bool(is_link_local_multicast(receiver(args)?)))
        }),
        ask("isLinkLocalUnicast", "ip_is_link_local_unicast", |args, _| {
            Ok(Value::Bool(is_link_local_unicast(receiver(args)?)))
        }),
        ask("isGlobalUnicast", "ip_is_global_unicast", |args, _| {
            Ok(Value::Bool(is_global_unicast(receiver(args)?)))
        }),
        Overload::function("isIP", "is_ip", vec![String], Bool, |args, work| {
            Ok(Value::Bool(parse(str(&exactly::<1>(args)?[0])?, work).is_ok()))
        }),
        Overload::function("string", "ip_to_string", vec![address()], String, |args, _| {
            Ok(made(receiver(args)?.to_string()))
        }),
    ]
}

fn receiver(args: &[Value<'_>]) -> Result<IpAddr, Error> {
    let [address] = exactly(args)?;
    opaque(address).map(|address: &Address| address.0)
}

/// Neither zones nor addresses of IPv4 that are written as ones of IPv6 are taken.
pub(super) fn parse(text: &str, work: &WorkBudget) -> Result<IpAddr, Error> {
    let shown = || quote(text);
    let read = parse_address(text).map_err(|why| {
        Error::text(
            format!("IP Address {} parse error during conversion from string: {why}", shown()),
            work,
        )
    })?;
    if !read.zone.is_empty() {
        return Err(Error::text(
            format!("IP address {} with zone value is not allowed", shown()),
            work,
        ));
    }
    if is_mapped(read.address) {
        return Err(Error::text(mapped(text), work));
    }
    Ok(read.address)
}

/// Whether it is one of IPv4 that is written as one of IPv6.
pub(super) fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

/// What is said about such addresses.
pub(super) fn mapped(text: &str) -> String {
    format!("IPv4-mapped IPv6 address {} is not allowed", quote(text))
}

fn canonical<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [written] = exactly(args)?;
    let written = str(written)?;
    Ok(Value::Bool(parse(written, work)?.to_string() == written))
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

/// As Go means it: private addresses count.
fn is_global_unicast(address: IpAddr) -> bool {
    !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && !is_link_local_unicast(address)
        && !matches!(address, IpAddr::V4(address) if address.is_broadcast())
}
