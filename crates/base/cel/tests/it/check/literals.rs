//! Invalid literals as arguments, which the checker rejects.

use super::{check_table, env, type_or_errors};
use mainstay_cel::Env;

#[test]
fn duration_timestamp_and_pattern_literals_are_checked() {
    check_table(
        &env(),
        &[
            (r#"duration("1h")"#, "duration"),
            (r#"duration("1x")"#, "1:10: invalid duration argument"),
            (r#"duration("")"#, "1:10: invalid duration argument"),
            ("duration(1)", "1:10: invalid duration argument"),
            (r#"timestamp("2020-01-01T00:00:00Z")"#, "timestamp"),
            (r#"timestamp("2020-01-01")"#, "1:11: invalid timestamp argument"),
            ("timestamp(253402300800)", "1:11: invalid timestamp argument"),
            ("duration(s)", "duration"),
            (r#"duration("1" + "x")"#, "duration"),
            (r#"s.matches("a+")"#, "bool"),
            (r#"s.matches("a(")"#, "1:11: invalid matches argument"),
            (r#"s.matches("(?=a)")"#, "1:11: invalid matches argument"),
            (r#"matches(s, "a(")"#, "bool"),
            (r#"matches("a(", s)"#, "1:9: invalid matches argument"),
            (r#"li.all(v, duration("x") == du)"#, "1:20: invalid duration argument"),
        ],
    );
}

#[test]
fn format_strings_are_checked_with_their_arguments() {
    check_table(
        &env(),
        &[
            (r#""%s".format([])"#, "1:12: index 0 out of range"),
            (r#""%".format([1])"#, "1:11: unexpected end of string"),
            (
                r#""%q".format([1])"#,
                r#"1:12: could not parse formatting clause: unrecognized formatting clause "q""#,
            ),
            (
                r#""%é".format([1])"#,
                r#"1:12: could not parse formatting clause: unrecognized formatting clause "Ã""#,
            ),
            (
                r#""%.f".format([1.0])"#,
                r#"1:13: could not parse formatting clause: error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax"#,
            ),
            (
                r#""%.2".format([1.0])"#,
                "1:13: could not parse formatting clause: error while parsing precision: could not find end of precision specifier",
            ),
            (
                r#""%.99999999999999999999f".format([1.0])"#,
                r#"1:33: could not parse formatting clause: error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing "99999999999999999999": value out of range"#,
            ),
            (
                r#""%.3f".format([1])"#,
                "1:16: error during formatting: fixed-point clause can only be used on doubles, was given int",
            ),
            (
                r#""%d".format([1.5])"#,
                "1:14: error during formatting: decimal clause can only be used on integers, was given double",
            ),
            (r#""%d".format([x])"#, "string"),
            (r#""%e".format(["NaN"])"#, "string"),
            (
                r#""%e".format([true])"#,
                "1:14: error during formatting: scientific clause can only be used on doubles, was given bool",
            ),
            (r#""%b".format([true])"#, "string"),
            (
                r#""%b".format(["a"])"#,
                "1:14: error during formatting: only integers and bools can be formatted as binary, was given string",
            ),
            (r#""%x".format([b"a"])"#, "string"),
            (
                r#""%X".format([1.5])"#,
                "1:14: error during formatting: only integers, byte buffers, and strings can be formatted as hex, was given double",
            ),
            (
                r#""%o".format(["a"])"#,
                "1:14: error during formatting: octal clause can only be used on integers, was given string",
            ),
            (
                r#""%s".format([ip("::1")])"#,
                "1:16: error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given net.IP",
            ),
            (
                r#""%s".format([[1, [quantity("1")]]])"#,
                "1:27: error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given kubernetes.Quantity",
            ),
            (
                r#""%s".format([{quantity("1"): 1}])"#,
                "1:23: error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given kubernetes.Quantity",
            ),
            (r#""%s".format([n])"#, "string"),
            (r#""%s".format([type(1)])"#, "string"),
            (
                r#""%s%%".format([1, 2])"#,
                "1:14: too many arguments supplied to string.format (expected 1, got 2)",
            ),
            (r#""%s %s".format([1])"#, "1:15: index 1 out of range"),
            (r#""%s".format(ld)"#, "string"),
            (r#"s.format([ip("::1")])"#, "string"),
            (r#""%s".format([[1, "a"]])"#, "string"),
            (
                r#"[[1, "a"]].map(v, "%s".format([v, 1]))"#,
                "1:6: expected type 'int' but found 'string'; 1:30: too many arguments supplied to string.format (expected 1, got 2)",
            ),
        ],
    );
}

#[test]
fn literals_are_checked_since_1_29() {
    for (minor, checked) in [(28, false), (29, true)] {
        let found = type_or_errors(&Env::kubernetes(minor), "duration('1x') == duration('x')");
        assert_eq!(found != "bool", checked, "1.{minor}: {found}");
        let found = type_or_errors(&Env::kubernetes(minor), "[1, 'a']");
        assert_eq!(found, "1:5: expected type 'int' but found 'string'", "1.{minor}");
    }
}
