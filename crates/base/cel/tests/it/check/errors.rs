//! Type errors and their messages.

use super::{check_table, env};

#[test]
fn undeclared_names_are_errors() {
    check_table(
        &env(),
        &[
            ("y2", "1:1: undeclared reference to 'y2' (in container '')"),
            ("y2.z", "1:1: undeclared reference to 'y2' (in container '')"),
            (
                "y2.z()",
                "1:1: undeclared reference to 'y2' (in container ''); 1:5: undeclared reference to 'z' (in container '')",
            ),
            ("y2(1)", "1:3: undeclared reference to 'y2' (in container '')"),
            ("i.y2()", "1:5: undeclared reference to 'y2' (in container '')"),
        ],
    );
}

#[test]
fn calls_without_a_matching_overload_are_errors() {
    check_table(
        &env(),
        &[
            ("i + s", "1:3: found no matching overload for '_+_' applied to '(int, string)'"),
            ("i + u", "1:3: found no matching overload for '_+_' applied to '(int, uint)'"),
            ("i == s", "1:3: found no matching overload for '_==_' applied to '(int, string)'"),
            ("-s", "1:1: found no matching overload for '-_' applied to '(string)'"),
            ("!i", "1:1: found no matching overload for '!_' applied to '(int)'"),
            (
                "i ? 1 : 2",
                "1:3: found no matching overload for '_?_:_' applied to '(int, int, int)'",
            ),
            (
                r#"b ? 1 : "a""#,
                "1:3: found no matching overload for '_?_:_' applied to '(bool, int, string)'",
            ),
            (
                "b ? 1 : null",
                "1:3: found no matching overload for '_?_:_' applied to '(bool, int, null)'",
            ),
            ("i && b", "1:1: expected type 'bool' but found 'int'"),
            ("b || s", "1:6: expected type 'bool' but found 'string'"),
            (
                "i && s",
                "1:1: expected type 'bool' but found 'int'; 1:6: expected type 'bool' but found 'string'",
            ),
            (
                "li && li",
                "1:1: expected type 'bool' but found 'list(int)'; 1:7: expected type 'bool' but found 'list(int)'",
            ),
            ("s[0]", "1:2: found no matching overload for '_[_]' applied to '(string, int)'"),
            (
                r#"li["a"]"#,
                "1:3: found no matching overload for '_[_]' applied to '(list(int), string)'",
            ),
            (
                r#"mis["a"]"#,
                "1:4: found no matching overload for '_[_]' applied to '(map(int, string), string)'",
            ),
            (
                "i in ls",
                "1:3: found no matching overload for '@in' applied to '(int, list(string))'",
            ),
            ("s in i", "1:3: found no matching overload for '@in' applied to '(string, int)'"),
            ("size(i)", "1:5: found no matching overload for 'size' applied to '(int)'"),
            ("i.size()", "1:7: found no matching overload for 'size' applied to 'int.()'"),
            (
                "s.startsWith(1)",
                "1:13: found no matching overload for 'startsWith' applied to 'string.(int)'",
            ),
            (
                "s.startsWith()",
                "1:13: found no matching overload for 'startsWith' applied to 'string.()'",
            ),
            (
                "startsWith(s, s)",
                "1:11: found no matching overload for 'startsWith' applied to '(string, string)'",
            ),
        ],
    );
}

#[test]
fn field_selection_on_other_types_is_an_error() {
    check_table(
        &env(),
        &[
            ("s.y", "1:2: type 'string' does not support field selection"),
            ("li.y", "1:3: type 'list(int)' does not support field selection"),
            ("has(i.y)", "1:4: type 'int' does not support field selection"),
            ("has(ts.y)", "1:4: type 'timestamp' does not support field selection"),
            ("(n).a", "1:4: type 'null' does not support field selection"),
            ("int.a", "1:4: type 'type(int)' does not support field selection"),
            ("o.a", "1:2: type 'int' does not support field selection"),
        ],
    );
}

