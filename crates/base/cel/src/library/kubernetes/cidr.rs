//! CIDR library: `cidr("10.0.0.0/8").containsIP("10.1.2.3")`.

use super::ip::{self, Address};
use crate::library::args::{compare_opaque, exactly, library_type, new_string, opaque, str, wrap};
use crate::library::{FunctionLibrary, Overload};
use crate::types::Type;
use crate::value::{Error, Opaque, Value, ValueResult, WorkBudget};
use mainstay_formats::address::IpNetwork;
use std::any::Any;

/// `cidr`, `isCIDR`, and the methods of networks. Needs the IP library.
pub static LIBRARY: FunctionLibrary = FunctionLibrary {
    name: "kubernetes.net.cidr",
    overloads,
    macros: &[],
    types: || vec![(NAME, library_type(NAME))],
};

/// The name of the type.
const NAME: &str = "net.CIDR";

/// A network as a value.
#[derive(Debug)]
struct Cidr(IpNetwork);

impl Opaque for Cidr {
    fn cel_type(&self) -> Type {
        library_type(NAME)
    }

    fn equals(&self, other: &Value<'_>) -> Result<bool, Error> {
        compare_opaque(other, |other: &Self| self.0 == other.0)
    }

    fn size(&self) -> Option<u64> {
        Some(u64::from(self.0.bits.div_ceil(8)))
    }

    fn go_inside(&self) -> Option<String> {
        Some(format!("(netip.Prefix){}", self.0))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn overloads() -> Vec<Overload> {
    use Type::{Bool, Int, String};
    let network = || library_type(NAME);
    let address = || library_type(ip::NAME);
    let method = Overload::method;
    vec![
        Overload::function("cidr", "string_to_cidr", vec![String], network(), |args, work| {
            Ok(wrap(Cidr(parse(str(&exactly::<1>(args)?[0])?, work)?)))
        }),
        method(
            "containsIP",
            "cidr_contains_ip_string",
            vec![network(), String],
            Bool,
            contains_ip_string,
        ),
        method("containsIP", "cidr_contains_ip_ip", vec![network(), address()], Bool, contains_ip),
        method(
            "containsCIDR",
            "cidr_contains_cidr_string",
            vec![network(), String],
            Bool,
            contains_cidr_string,
        ),
        method(
            "containsCIDR",
            "cidr_contains_cidr",
            vec![network(), network()],
            Bool,
            contains_cidr,
        ),
        method("ip", "cidr_ip", vec![network()], address(), |args, _| {
            Ok(wrap(Address(receiver(args)?.address)))
        }),
        method("prefixLength", "cidr_prefix_length", vec![network()], Int, |args, _| {
            Ok(Value::Int(receiver(args)?.bits.into()))
        }),
        method("masked", "cidr_masked", vec![network()], network(), |args, _| {
            Ok(wrap(Cidr(receiver(args)?.masked())))
        }),
        Overload::function("isCIDR", "is_cidr", vec![String], Bool, |args, work| {
            Ok(Value::Bool(parse(str(&exactly::<1>(args)?[0])?, work).is_ok()))
        }),
        Overload::function("string", "cidr_to_string", vec![network()], String, |args, _| {
            Ok(new_string(receiver(args)?.to_string()))
        }),
    ]
}

fn receiver(args: &[Value<'_>]) -> Result<IpNetwork, Error> {
    let [network] = exactly(args)?;
    network_of(network)
}

fn network_of(value: &Value<'_>) -> Result<IpNetwork, Error> {
    opaque(value).map(|network: &Cidr| network.0)
}

fn parse(text: &str, work: &WorkBudget) -> Result<IpNetwork, Error> {
    const PREFIX: &str = "network address parse error during conversion from string";
    match IpNetwork::parse(text) {
        Ok(network) if ip::is_mapped(network.address) => {
            Err(Error::text(format!("{PREFIX}: {}", ip::mapped_address_error(text)), work))
        }
        Ok(network) => Ok(network),
        // Upstream repeats the prefix.
        Err(error) => Err(Error::text(format!("{PREFIX}: {PREFIX}: {error}"), work)),
    }
}

fn contains_ip<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [network, address] = exactly(args)?;
    Ok(Value::Bool(network_of(network)?.contains(opaque::<Address>(address)?.0)))
}

/// As in upstream, an invalid address is a missing overload.
fn contains_ip_string<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [network, address] = exactly(args)?;
    let (network, address) = (network_of(network)?, str(address)?);
    let address = ip::parse(address, work).map_err(|_| Error::fixed("no such overload"))?;
    Ok(Value::Bool(network.contains(address)))
}

fn contains_cidr<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [network, other] = exactly(args)?;
    Ok(Value::Bool(network_of(network)?.covers(network_of(other)?)))
}

fn contains_cidr_string<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [network, other] = exactly(args)?;
    let (network, other) = (network_of(network)?, str(other)?);
    Ok(Value::Bool(network.covers(parse(other, work)?)))
}
