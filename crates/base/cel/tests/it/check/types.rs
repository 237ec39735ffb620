//! Types of expressions.

use super::{check_table, env};

#[test]
fn literals_have_the_types_of_their_elements() {
    check_table(
        &env(),
        &[
            ("null", "null"),
            ("true", "bool"),
            ("1", "int"),
            ("1u", "uint"),
            ("1.5", "double"),
            (r#""a""#, "string"),
            (r#"b"a""#, "bytes"),
            ("[]", "list(dyn)"),
            ("[[]]", "list(list(dyn))"),
            ("[1, 2]", "list(int)"),
            ("[x, x]", "list(dyn)"),
            ("{}", "map(dyn, dyn)"),
            (r#"{"a": 1}"#, "map(string, int)"),
            (r#"{1: {}, 2: {"a": [1]}}"#, "map(int, map(string, list(int)))"),
            ("[?o, 1]", "list(int)"),
            (r#"{?"a": o}"#, "map(string, int)"),
        ],
    );
}

#[test]
fn elements_and_fields_have_their_types() {
    check_table(
        &env(),
        &[
            ("li[0]", "int"),
            (r#"mss["a"]"#, "string"),
            ("mss.a", "string"),
            ("msl.a[0]", "string"),
            ("x.y.z", "dyn"),
            ("x[0]", "dyn"),
            ("ld[0].a", "dyn"),
            ("[] + [1]", "list(int)"),
            ("[] + []", "list(dyn)"),
            ("[] == [1]", "bool"),
            ("[[]] + [[1]]", "list(list(int))"),
            (r#"[{}, {"a": 1}]"#, "list(map(string, int))"),
            (r#"{} == {"a": 1}"#, "bool"),
        ],
    );
}

#[test]
fn operators_have_the_common_result_type_of_matching_overloads() {
    check_table(
        &env(),
        &[
            ("x + 1", "int"),
            ("x == 1", "bool"),
            ("x < 1", "bool"),
            ("1 < 1.5", "bool"),
            ("1u >= 2", "bool"),
            (r#"s < "a""#, "bool"),
            ("ts - ts", "duration"),
            ("ts - du", "timestamp"),
            ("du + ts", "timestamp"),
            ("b ? 1 : 2", "int"),
            ("b ? x : 2", "dyn"),
            ("b ? [] : [1]", "list(int)"),
            ("b ? null : ts", "null"),
            ("b ? n : o", "null"),
            ("!b && x", "bool"),
            ("i in li", "bool"),
            (r#""a" in mss"#, "bool"),
            ("x in x", "bool"),
            ("size(ls)", "int"),
            ("mss.size()", "int"),
        ],
    );
}

#[test]
fn types_are_values() {
    check_table(
        &env(),
        &[
            ("type(1)", "type(int)"),
            ("type(type(1))", "type(type(int))"),
            ("type(int)", "type(type(int))"),
            ("int", "type(int)"),
            ("list", "type(list(dyn))"),
            ("map", "type(map(dyn, dyn))"),
            ("optional_type", "type(optional_type)"),
            ("net.IP", "type(net.IP)"),
            ("google.protobuf.Duration", "type(duration)"),
            ("type(x) == int", "bool"),
            ("dyn(1)", "dyn"),
            ("dyn([1])[0]", "dyn"),
        ],
    );
}

#[test]
fn optionals_have_the_type_of_their_value() {
    check_table(
        &env(),
        &[
            ("has(mss.a)", "bool"),
            ("has(x.a.b)", "bool"),
            ("o.hasValue()", "bool"),
            ("o.value() + 1", "int"),
            ("o.orValue(2)", "int"),
            ("o.or(optional.none())", "optional_type(int)"),
            ("optional.none()", "optional_type(dyn)"),
            ("optional.none().orValue(1)", "int"),
            ("optional.of([])", "optional_type(list(dyn))"),
            ("optional.of([]).or(optional.of([1]))", "optional_type(list(int))"),
            ("mss.?a", "optional_type(string)"),
            (r#"mss[?"a"]"#, "optional_type(string)"),
            ("li[?0]", "optional_type(int)"),
            ("msl.?a[0]", "optional_type(string)"),
            (r#"msl.?a[?0].orValue("")"#, "string"),
            ("x.?a.?b", "optional_type(dyn)"),
            ("optional.of(mss).a", "optional_type(string)"),
            (r#"optional.of(mss)["a"]"#, "optional_type(string)"),
            ("optional.of(mss).?a", "optional_type(string)"),
        ],
    );
}

#[test]
fn comprehensions_have_the_type_of_their_result() {
    check_table(
        &env(),
        &[
            ("li.all(v, v > 0)", "bool"),
            ("li.exists(v, v == 1)", "bool"),
            ("li.exists_one(v, v == 1)", "bool"),
            ("mss.all(k, k == mss[k])", "bool"),
            ("li.map(v, [v])", "list(list(int))"),
            ("li.map(v, v > 1, string(v))", "list(string)"),
            ("li.filter(v, v > 1)", "list(int)"),
            ("mss.map(k, k)", "list(string)"),
            ("x.map(v, v)", "list(dyn)"),
            ("[].map(v, v)", "list(dyn)"),
            ("[].filter(v, v)", "list(bool)"),
            ("[[1]].map(v, v[0])", "list(int)"),
            ("li.map(v, ls.map(w, w + string(v)))", "list(list(string))"),
            ("li.map(i, i)", "list(int)"),
            ("o.optMap(v, v + 1)", "optional_type(int)"),
            ("o.optMap(v, string(v))", "optional_type(string)"),
            ("o.optFlatMap(v, optional.of(v))", "optional_type(int)"),
        ],
    );
}

#[test]
fn library_functions_have_their_declared_types() {
    check_table(
        &env(),
        &[
            (r#"ip("1.2.3.4")"#, "net.IP"),
            (r#"ip("1.2.3.4") == ip("::1")"#, "bool"),
            (r#"cidr("1.0.0.0/8").containsIP("1.2.3.4")"#, "bool"),
            (r#"quantity("1Gi").add(quantity("1"))"#, "kubernetes.Quantity"),
            (r#"url("https://a/").getQuery()"#, "map(string, list(string))"),
            (r#"url("https://a/").getQuery()["a"][0]"#, "string"),
            ("li.sum()", "int"),
            ("ls.max()", "string"),
            ("[du].min()", "duration"),
            ("li.indexOf(1)", "int"),
            (r#""abc".indexOf("b")"#, "int"),
            (r#""a,b".split(",")"#, "list(string)"),
            (r#""%s %d".format(["a", 1])"#, "string"),
            (r#""%s".format([[1, "a", {"b": 1.5}]])"#, "string"),
            (r#""1".matches("^[0-9]+$")"#, "bool"),
            ("ts.getFullYear()", "int"),
            (r#"ts.getHours("UTC")"#, "int"),
            (r#"timestamp("2020-01-01T00:00:00Z")"#, "timestamp"),
            ("duration(ts - ts)", "duration"),
        ],
    );
}