#[test]
fn invalid_ranges_and_bodies_of_comprehensions_are_errors() {
    check_table(
        &env(),
        &[
            (
                "i.all(v, v)",
                "1:1: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
            ),
            (
                "s.exists(v, true)",
                "1:1: expression of type 'string' cannot be range of a comprehension (must be list, map, or dynamic)",
            ),
            (
                "ts.map(v, v)",
                "1:1: expression of type 'timestamp' cannot be range of a comprehension (must be list, map, or dynamic)",
            ),
            ("li.all(v, v)", "1:11: expected type 'bool' but found 'int'"),
            (
                r#"li.exists(v, v == "a")"#,
                "1:16: found no matching overload for '_==_' applied to '(int, string)'",
            ),
            (
                "li.filter(v, v)",
                "1:10: found no matching overload for '_?_:_' applied to '(int, list(int), list(int))'",
            ),
            ("li.map(v, w)", "1:11: undeclared reference to 'w' (in container '')"),
            ("li.exists_one(v, v.a == 1)", "1:19: type 'int' does not support field selection"),
            (
                "li.all(v, v > 0) + v",
                "1:18: found no matching overload for '_+_' applied to '(bool, !error!)'; 1:20: undeclared reference to 'v' (in container '')",
            ),
        ],
    );
}

