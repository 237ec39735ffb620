//! Integration tests of text formats, and of the errors for invalid texts.

use mainstay_formats::address::{IpNetwork, parse_address};
use mainstay_formats::url::Url;
use mainstay_gocompat::{quote, quote_bytes};

#[test]
fn addresses_are_parsed_and_refused_as_by_go() {
    for (text, read) in [
        ("10.0.0.1", Ok("10.0.0.1")),
        ("2001:DB8::0001", Ok("2001:db8::1")),
        ("::ffff:1.2.3.4", Ok("::ffff:1.2.3.4")),
        ("fe80::1%eth0", Ok("fe80::1")),
        ("1:2:3:4:5:6:7::", Ok("1:2:3:4:5:6:7:0")),
        ("x", Err("unable to parse IP")),
        ("%eth0", Err("missing IPv6 address")),
        ("01.2.3.4", Err("IPv4 field has octet with leading zero")),
        ("1.2.3.256", Err("IPv4 field has value >255")),
        ("1.2.3", Err("IPv4 address too short")),
        ("1.2.3.4.5", Err("IPv4 address too long")),
        ("1..2.3", Err("IPv4 field must have at least one digit (at \".2.3\")")),
        ("1.2.3.x", Err("unexpected character (at \"x\")")),
        ("::%", Err("zone must be a non-empty string")),
        ("12345::", Err("each group must have 4 or less digits (at \"12345::\")")),
        (":1", Err("each colon-separated field must have at least one digit (at \":1\")")),
        ("1::2::3", Err("multiple :: in address (at \":3\")")),
        ("1:", Err("colon must be followed by more characters (at \":\")")),
        ("1:2", Err("address string too short")),
        ("1:2:3:4:5:6:7:8:9", Err("trailing garbage after address (at \"9\")")),
        ("1:2:3:4::5:6:7:8", Err("the :: must expand to at least one field of zeros")),
    ] {
        let found = parse_address(text)
            .map(|zoned| zoned.address.to_string())
            .map_err(|error| error.to_string());
        let wanted =
            read.map(str::to_owned).map_err(|why| format!("ParseAddr({}): {why}", quote(text)));
        assert_eq!(found, wanted, "{text}");
    }
}

#[test]
fn networks_contain_addresses_and_networks_of_their_family() {
    let network = |text: &str| IpNetwork::parse(text).unwrap();
    let address = |text: &str| parse_address(text).unwrap().address;
    assert_eq!(network("10.1.2.3/8").masked().to_string(), "10.0.0.0/8");
    assert_eq!(network("ffff::/0").masked().to_string(), "::/0");
    for (whole, part, holds) in [
        ("10.0.0.0/8", "10.1.2.3", true),
        ("10.0.0.0/8", "11.1.2.3", false),
        ("0.0.0.0/0", "::1", false),
        ("::/0", "1.2.3.4", false),
        ("1.2.3.4/32", "1.2.3.4", true),
    ] {
        assert_eq!(network(whole).contains(address(part)), holds, "{whole} {part}");
    }
    assert!(network("10.0.0.0/8").covers(network("10.1.0.0/16")));
    assert!(!network("10.1.0.0/16").covers(network("10.0.0.0/8")));
    for (text, why) in [
        ("1.2.3.4", "no '/'"),
        ("1.2.3.4/33", "prefix length out of range"),
        ("1.2.3.4/08", "bad bits after slash: \"08\""),
        ("1.2.3.4/x", "bad bits after slash: \"x\""),
        ("fe80::1%a/8", "IPv6 zones cannot be present in a prefix"),
        ("x/8", "ParseAddr(\"x\"): unable to parse IP"),
    ] {
        let error = format!("netip.ParsePrefix({}): {why}", quote(text));
        assert_eq!(IpNetwork::parse(text).unwrap_err().to_string(), error);
    }
}

#[test]
fn urls_are_formatted_as_by_go() {
    for (text, written) in [
        ("HTTP://U:p%40@H:80/a%2Fb?q#f%20g", "http://U:p%40@H:80/a%2Fb?q#f%20g"),
        ("http://é/é", "http://%C3%A9/%C3%A9"),
        ("mailto:x@y", "mailto:x@y"),
        ("/a b", "/a%20b"),
        ("http:///p?", "http:///p?"),
        ("http:/p", "http:/p"),
        ("http://[::1]:80/", "http://[::1]:80/"),
    ] {
        assert_eq!(Url::parse(text).unwrap().to_string(), written, "{text}");
    }
    let url = Url::parse("https://[fe80::1%25eth0]:8/?a=b&a=c+d&e&x=%zz&f;g=h").unwrap();
    assert_eq!((&*url.hostname(), url.port()), ("fe80::1%eth0", "8"));
    let query: Vec<(String, String)> = url.query().collect();
    let wanted = [("a", "b"), ("a", "c d"), ("e", "")];
    assert_eq!(query, wanted.map(|(key, value)| (key.to_owned(), value.to_owned())));
}

#[test]
fn bytes_that_are_not_utf8_are_quoted_one_by_one() {
    assert_eq!(quote_bytes(b"a\xff\n"), r#""a\xff\n""#);
    assert_eq!(quote("é\u{200b}\u{e0001}"), "\"é\\u200b\\U000e0001\"");
}
