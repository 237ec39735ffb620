//! Estimated and actual costs.
//!
//! All costs are those of cel-go 0.26 with Kubernetes 1.35's libraries and estimators.

mod paths;

use mainstay_cel::Env;
use mainstay_cel::cost::{SizeEstimator, estimate};
use mainstay_cel::eval::{CostBudget, Program};
use mainstay_cel::types::Type;
use mainstay_cel::value::{BytesValue, ListValue, MapKey, MapValue, StringValue, Timestamp, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The sizes of the variables.
struct Bounds;

impl SizeEstimator for Bounds {
    fn size(&self, path: &[&str]) -> Option<(u64, u64)> {
        Some(match path {
            ["s"] => (0, 30),
            ["t"] => (0, 10),
            ["y"] => (2, 16),
            ["ls"] | ["mss", "@keys"] => (0, 5),
            ["ls", "@items"] => (0, 12),
            ["li"] => (0, 8),
            ["mss", "@values"] => (1, 64),
            ["spec", "parts"] => (0, 3),
            ["mss"] | ["spec", "parts", "@items", "tags"] => (0, 4),
            ["spec", "parts", "@items", "tags", "@items"] => (0, 21),
            ["spec", "parts", "@items", "names"] => (0, 2),
            ["u2"] => (0, 40),
            _ => return None,
        })
    }
}

fn text(text: &str) -> Value<'_> {
    Value::String(StringValue::Borrowed(text))
}

