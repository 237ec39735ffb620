//! Literals of random expressions: edge cases of functions.

use super::random::Random;
use mainstay_cel::types::Type;

const INTS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "-1",
    "7",
    "10",
    "100",
    "255",
    "0x10",
    "2147483647",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "1577934245",
];
const UINTS: &[&str] = &["0u", "1u", "2u", "10u", "0xFFu", "18446744073709551615u"];
const DOUBLES: &[&str] = &[
    "0.0",
    "1.0",
    "-1.5",
    "2.5",
    "0.1",
    "1e10",
    "1.7976931348623157e308",
    "5e-324",
    "1e19",
    "-9223372036854775808.0",
    ".5",
];
const STRINGS: &[&str] = &[
    "''",
    "'a'",
    "'abc'",
    "'Hello'",
    "'äöü'",
    "'日本語'",
    "'😀x'",
    "'a,b,c'",
    "'1'",
    "'-1.5'",
    "'true'",
    "'10s'",
    "'2020-01-02T03:04:05Z'",
    "'1.2.3.4'",
    "'10.0.0.0/8'",
    "'1Gi'",
    "'1.2.3'",
    "'https://example.com:80/p?k=v'",
    "'^[a-z]+$'",
    "'(a)(b'",
    "'%s'",
    "r'\\d+'",
    "\"it's\"",
    "'\\u00e4\\n\\t'",
    "'''x'''",
    "'NaN'",
];
const BYTES: &[&str] = &["b''", "b'abc'", "b'\\xff\\x00'", "b'ä'"];
const TIMES: &[&str] = &[
    "timestamp('2020-01-02T03:04:05Z')",
    "timestamp(0)",
    "timestamp('0001-01-01T00:00:00Z')",
    "timestamp('9999-12-31T23:59:59.999999999Z')",
];
const DURATIONS: &[&str] = &[
    "duration('1h')",
    "duration('-1.5s')",
    "duration('0')",
    "duration('1ns')",
    "duration('2562047h47m16.854775807s')",
];
const IPS: &[&str] = &["ip('1.2.3.4')", "ip('::1')", "ip('fe80::1')", "ip('x')"];
const CIDRS: &[&str] = &["cidr('10.0.0.0/8')", "cidr('2001:db8::/32')", "cidr('1.2.3.4/33')"];
const QUANTITIES: &[&str] = &[
    "quantity('1Gi')",
    "quantity('500m')",
    "quantity('-1')",
    "quantity('1e100')",
    "quantity('x')",
];
const SEMVERS: &[&str] = &["semver('1.2.3')", "semver('1.0.0-rc.1+b')", "semver('x')"];
const URLS: &[&str] = &["url('https://example.com:80/p?k=v')", "url('/p')", "url('a b')"];
const FORMATS: &[&str] = &["format.uuid()", "format.dns1123Label()", "format.date()"];
const TYPES: &[&str] = &["int", "string", "type", "list", "google.protobuf.Timestamp"];
const ZONES: &[&str] = &["'UTC'", "'America/New_York'", "'+01:30'", "'nowhere'", "''"];
const PATTERNS: &[&str] = &["'%s'", "'%d and %f'", "'%.3e'", "'%x%X%o%b'", "'%%'", "'%'", "'%q'"];

/// A literal of a type.
pub(super) fn leaf(random: &mut Random, cel_type: &Type) -> String {
    let fixed = match cel_type {
        Type::Int => INTS,
        Type::Uint => UINTS,
        Type::Double => DOUBLES,
        Type::String => STRINGS,
        Type::Bytes => BYTES,
        Type::Bool => &["true", "false"],
        Type::Null => &["null"],
        Type::Timestamp => TIMES,
        Type::Duration => DURATIONS,
        Type::Type(_) => TYPES,
        Type::Dyn | Type::Any => &["dyn(1)", "dyn('a')", "dyn([1, 'a'])", "dyn({'a': 1})", "null"],
        Type::List(element) => {
            let items: Vec<_> = (0..random.below(3)).map(|_| leaf(random, element)).collect();
            return format!("[{}]", items.join(", "));
        }
        Type::Map(entry) => {
            if random.percent(40) {
                return "{}".into();
            }
            return format!("{{{}: {}}}", leaf(random, &entry.0), leaf(random, &entry.1));
        }
        _ => match (opaque_name(cel_type), cel_type.optional_inner()) {
            (_, Some(_)) if random.percent(30) => &["optional.none()"],
            (_, Some(inner)) => return format!("optional.of({})", leaf(random, inner)),
            ("net.IP", _) => IPS,
            ("net.CIDR", _) => CIDRS,
            ("kubernetes.Quantity", _) => QUANTITIES,
            ("kubernetes.Semver", _) => SEMVERS,
            ("kubernetes.URL", _) => URLS,
            ("kubernetes.NamedFormat", _) => FORMATS,
            // The type has no literal; any text is rejected.
            _ => &["null"],
        },
    };
    random.pick(fixed).to_owned()
}

fn opaque_name(cel_type: &Type) -> &str {
    match cel_type {
        Type::Opaque(opaque) => &opaque.name,
        Type::Object(object) => &object.name,
        _ => "",
    }
}

/// An argument that few functions accept, if the overload needs one.
pub(super) fn argument(random: &mut Random, overload: &str, at: usize) -> Option<String> {
    let fixed = match at {
        1 if overload.ends_with("_with_tz") => ZONES,
        0 if overload == "string_format" => PATTERNS,
        // Comprehensions over them would take too long.
        0 if overload == "lists_range" || overload == "list_flatten_int" => &["0", "3", "-1"],
        1 if overload.starts_with("list_index") || overload == "index_list" => &["0", "1", "-1"],
        _ => return None,
    };
    random.percent(90).then(|| random.pick(fixed).to_owned())
}
