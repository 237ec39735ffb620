//! Addresses and networks as Go's `net/netip` reads them.

use mainstay_gocompat::quote;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address, with the zone that may stand behind one of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zoned<'a> {
    /// The address.
    pub address: IpAddr,
    /// The zone; empty if there is none.
    pub zone: &'a str,
}

/// Why a text is no address.
#[derive(Clone, Copy)]
struct Fault<'a> {
    why: &'static str,
    /// From where on; empty if no place is to blame.
    at: &'a str,
}

const fn fault(why: &'static str) -> Fault<'static> {
    Fault { why, at: "" }
}

/// A text is no address; the text is Go's: `ParseAddr("x"): unable to parse IP`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseAddressError {
    text: String,
    reason: &'static str,
    /// From where on the text is wrong; empty if no place is to blame.
    at: String,
}

impl std::error::Error for ParseAddressError {}

impl fmt::Display for ParseAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ParseAddr({}): {}", quote(&self.text), self.reason)?;
        if self.at.is_empty() { Ok(()) } else { write!(f, " (at {})", quote(&self.at)) }
    }
}

/// Reads an address.
///
/// # Errors
///
/// The text is no address.
pub fn parse_address(text: &str) -> Result<Zoned<'_>, ParseAddressError> {
    let read = match text.bytes().find(|byte| matches!(byte, b'.' | b':' | b'%')) {
        Some(b'.') => parse_v4(text).map(|address| Zoned { address: address.into(), zone: "" }),
        Some(b':') => parse_v6(text),
        Some(_) => Err(fault("missing IPv6 address")),
        None => Err(fault("unable to parse IP")),
    };
    read.map_err(|Fault { why, at }| ParseAddressError {
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

fn parse_v6(text: &str) -> Result<Zoned<'_>, Fault<'_>> {
    let (mut rest, zone) = match text.split_once('%') {
        Some((_, "")) => return Err(fault("zone must be a non-empty string")),
        Some((rest, zone)) => (rest, zone),
        None => (text, ""),
    };
    let mut bytes = [0_u8; 16];
    let mut gap = None;
    let mut filled = 0;
    if let Some(behind) = rest.strip_prefix("::") {
        gap = Some(0);
        rest = behind;
        if rest.is_empty() {
            return Ok(Zoned { address: Ipv6Addr::UNSPECIFIED.into(), zone });
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
        let Some(behind) = rest.strip_prefix(':') else {
            return Err(at("unexpected character, want colon"));
        };
        if behind.is_empty() {
            return Err(at("colon must be followed by more characters"));
        }
        rest = behind;
        if let Some(behind) = rest.strip_prefix(':') {
            if gap.is_some() {
                return Err(Fault { why: "multiple :: in address", at: rest });
            }
            gap = Some(filled);
            rest = behind;
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
    Ok(Zoned { address: Ipv6Addr::from(bytes).into(), zone })
}

/// An address of a network and how many of its bits are the network's. The others may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The address.
    pub address: IpAddr,
    /// The bits.
    pub bits: u8,
}

/// A text is no network; the text is Go's: `netip.ParsePrefix("x"): no '/'`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("netip.ParsePrefix({}): {source}", quote(text))]
pub struct ParseNetworkError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub source: NetworkSyntaxError,
}

/// What is wrong with a text that is no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkSyntaxError {
    /// No slash separates an address and the number of bits.
    #[error("no '/'")]
    MissingSlash,
    /// The part before the slash is no address.
    #[error(transparent)]
    ParseAddress(#[from] ParseAddressError),
    /// The address has a zone.
    #[error("IPv6 zones cannot be present in a prefix")]
    Zone,
    /// The part behind the slash is no number.
    #[error("bad bits after slash: {}", quote(bits))]
    ParseBits {
        /// The part behind the slash.
        bits: String,
    },
    /// The address has fewer bits.
    #[error("prefix length out of range")]
    OutOfRange,
}

impl Network {
    /// Reads a network, `10.0.0.0/8`.
    ///
    /// # Errors
    ///
    /// The text is no network.
    pub fn parse(text: &str) -> Result<Self, ParseNetworkError> {
        Self::read(text).map_err(|source| ParseNetworkError { text: text.to_owned(), source })
    }

    fn read(text: &str) -> Result<Self, NetworkSyntaxError> {
        let (address, bits) = text.rsplit_once('/').ok_or(NetworkSyntaxError::MissingSlash)?;
        let Zoned { address, zone } = parse_address(address)?;
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

    /// Without the bits that are not the network's.
    #[must_use]
    pub fn masked(self) -> Self {
        let address = match self.address {
            IpAddr::V4(address) => {
                let kept = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V4((address.to_bits() & kept).into())
            }
            IpAddr::V6(address) => {
                let kept = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V6((address.to_bits() & kept).into())
            }
        };
        Self { address, bits: self.bits }
    }

    /// Whether an address is part of it. Those of IPv4 are in no network of IPv6, and conversely.
    pub fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && Self { address, bits: self.bits }.masked().address == self.masked().address
    }

    /// Whether another network is part of it.
    pub fn covers(self, other: Self) -> bool {
        self.bits <= other.bits && self.contains(other.address)
    }
}

/// How many bits an address has.
fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}