fn list(values: Vec<Value<'_>>) -> Value<'_> {
    Value::List(ListValue::Values(Arc::new(values)))
}

fn map<'a>(entries: impl IntoIterator<Item = (&'a str, Value<'a>)>) -> Value<'a> {
    let entries: BTreeMap<_, _> = entries
        .into_iter()
        .map(|(key, value)| (MapKey::String(StringValue::Borrowed(key)), value))
        .collect();
    Value::Map(MapValue::Values(Arc::new(entries)))
}

/// The variables, with their types and values.
fn variables() -> Vec<(&'static str, Type, Value<'static>)> {
    let texts = |texts: &[&'static str]| list(texts.iter().map(|each| text(each)).collect());
    let strings = || Type::list(Type::String);
    let part = |tags, names| map([("tags", texts(tags)), ("names", texts(names))]);
    let parts = vec![part(&["abcdefghijklmno", "x"], &["x", "y"]), part(&[], &[])];
    let bytes: &[u8] = b"abcdefghijk";
    let long = text("abcdefghijklmno,\u{e4}\u{f6}\u{fc}");
    let spec = Type::map(Type::String, Type::list(Type::map(Type::String, strings())));
    vec![
        ("i", Type::Int, Value::Int(2)),
        ("b", Type::Bool, Value::Bool(true)),
        ("s", Type::String, long.clone()),
        ("t", Type::String, text("abc")),
        ("s2", Type::String, text("42")),
        ("ts2", Type::String, text("2020-01-01T00:00:00Z")),
        ("u2", Type::String, text("https://example.com/b")),
        ("x", Type::Dyn, long),
        ("y", Type::Bytes, Value::Bytes(BytesValue::Borrowed(bytes))),
        (
            "ts",
            Type::Timestamp,
            Value::Timestamp(Timestamp { seconds: 1_577_934_245, nanos: 0, offset: 0 }),
        ),
        ("du", Type::Duration, Value::Duration(3_600_000_000_000)),
        ("li", Type::list(Type::Int), list((1..=3).map(Value::Int).collect())),
        ("ls", strings(), texts(&["abcdefghijkl", "b", ""])),
        (
            "mss",
            Type::map(Type::String, Type::String),
            map([("a", text("abcdefghijklmno")), ("bcd", text("x"))]),
        ),
        ("o", Type::optional(Type::Int), Value::Optional(Some(Arc::new(Value::Int(5))))),
        ("spec", spec, map([("parts", list(parts))])),
    ]
}

/// An environment with the variables, and their values.
fn environment_and_values() -> (Env, Vec<(&'static str, Value<'static>)>) {
    let variables = variables();
    let env = variables
        .iter()
        .fold(Env::kubernetes(34), |env, (name, of, _)| env.with_variable(name, of.clone()));
    let values: Vec<_> = variables.into_iter().map(|(name, _, value)| (name, value)).collect();
    (env, values)
}

/// Checks the estimated minimum and maximum (empty after the dots if unbounded) and the actual
/// cost.
fn check_table(rows: &[(&str, &str, u64)]) {
    let (env, values) = environment_and_values();
    let mut differences = Vec::new();
    for (expression, range, cost) in rows {
        let checked = match env.compile(expression) {
            Ok(checked) => checked,
            Err(issues) => {
                differences.push(format!("{expression}\n{issues}"));
                continue;
            }
        };
        let found = estimate(&checked, &Bounds);
        let max = if found.max == u64::MAX { String::new() } else { found.max.to_string() };
        let found = format!("{}..{max}", found.min);
        let program = Program::new(&checked).unwrap();
        let mut budget = CostBudget::unlimited();
        // A failed evaluation has the cost until the error.
        let _ = program.eval(&values, &mut budget);
        if found != *range || budget.spent() != *cost {
            differences.push(format!(
                "{expression}\n  expected {range}, {cost}\n  found    {found}, {}",
                budget.spent()
            ));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn operators() {
    check_table(&[
        ("1", "0..0", 0),
        ("s", "1..1", 1),
        ("i + 1", "2..2", 2),
        ("i == 1", "2..2", 2),
        (r#"s == "abcdefghijklmnop""#, "2..3", 3),
        ("s + s == t", "4..10", 8),
        ("y + y == y", "5..9", 8),
        ("li == li", "3..3", 3),
        ("ls == ls", "3..3", 3),
        ("mss == mss", "3..3", 3),
        ("s < t", "3..3", 3),
        ("y >= y", "3..4", 4),
        ("i < 2.0", "2..2", 2),
        ("x == s", "3..5", 4),
        ("x + x", "2..1844674407370955266", 3),
        ("!b", "2..2", 2),
        ("b && i == 1", "1..3", 3),
        ("b || s == t", "1..4", 1),
        ("b && s == t || i == 2", "1..6", 6),
        ("b ? s : t", "2..2", 1),
        ("(b ? s : t) + t", "3..7", 5),
        ("-i", "2..2", 2),
        ("i in li", "2..10", 5),
        ("i in [1, 2, 3]", "14..14", 1),
        ("s in ls", "2..7", 5),
        ("s in mss", "3..3", 3),
        ("size(s)", "2..2", 2),
        ("li.size()", "2..2", 2),
        ("type(i)", "2..2", 2),
        ("dyn(s) == t", "4..4", 4),
        ("dyn(li).size()", "3..3", 3),
    ]);
}

#[test]
fn data_access() {
    check_table(&[
        ("spec.parts", "2..2", 2),
        ("spec.parts[0].tags", "4..4", 4),
        ("spec.parts[0].tags[0] == s", "7..9", 8),
        (r#"spec["parts"]"#, "2..2", 2),
        ("has(spec.parts)", "1..1", 1),
        ("has(spec.parts[0].tags)", "3..3", 3),
        (r#"mss.a == "x""#, "3..3", 3),
        (r#"ls[0] == "x""#, "3..3", 3),
        ("[1, 2]", "10..10", 0),
        ("[s, t]", "12..12", 12),
        ("[s, t][0] == t", "15..15", 16),
        (r#"{"a": s}"#, "31..31", 31),
        (r#"{"a": s}["a"] == t"#, "34..34", 35),
        (r#"{"a": s}.a == t"#, "34..34", 35),
        ("[]", "10..10", 0),
        ("{}", "30..30", 0),
        ("[[s], ls]", "22..22", 22),
    ]);
}

#[test]
fn comprehensions() {
    check_table(&[
        ("li.all(v, v > 0)", "2..42", 17),
        ("li.all(v, true)", "2..26", 11),
        ("ls.exists(v, v == t)", "2..37", 22),
        (r#"ls.exists(v, v.startsWith("abc"))"#, "2..32", 12),
        (r#"ls.exists_one(v, v == "x")"#, "3..23", 8),
        (r#"ls.map(v, v + "a")"#, "12..87", 45),
        (r#"ls.map(v, v + "a").exists(w, w == t)"#, "13..123", 67),
        (r#"ls.map(v, v != "a", v)"#, "12..87", 46),
        ("ls.filter(v, v == s)", "12..97", 11),
        ("ls.filter(v, v == s).size()", "13..98", 12),
        ("mss.all(k, mss[k] == k)", "2..34", 11),
        ("mss.map(k, k)", "12..64", 28),
        ("spec.parts.all(p, p.tags == p.names)", "3..27", 13),
        ("spec.parts.all(p, p.tags.all(q, q in p.names))", "3..69", 21),
        ("spec.parts.exists(p, p.tags.exists(q, p.names[0].contains(q)))", "3..", 32),
        (r#"spec.parts.map(p, p.tags[0]).join(",")"#, "13..1844674407370955322", 34),
        ("mss.all(k, k.startsWith(mss[k]))", "2..58", 11),
        ("[1, 2, 3].all(v, v in li)", "20..50", 25),
        ("[s, t].all(v, v == s)", "19..29", 26),
        (r#"["abc", "defghijklmnopqrs"].all(v, v == s)"#, "17..25", 9),
        (r#"{"a": s, "b": t}.all(k, k == s)"#, "39..45", 41),
        ("[[1, 2], [3]].all(v, v.all(w, w > 0))", "37..61", 26),
        ("li.map(v, li.map(w, v + w)).size()", "13..1165", 180),
        ("ls.all(k, v, k == i || v == s)", "2..52", 14),
        ("mss.all(k, v, k == v)", "2..26", 10),
        ("ls.transformList(k, v, v + s)", "12..107", 52),
        ("ls.transformMap(k, v, v + s)", "32..82", 25),
        ("mss.transformMapEntry(k, v, {v: k})", "32..168", 70),
    ]);
}

#[test]
fn string_functions() {
    check_table(&[
        ("s.startsWith(t)", "2..3", 4),
        (r#"s.endsWith("abcdefghijk")"#, "3..3", 3),
        ("s.contains(t)", "2..5", 4),
        (r#"s.contains("abcdefghijklmnopqrstuvwxyz")"#, "1..10", 7),
        (r#"s.matches("^[a-z]+$")"#, "3..9", 5),
        ("s.matches(t)", "2..14", 4),
        (r#"s.find("[a-z]+")"#, "3..9", 5),
        ("s.findAll(t)", "2..14", 4),
        (r#"s.findAll("a", 2)"#, "2..5", 3),
        ("s.lowerAscii()", "1..4", 3),
        ("s.upperAscii() == t", "3..6", 5),
        ("s.trim()", "1..4", 3),
        ("s.substring(1)", "1..4", 3),
        (r#"s.replace("a", "bcd")"#, "1..7", 5),
        (r#"s.replace("", "bcd").size()"#, "2..8", 6),
        (r#"s.replace("abc", "d") == t"#, "3..9", 7),
        ("s.replace(t, t) == t", "5..11", 9),
        (r#"s.split(",")"#, "1..7", 5),
        (r#"s.split(",", 2).size()"#, "2..8", 6),
        (r#"s.split(",")[0] == t"#, "4..10", 9),
        ("ls.join()", "1..7", 4),
        (r#"ls.join(", ") == t"#, "3..10", 7),
        ("s.charAt(0)", "2..2", 2),
        ("s.indexOf(t)", "2..5", 4),
        (r#"s.lastIndexOf("a")"#, "1..4", 3),
        (r#""%s %d".format([s, i])"#, "13..13", 13),
        ("strings.quote(s)", "1..4", 3),
        ("bytes(s)", "1..4", 3),
        ("string(y)", "2..3", 3),
        ("string(bytes(s)) == t", "3..18", 8),
        ("string(i)", "2..2", 2),
        ("int(s2)", "2..2", 2),
        ("timestamp(ts2)", "2..2", 2),
        (r#"duration("1h")"#, "1..1", 0),
        ("ts.getFullYear()", "2..2", 2),
        ("ts - ts < du", "5..5", 5),
    ]);
}

#[test]
fn list_functions() {
    check_table(&[
        ("li.sum()", "1..9", 4),
        ("ls.min()", "1..16", 2),
        ("ls.max() == s", "3..20", 4),
        ("li.isSorted()", "1..9", 4),
        ("ls.isSorted()", "1..16", 2),
        ("ls.indexOf(s)", "2..17", 3),
        ("li.lastIndexOf(2)", "1..9", 4),
        ("ls.distinct()", "12..62", 30),
        ("li.sort()", "12..140", 30),
        ("ls.sort()", "12..65", 30),
        ("[3, 1, 2].sort()", "39..39", 29),
        (r#"["b", "a"].sort()"#, "30..30", 19),
        ("ls.sortBy(v, v)", "35..153", 72),
        ("[[1], [2]].flatten()", "43..43", 13),
        ("[[[1]], [[2]]].flatten(2)", "65..65", 15),
        ("lists.range(5)", "16..16", 16),
        ("lists.range(i)", "18446744073709551615..", 14),
        ("ls.reverse()", "12..17", 15),
        ("ls.slice(0, 1)", "13..13", 13),
        ("ls.first()", "2..2", 2),
        (r#"sets.contains(ls, ["a", "b"])"#, "12..22", 8),
        ("sets.intersects(li, li)", "3..67", 12),
        ("sets.equivalent([1, 2], li)", "12..44", 14),
    ]);
}

#[test]
fn kubernetes_functions() {
    check_table(&[
        (r#"url("https://example.com/a").getHost()"#, "4..4", 4),
        (r#"url("https://example.com/a") == url(u2)"#, "5..12", 8),
        ("isURL(s)", "2..2", 2),
        (r#"ip("10.0.0.1").family()"#, "2..2", 2),
        (r#"ip("10.0.0.1") == ip("::1")"#, "3..3", 3),
        ("isIP(s)", "1..4", 3),
        (r#"ip.isCanonical("10.0.0.1")"#, "2..2", 2),
        (r#"cidr("10.0.0.0/8").containsIP("10.0.0.1")"#, "3..6", 3),
        (r#"cidr("10.0.0.0/8").containsIP(ip("10.0.0.1"))"#, "3..6", 3),
        (r#"cidr("10.0.0.0/8").containsCIDR("10.0.0.0/16")"#, "6..10", 6),
        (r#"cidr("10.0.0.0/8").containsCIDR(cidr("10.0.0.0/16"))"#, "6..10", 6),
        (r#"cidr("10.0.0.0/8").ip()"#, "2..2", 2),
        (r#"cidr("10.0.0.0/8").masked().prefixLength()"#, "3..3", 3),
        (r#"isCIDR("10.0.0.0/8")"#, "1..1", 1),
        (r#"quantity("1Gi").isGreaterThan(quantity("1Mi"))"#, "3..3", 3),
        (r#"quantity("1") == quantity("1.0")"#, "3..3", 3),
        ("isQuantity(s)", "1..4", 3),
        (r#"quantity("1").add(2).asInteger()"#, "3..3", 3),
        (r#"semver("1.2.3").isLessThan(semver("1.2.4"))"#, "3..3", 3),
        ("isSemver(s)", "1..4", 3),
        (r#"semver("1.2.3") == semver("1.2.3")"#, "3..3", 3),
        ("format.dns1123Label().validate(s)", "2..98", 18),
        (r#"format.uuid().validate("0123")"#, "33..33", 19),
        (r#"format.named("byte").hasValue()"#, "2..2", 2),
        ("format.dns1123Label() == format.dns1123Label()", "3..9", 3),
    ]);
}

#[test]
fn optionals() {
    check_table(&[
        ("optional.of(s)", "2..2", 2),
        ("optional.of(s) == optional.of(t)", "5..1844674407370955268", 5),
        ("optional.none().orValue(s) == t", "5..5", 4),
        (r#"mss.?a.orValue("")"#, "3..3", 2),
        ("mss.?a == optional.of(t)", "5..1844674407370955268", 5),
        (r#"mss[?"a"]"#, "2..2", 2),
        (r#"mss[?"a"].orValue("b") == t"#, "5..5", 4),
        ("ls[?0].hasValue()", "3..3", 3),
        ("o.optMap(v, v + 1)", "3..17", 7),
        ("o.optFlatMap(v, optional.of(v))", "3..16", 6),
        ("[?o, 1]", "11..11", 11),
        (r#"{?"a": mss.?a}"#, "32..32", 32),
    ]);
}

#[test]
fn list_function_errors_with_unknown_cost_are_fatal() {
    let (env, values) = environment_and_values();
    for (expression, expected) in [
        ("[li][i].reverse() == li || true", Ok(true)),
        ("true || [li][i].distinct() == li", Ok(true)),
        (
            "[li][i].distinct() == li || true",
            Err("internal error: interface conversion: *types.Err is not traits.Lister: missing \
                 method Add"),
        ),
        (
            "[[li]].flatten([1][i]) == li || true",
            Err("internal error: interface conversion: ref.Val is *types.Err, not types.Int"),
        ),
    ] {
        let program = Program::new(&env.compile(expression).unwrap()).unwrap();
        let found = match program.eval(&values, &mut CostBudget::unlimited()) {
            Ok(value) => Ok(matches!(value, Value::Bool(true))),
            Err(error) => Err(error.to_string()),
        };
        assert_eq!(found, expected.map_err(str::to_owned), "{expression}");
    }
}