#[test]
fn mixed_lists_and_maps_are_errors() {
    check_table(
        &env(),
        &[
            ("[n, ts]", "1:5: expected type 'null' but found 'timestamp'"),
            ("[o, n]", "1:5: expected type 'optional_type(int)' but found 'null'"),
            ("[int, string]", "1:7: expected type 'type(int)' but found 'type(string)'"),
            (r#"[1, "a"]"#, "1:5: expected type 'int' but found 'string'"),
            (r#"[1, 2, "a", "b"]"#, "1:8: expected type 'int' but found 'string'"),
            ("[1, 1u]", "1:5: expected type 'int' but found 'uint'"),
            ("[1, null]", "1:5: expected type 'int' but found 'null'"),
            (r#"[1, dyn("a")]"#, "1:8: expected type 'int' but found 'dyn'"),
            (r#"[[], [1], ["a"]]"#, "1:11: expected type 'list(int)' but found 'list(string)'"),
            (
                r#"{"a": 1, 2: "b"}"#,
                "1:10: expected type 'string' but found 'int'; 1:13: expected type 'int' but found 'string'",
            ),
            (r#"{"a": 1, "b": x}"#, "1:15: expected type 'int' but found 'dyn'"),
            ("{1: 1, 2: 1u}", "1:11: expected type 'int' but found 'uint'"),
            ("[?i]", "1:3: expected type 'optional_type(int)' but found 'int'"),
            (r#"{?"a": 1}"#, "1:8: expected type 'optional_type(int)' but found 'int'"),
            (r#"[?o, "a"]"#, "1:6: expected type 'int' but found 'string'"),
            (r#"{?"a": o, "b": "c"}"#, "1:16: expected type 'int' but found 'string'"),
        ],
    );
}

#[test]
fn invalid_uses_of_optionals_are_errors() {
    check_table(
        &env(),
        &[
            ("s.?a", "1:2: type 'string' does not support field selection"),
            ("o.?a", "1:2: type 'int' does not support field selection"),
            ("i.?a", "1:2: type 'int' does not support field selection"),
            ("li.?a", "1:3: type 'list(int)' does not support field selection"),
            (
                r#"li[?"a"]"#,
                "1:3: found no matching overload for '_[?_]' applied to '(list(int), string)'",
            ),
            ("y2.?a", "1:1: undeclared reference to 'y2' (in container '')"),
            (
                "optional.none() + 1",
                "1:17: found no matching overload for '_+_' applied to '(optional_type(dyn), int)'",
            ),
            (
                "optional.of(1, 2)",
                "1:12: found no matching overload for 'optional.of' applied to '(int, int)'",
            ),
            (
                r#"o.orValue("a")"#,
                "1:10: found no matching overload for 'orValue' applied to 'optional_type(int).(string)'",
            ),
            (
                "o.or(1)",
                "1:5: found no matching overload for 'or' applied to 'optional_type(int).(int)'",
            ),
            (
                r#"o.optMap(v, v + "a")"#,
                "1:15: found no matching overload for '_+_' applied to '(int, string)'",
            ),
            (
                "li.optMap(v, v)",
                "1:10: found no matching overload for 'hasValue' applied to 'list(int).()'; 1:10: found no matching overload for 'value' applied to 'list(int).()'",
            ),
            (
                r#"o.value() + "a""#,
                "1:11: found no matching overload for '_+_' applied to '(int, string)'",
            ),
        ],
    );
}

#[test]
fn invalid_uses_of_library_types_and_type_names_are_errors() {
    check_table(
        &env(),
        &[
            (
                r#"quantity("1") + 1"#,
                "1:15: found no matching overload for '_+_' applied to '(kubernetes.Quantity, int)'",
            ),
            (
                r#"quantity("1") < quantity("2")"#,
                "1:15: found no matching overload for '_<_' applied to '(kubernetes.Quantity, kubernetes.Quantity)'",
            ),
            (
                r#"quantity("1").value"#,
                "1:14: unexpected failed resolution of 'kubernetes.Quantity'",
            ),
            (r#"ip("1.2.3.4").family"#, "1:14: type 'net.IP' does not support field selection"),
            ("ip(1)", "1:3: found no matching overload for 'ip' applied to '(int)'"),
            (
                r#"url("a") == "a""#,
                "1:10: found no matching overload for '_==_' applied to '(kubernetes.URL, string)'",
            ),
            (
                r#"cidr("1.0.0.0/8").containsIP(1)"#,
                "1:29: found no matching overload for 'containsIP' applied to 'net.CIDR.(int)'",
            ),
            ("y2{}", "1:3: undeclared reference to 'y2' (in container '')"),
            ("y2{a: 1}", "1:3: undeclared reference to 'y2' (in container '')"),
            ("i{a: 1}", "1:2: 'int' is not a type; 1:4: unexpected failed resolution of 'i'"),
            ("int{}", "1:4: 'int' is not a message type"),
            (
                "net.IP{a: b2}",
                "1:7: 'net.IP' is not a message type; 1:9: unexpected failed resolution of 'net.IP'; 1:11: undeclared reference to 'b2' (in container '')",
            ),
            (
                "google.protobuf{}",
                "1:16: undeclared reference to 'google.protobuf' (in container '')",
            ),
            ("type(1, 2)", "1:5: found no matching overload for 'type' applied to '(int, int)'"),
            ("dyn()", "1:4: found no matching overload for 'dyn' applied to '()'"),
            (
                "timestamp + duration",
                "1:1: undeclared reference to 'timestamp' (in container ''); 1:13: undeclared reference to 'duration' (in container '')",
            ),
            ("ls.sum()", "1:7: found no matching overload for 'sum' applied to 'list(string).()'"),
            (
                "[{}].max()",
                "1:9: found no matching overload for 'max' applied to 'list(map(dyn, dyn)).()'",
            ),
            (
                "[[1]].isSorted()",
                "1:15: found no matching overload for 'isSorted' applied to 'list(list(int)).()'",
            ),
            (
                r#"li.indexOf("a")"#,
                "1:11: found no matching overload for 'indexOf' applied to 'list(int).(string)'",
            ),
            (
                r#""a".find(1)"#,
                "1:9: found no matching overload for 'find' applied to 'string.(int)'",
            ),
            (
                "cel.bind(v, 1, v)",
                "1:1: undeclared reference to 'cel' (in container ''); 1:9: undeclared reference to 'bind' (in container ''); 1:10: undeclared reference to 'v' (in container ''); 1:16: undeclared reference to 'v' (in container '')",
            ),
            (
                "math.greatest(1, 2)",
                "1:1: undeclared reference to 'math' (in container ''); 1:14: undeclared reference to 'greatest' (in container '')",
            ),
        ],
    );
}
