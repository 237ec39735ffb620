//! IP addresses and networks, parsed as Go's `net/netip` does it.

use mainstay_gocompat::quote;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address with its IPv6 zone, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonedAddress<'a> {
    /// The address.
    pub address: IpAddr,
    /// The zone; empty if absent.
    pub zone: &'a str,
}

/// Why a text is not an address.
#[derive(Clone, Copy)]
struct Fault<'a> {
    why: &'static str,
    /// The rest of the text at the error; empty if the error has no position.
    at: &'a str,
}

const fn fault(why: &'static str) -> Fault<'static> {
    Fault { why, at: "" }
}

/// Why a text is not an address, as Go prints it: `ParseAddr("x"): unable to parse IP`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseAddressError {
    text: String,
    reason: &'static str,
    /// The rest of the text at the error; empty if the error has no position.
    at: String,
}

impl std::error::Error for ParseAddressError {}

impl fmt::Display for ParseAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ParseAddr({}): {}", quote(&self.text), self.reason)?;
        if self.at.is_empty() { Ok(()) } else { write!(f, " (at {})", quote(&self.at)) }
    }
}

/// Parses an address.
///
/// # Errors
///
/// If the text is not an address.
pub fn parse_address(text: &str) -> Result<ZonedAddress<'_>, ParseAddressError> {
    let parsed = match text.bytes().find(|byte| matches!(byte, b'.' | b':' | b'%')) {
        Some(b'.') => {
            parse_v4(text).map(|address| ZonedAddress { address: address.into(), zone: "" })
        }
        Some(b':') => parse_v6(text),
        Some(_) => Err(fault("missing IPv6 address")),
        None => Err(fault("unable to parse IP")),
    };
    parsed.map_err(|Fault { why, at }| ParseAddressError {
        text: text.to_owned(),
        reason: why,
        at: at.to_owned(),
    })
}

fn parse_v4(text: &str) -> Result<Ipv4Addr, Fault<'_>> {
    let bytes = text.as_bytes();
    let mut fields = [0_u8; 4];
    let (mut field, mut value, mut digits) = (0, 0_u16, 0);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return Err(fault("IPv4 field has octet with leading zero"));
                }
                value = value * 10 + u16::from(byte - b'0');
                digits += 1;
                fields[field] =
                    u8::try_from(value).map_err(|_| fault("IPv4 field has value >255"))?;
            }
            b'.' => {
                if at == 0 || at == bytes.len() - 1 || bytes[at - 1] == b'.' {
                    let why = "IPv4 field must have at least one digit";
                    return Err(Fault { why, at: &text[at..] });
                }
                if field == 3 {
                    return Err(fault("IPv4 address too long"));
                }
                field += 1;
                (value, digits) = (0, 0);
            }
            _ => return Err(Fault { why: "unexpected character", at: &text[at..] }),
        }
    }
    if field < 3 {
        return Err(fault("IPv4 address too short"));
    }
    Ok(fields.into())
}

fn parse_v6(text: &str) -> Result<ZonedAddress<'_>, Fault<'_>> {
    let (mut rest, zone) = match text.split_once('%') {
        Some((_, "")) => return Err(fault("zone must be a non-empty string")),
        Some((rest, zone)) => (rest, zone),
        None => (text, ""),
    };
    let mut bytes = [0_u8; 16];
    let mut gap = None;
    let mut filled = 0;
    if let Some(after) = rest.strip_prefix("::") {
        gap = Some(0);
        rest = after;
        if rest.is_empty() {
            return Ok(ZonedAddress { address: Ipv6Addr::UNSPECIFIED.into(), zone });
        }
    }
    while filled < 16 {
        let at = |why| Fault { why, at: rest };
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits > 4 {
            return Err(at("each group must have 4 or less digits"));
        }
        let Ok(group) = u16::from_str_radix(&rest[..digits], 16) else {
            return Err(at("each colon-separated field must have at least one digit"));
        };
        if rest[digits..].starts_with('.') {
            if gap.is_none() && filled != 12 {
                return Err(at(
                    "embedded IPv4 address must replace the final 2 fields of the address",
                ));
            }
            if filled + 4 > 16 {
                return Err(at(
                    "too many hex fields to fit an embedded IPv4 at the end of the address",
                ));
            }
            bytes[filled..filled + 4].copy_from_slice(&parse_v4(rest)?.octets());
            filled += 4;
            rest = "";
            break;
        }
        bytes[filled..filled + 2].copy_from_slice(&group.to_be_bytes());
        filled += 2;
        rest = &rest[digits..];
        if rest.is_empty() {
            break;
        }
        let at = |why| Fault { why, at: rest };
        let Some(after) = rest.strip_prefix(':') else {
            return Err(at("unexpected character, want colon"));
        };
        if after.is_empty() {
            return Err(at("colon must be followed by more characters"));
        }
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            if gap.is_some() {
                return Err(Fault { why: "multiple :: in address", at: rest });
            }
            gap = Some(filled);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
    }
    if !rest.is_empty() {
        return Err(Fault { why: "trailing garbage after address", at: rest });
    }
    match gap {
        None if filled < 16 => return Err(fault("address string too short")),
        Some(_) if filled == 16 => {
            return Err(fault("the :: must expand to at least one field of zeros"));
        }
        Some(gap) => {
            bytes.copy_within(gap..filled, 16 - (filled - gap));
            bytes[gap..16 - (filled - gap)].fill(0);
        }
        None => {}
    }
    Ok(ZonedAddress { address: Ipv6Addr::from(bytes).into(), zone })
}

/// A CIDR network: an address and its prefix length. Host bits may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpNetwork {
    /// The address.
    pub address: IpAddr,
    /// The prefix length.
    pub bits: u8,
}

/// Why a text is not a network, as Go prints it: `netip.ParsePrefix("x"): no '/'`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("netip.ParsePrefix({}): {source}", quote(text))]
pub struct ParseNetworkError {
    /// The text.
    pub text: String,
    /// The reason.
    pub source: NetworkSyntaxError,
}

/// The syntax error of a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkSyntaxError {
    /// No slash separates the address and the prefix length.
    #[error("no '/'")]
    MissingSlash,
    /// The part before the slash is not an address.
    #[error(transparent)]
    ParseAddress(#[from] ParseAddressError),
    /// The address has a zone.
    #[error("IPv6 zones cannot be present in a prefix")]
    Zone,
    /// The part after the slash is not a number.
    #[error("bad bits after slash: {}", quote(bits))]
    ParseBits {
        /// The part after the slash.
        bits: String,
    },
    /// The prefix is longer than the address.
    #[error("prefix length out of range")]
    OutOfRange,
}

impl IpNetwork {
    /// Parses a network such as `10.0.0.0/8`.
    ///
    /// # Errors
    ///
    /// If the text is not a network.
    pub fn parse(text: &str) -> Result<Self, ParseNetworkError> {
        Self::parse_parts(text)
            .map_err(|source| ParseNetworkError { text: text.to_owned(), source })
    }

    fn parse_parts(text: &str) -> Result<Self, NetworkSyntaxError> {
        let (address, bits) = text.rsplit_once('/').ok_or(NetworkSyntaxError::MissingSlash)?;
        let ZonedAddress { address, zone } = parse_address(address)?;
        if !zone.is_empty() {
            return Err(NetworkSyntaxError::Zone);
        }
        let bad = || NetworkSyntaxError::ParseBits { bits: bits.to_owned() };
        if bits.is_empty()
            || !bits.bytes().all(|byte| byte.is_ascii_digit())
            || (bits.len() > 1 && bits.starts_with('0'))
        {
            return Err(bad());
        }
        let number: i64 = bits.parse().map_err(|_| bad())?;
        match u8::try_from(number) {
            Ok(bits) if u32::from(bits) <= width(address) => Ok(Self { address, bits }),
            _ => Err(NetworkSyntaxError::OutOfRange),
        }
    }

    /// The network with its host bits cleared.
    #[must_use]
    pub fn masked(self) -> Self {
        let address = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V4((address.to_bits() & mask).into())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V6((address.to_bits() & mask).into())
            }
        };
        Self { address, bits: self.bits }
    }

    /// Whether the network contains an address. Networks contain only addresses of their own
    /// family.
    pub fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && Self { address, bits: self.bits }.masked().address == self.masked().address
    }

    /// Whether the network contains another network.
    pub fn covers(self, other: Self) -> bool {
        self.bits <= other.bits && self.contains(other.address)
    }
}

/// The number of bits of an address.
fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl fmt::Display for IpNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}
