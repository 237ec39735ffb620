//! Values without expressions: size, order, texts, access.

use mainstay_cel::kubernetes::{ListShape, ShapeProperty, ValueShape};
use mainstay_cel::value::{
    BytesValue, Error, ListValue, MapKey, MapValue, ObjectValue, StringValue, Timestamp, Value,
    ValueResult, WorkBudget, go_decimal, go_double, time,
};
use serde_json::{Value as Json, json};
use std::cmp::Ordering;
use std::collections::BTreeMap;

#[test]
fn value_is_at_most_half_a_cache_line() {
    assert!(size_of::<Value<'_>>() <= 32, "{}", size_of::<Value<'_>>());
    assert!(size_of::<ValueResult<'_>>() <= 32, "{}", size_of::<ValueResult<'_>>());
}

#[test]
fn numerically_equal_keys_are_the_same_key() {
    let text = |text: &'static str| MapKey::String(StringValue::Borrowed(text));
    let ascending = [
        MapKey::Bool(false),
        MapKey::Bool(true),
        MapKey::Int(i64::MIN),
        MapKey::Int(-1),
        MapKey::Uint(0),
        MapKey::Int(i64::MAX),
        MapKey::Uint(1 << 63),
        MapKey::Uint(u64::MAX),
        text(""),
        text("a"),
        text("é"),
    ];
    assert!(ascending.is_sorted());
    assert_eq!(MapKey::Int(5), MapKey::Uint(5));
    assert_ne!(MapKey::Int(-1), MapKey::Uint(u64::MAX));
    assert_eq!(
        MapKey::String(StringValue::Borrowed("a")),
        MapKey::String(StringValue::Shared("a".into()))
    );

    let entries = BTreeMap::from([
        (MapKey::Int(1), Value::text("int")),
        (MapKey::Uint(2), Value::text("uint")),
        (MapKey::Bool(true), Value::text("bool")),
        (text("s"), Value::text("string")),
    ]);
    let map = MapValue::of(entries);
    for (key, found) in [
        (Value::Int(1), Some("int")),
        (Value::Uint(1), Some("int")),
        (Value::Double(1.0), Some("int")),
        (Value::Double(2.0), Some("uint")),
        (Value::Double(1.5), None),
        (Value::Double(f64::NAN), None),
        (Value::Int(2), Some("uint")),
        (Value::Bool(true), Some("bool")),
        (Value::text("s"), Some("string")),
        (Value::text("true"), None),
        (Value::Null, None),
    ] {
        let value = map.get(&key, &WorkBudget::unlimited()).unwrap().map(|value| value.to_string());
        assert_eq!(value.as_deref(), found, "{key}");
        assert_eq!(map.contains(&key, &WorkBudget::unlimited()), Ok(found.is_some()), "{key}");
    }
    assert_eq!(map.get_str("s", &WorkBudget::unlimited()).unwrap().unwrap().to_string(), "string");
}

#[test]
fn doubles_have_the_text_of_go() {
    for (double, general, decimal) in [
        (0.0, "0", "0"),
        (-0.0, "-0", "-0"),
        (1.0, "1", "1"),
        (-1.5, "-1.5", "-1.5"),
        (100_000.0, "100000", "100000"),
        (999_999.5, "999999.5", "999999.5"),
        (1e6, "1e+06", "1000000"),
        (1_234_567.0, "1.234567e+06", "1234567"),
        (0.0001, "0.0001", "0.0001"),
        (0.000_012_5, "1.25e-05", "0.0000125"),
        (1e21, "1e+21", "1000000000000000000000"),
        (5e-324, "5e-324", &format!("0.{}5", "0".repeat(323))),
        (f64::MAX, "1.7976931348623157e+308", &format!("17976931348623157{}", "0".repeat(292))),
        // Two texts of 17 digits are equally close, so the even one is used.
        (-5_859_173_382_619_277.0 / 4.0, "-1.4647933456548192e+15", "-1464793345654819.2"),
        (3_790_182_832_600_317.0 / 4.0, "9.475457081500792e+14", "947545708150079.2"),
    ] {
        assert_eq!(go_double(double), general);
        assert_eq!(go_decimal(double), decimal);
    }
    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(go_double);
    assert_eq!(special, ["NaN", "+Inf", "-Inf"]);
}

#[test]
fn durations_have_the_text_of_go() {
    for (nanoseconds, go, seconds) in [
        (0, "0s", "0s"),
        (1, "1ns", "0.000000001s"),
        (-1_500, "-1.5µs", "-0.0000015s"),
        (1_234_567, "1.234567ms", "0.001234567s"),
        (1_000_000_000, "1s", "1s"),
        (5_400_500_000_000, "1h30m0.5s", "5400.5s"),
        (i64::MAX, "2562047h47m16.854775807s", "9223372036.854776s"),
        (i64::MIN, "-2562047h47m16.854775808s", "-9223372036.854776s"),
    ] {
        assert_eq!(time::go_duration(nanoseconds), go);
        assert_eq!(time::format_seconds(nanoseconds), seconds);
        assert_eq!(time::parse_duration(go), Some(nanoseconds), "{go}");
    }
    let twice = "9223372036854775808ns9223372036854775808ns1h";
    assert_eq!(time::parse_duration(twice), Some(3_600_000_000_000));
    for text in ["", "1", "-", "s", ".s", "1d", "1 s", "9223372036854775808ns", "3000000h"] {
        assert_eq!(time::parse_duration(text), None, "{text}");
    }
}

#[test]
fn timestamps_keep_their_zone_but_compare_without_it() {
    for (text, seconds, formatted) in [
        ("1970-01-01T00:00:00Z", Some(0), "1970-01-01T00:00:00Z"),
        ("2009-02-13T23:31:30+02:00", Some(1_234_560_690), "2009-02-13T23:31:30+02:00"),
        ("2024-02-29T1:02:03,5-07:30", Some(1_709_195_523), "2024-02-29T01:02:03.5-07:30"),
        ("0001-01-01T00:00:00Z", Some(-62_135_596_800), "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59.999999999Z", Some(253_402_300_799), "9999-12-31T23:59:59.999999999Z"),
        ("2023-02-29T00:00:00Z", None, ""),
        ("2024-01-01T24:00:00Z", None, ""),
        ("2024-01-01T00:00:00", None, ""),
        ("2024-01-01t00:00:00z", None, ""),
        ("2024-01-01T00:00:00+0100", None, ""),
        ("２024-01-01T00:00:00Z", None, ""),
    ] {
        let time = Timestamp::parse(text);
        assert_eq!(time.map(|time| time.seconds), seconds, "{text}");
        assert_eq!(time.map(|time| time.to_string()).unwrap_or_default(), formatted);
    }
    let berlin = Timestamp::parse("2024-01-01T01:00:00+01:00").unwrap();
    let utc = Timestamp::parse("2024-01-01T00:00:00Z").unwrap();
    assert_eq!(berlin, utc);
    assert!(utc.checked_add(1).unwrap() > berlin);
    assert_eq!(berlin.checked_add(-1).unwrap().to_string(), "2024-01-01T00:59:59.999999999+01:00");
    assert_eq!(
        utc.checked_add(i64::MAX).map(|time| time.seconds),
        Some(1_704_067_200 + 9_223_372_036)
    );
    let last = Timestamp::parse("9999-12-31T23:59:59.999999999Z").unwrap();
    assert_eq!(last.checked_add(1), None);
    assert_eq!(last.since(utc), None);
    assert_eq!(utc.since(utc.checked_add(-7).unwrap()), Some(7));
}

/// Formats every day of the calendar.
#[test]
fn every_day_has_its_date() {
    let mut time = Timestamp::parse("1896-01-01T12:00:00Z").unwrap();
    let mut before = String::new();
    for _ in 0..100_000 {
        let text = time.to_string();
        assert!(text > before, "{before} {text}");
        assert_eq!(Timestamp::parse(&text), Some(time));
        before = text;
        time = time.checked_add(86_400_000_000_000).unwrap();
    }
}

#[test]
fn values_have_the_text_of_go_in_messages() {
    let map =
        BTreeMap::from([(MapKey::Int(1), Value::text("a")), (MapKey::Bool(true), Value::Null)]);
    for (value, text) in [
        (Value::Null, "0"),
        (Value::Uint(7), "7"),
        (Value::Double(1e6), "1e+06"),
        (Value::text("a\"b"), "a\"b"),
        (Value::Bytes(BytesValue::Borrowed(b"ab")), "[97 98]"),
        (Value::Duration(90_000_000_000), "1m30s"),
        (Value::list(vec![Value::Int(1), Value::text("x")]), "[1, x]"),
        (Value::Map(MapValue::of(map)), "{true: 0, 1: a}"),
        (Value::some(Value::Int(1)), "optional(1)"),
        (Value::Optional(None), "optional.none()"),
        (Value::Int(1).type_value(), "int"),
        (Value::Null.type_value(), "null_type"),
        (Value::list(Vec::new()).type_value(), "list(dyn)"),
    ] {
        assert_eq!(value.to_string(), text);
    }
}

#[test]
fn data_that_does_not_match_the_schema_is_an_error_on_access() {
    let text = |format| ValueShape::string(format, None, None);
    let list = ValueShape::list(ValueShape::integer(), ListShape::Atomic, None);
    for (shape, json, expected) in [
        (text(""), json!(1), "invalid data, expected string, got int64"),
        (text(""), json!({}), "invalid data, expected string, got map[string]interface {}"),
        (text("date"), json!([]), "invalid data, expected string, got []interface {}"),
        (text(""), json!(null), "invalid data, got null for schema with nullable=false"),
        (ValueShape::integer(), json!(1.5), "invalid data, expected int, got float64"),
        (ValueShape::integer(), json!(u64::MAX), "invalid data, expected int, got float64"),
        (ValueShape::number(), json!("1"), "invalid data, expected float, got string"),
        (ValueShape::boolean(), json!(0), "invalid data, expected bool, got int64"),
        (
            list,
            json!({}),
            "invalid data, expected an array for the provided schema with type=array",
        ),
        (
            ValueShape::map(ValueShape::integer(), None),
            json!([]),
            "invalid data, expected a map for the provided schema with type=object",
        ),
        (
            ValueShape::int_or_string(None),
            json!(1.5),
            "invalid data, expected XIntOrString value to be either a string or integer",
        ),
        (text("duration"), json!("x"), "Invalid duration x: unable to parse x as duration"),
        (
            text("duration"),
            json!("99999999999999999999 days"),
            "Invalid duration 99999999999999999999 days: strconv.Atoi: parsing \
             \"99999999999999999999\": value out of range",
        ),
        (
            text("byte"),
            json!("a+b="),
            "Invalid byte formatted string a+b=: illegal base64 data at input byte 1",
        ),
    ] {
        let error = shape.view(&json, &WorkBudget::unlimited()).map(|value| value.to_string());
        assert_eq!(error, Err(Error::text(expected, &WorkBudget::unlimited())), "{json}");
    }
}

#[test]
fn invalid_timestamps_have_the_errors_of_go() {
    let whole = "2006-01-02T15:04:05";
    for (format, text, why) in [
        ("date", "2021-02-29", "day out of range".to_owned()),
        ("date", "2021-13-29", "month out of range".to_owned()),
        ("date", "2021-01-011", "extra text: \"1\"".to_owned()),
        ("date", "2020-0-10", "as \"2006-01-02\": cannot parse \"0-10\" as \"01\"".to_owned()),
        (
            "date-time",
            "2020-01-01t00:00:00z",
            format!("as \"{whole}\": cannot parse \"t00:00:00z\" as \"T\""),
        ),
        ("date-time", "2020-01-01T24:00:00Z", "hour out of range".to_owned()),
        ("date-time", "2020-01-01T00:00:00.5é", "extra text: \"\\xc3\\xa9\"".to_owned()),
    ] {
        let shape = ValueShape::string(format, None, None);
        let json = json!(text);
        let quoted = text.replace('é', "\\xc3\\xa9");
        let colon = if why.starts_with("as ") { "" } else { ":" };
        let expected = format!(
            "Invalid {format} formatted string {text}: parsing time \"{quoted}\"{colon} {why}"
        );
        assert_eq!(shape.view(&json, &WorkBudget::unlimited()).unwrap_err().to_string(), expected);
    }
}

#[test]
fn formats_are_parsed_as_in_kubernetes() {
    for (format, text, expected) in [
        ("duration", "1h30m", "1h30m0s"),
        ("duration", "3 days", "72h0m0s"),
        ("duration", "1 week 2hrs", "168h0m0s"),
        ("duration", "5 milliseconds, 7µs", "5.007ms"),
        ("date", "2024-02-29", "2024-02-29 00:00:00 +0000 UTC"),
        ("date-time", "2024-02-29T01:02:03", "2024-02-29 01:02:03 +0000 UTC"),
        ("date-time", "2024-02-29T01:02:03.5+01:00", "2024-02-29 01:02:03.5 +0100 +0100"),
        ("date-time", "", "1970-01-01 00:00:00 +0000 UTC"),
        ("byte", "YW\nI=", "[97 98]"),
        ("byte", "YR==", "[97]"),
        ("byte", "-_8=", "[251 255]"),
        ("uuid", "1h", "1h"),
    ] {
        let shape = ValueShape::string(format, None, None);
        let json = json!(text);
        assert_eq!(
            shape.view(&json, &WorkBudget::unlimited()).unwrap().to_string(),
            expected,
            "{format} {text}"
        );
    }
}

/// Strings and containers borrow from the object.
#[test]
fn values_borrow_from_objects() {
    let json = json!({"list": ["a", "b"], "text": "c"});
    let strings = ValueShape::list(ValueShape::string("", None, None), ListShape::Set, None);
    let property = |name: &str, shape| ShapeProperty {
        name: name.into(),
        shape,
        required: false,
        defaulted: false,
    };
    let shape = ValueShape::object([
        property("list", strings),
        property("text", ValueShape::string("", None, None)),
    ]);
    for value in [shape.view(&json, &WorkBudget::unlimited()).unwrap(), Value::from_json(&json)] {
        let Value::String(StringValue::Borrowed(text)) =
            value.field("text", &WorkBudget::unlimited()).unwrap()
        else {
            panic!()
        };
        assert!(std::ptr::eq(text, json["text"].as_str().unwrap()));
        let Value::List(list) = value.field("list", &WorkBudget::unlimited()).unwrap() else {
            panic!()
        };
        assert!(matches!(list, ListValue::Json { .. }));
        let Some(Ok(Value::String(StringValue::Borrowed(text)))) =
            list.get(1, &WorkBudget::unlimited())
        else {
            panic!()
        };
        assert!(std::ptr::eq(text, json["list"][1].as_str().unwrap()));
        assert_eq!(list.contains(&Value::text("b"), &WorkBudget::unlimited()), Ok(true));
        assert_eq!(value.to_json().as_ref(), Ok(&json));
    }
}

#[test]
fn fields_have_escaped_names() {
    let json = json!({"namespace": "a", "x-y": "b", "none": null, "other": 1});
    let property = |name: &str| ShapeProperty {
        name: name.into(),
        shape: ValueShape::string("", None, None).nullable(true),
        required: false,
        defaulted: false,
    };
    let shape = ValueShape::object(["namespace", "x-y", "none"].map(property));
    let Value::Object(object) = shape.view(&json, &WorkBudget::unlimited()).unwrap() else {
        panic!()
    };
    for (name, found) in [
        ("__namespace__", Some("a")),
        ("namespace", Some("a")),
        ("x__dash__y", Some("b")),
        ("x-y", Some("b")),
        ("none", None),
        ("other", None),
        ("__what__", None),
    ] {
        let value =
            object.get(name, &WorkBudget::unlimited()).unwrap().map(|value| value.to_string());
        assert_eq!(value.as_deref(), found, "{name}");
    }
    let names: Vec<String> =
        object.iter(&WorkBudget::unlimited()).map(|(name, _)| name.to_string()).collect();
    assert_eq!(names, ["__namespace__", "none", "x__dash__y"]);
    assert_eq!(object.len(), 4);
    let error = Value::Object(object)
        .field("none", &WorkBudget::unlimited())
        .map(|value| value.to_string());
    assert_eq!(error, Err(Error::text("no such key: none", &WorkBudget::unlimited())));
}

#[test]
fn created_objects_compare_by_field() {
    let new_object = |name: &str, value: i64| {
        Value::Object(ObjectValue::Values {
            name: name.into(),
            fields: BTreeMap::from([("a".into(), Value::Int(value))]).into(),
        })
    };
    assert_eq!(
        new_object("Object", 1).equals(&new_object("Object", 1), &WorkBudget::unlimited()),
        Ok(true)
    );
    assert_eq!(
        new_object("Object", 1).equals(&new_object("Object", 2), &WorkBudget::unlimited()),
        Ok(false)
    );
    assert_eq!(
        new_object("Object", 1).equals(&new_object("Object.spec", 1), &WorkBudget::unlimited()),
        Ok(false)
    );
    assert_eq!(new_object("Object", 1).equals(&Value::Int(1), &WorkBudget::unlimited()), Ok(false));
    assert_eq!(new_object("Object", 1).to_json(), Ok(json!({"a": 1})));
}

#[test]
fn values_without_a_json_form_are_errors() {
    for (value, expected) in [
        (Value::Int(1).type_value(), "type conversion not supported for 'type'"),
        (Value::Optional(None), "optional.none() dereference"),
        (Value::Double(f64::NAN), "json: unsupported value: NaN"),
    ] {
        assert_eq!(value.to_json(), Err(Error::text(expected, &WorkBudget::unlimited())));
    }
    for (value, expected) in [
        (Value::some(Value::Int(1)), json!(1)),
        (Value::Bytes(BytesValue::Borrowed(b"a?")), json!("YT8=")),
        (Value::Duration(1_500_000_000), json!("1.5s")),
        (Value::Uint(u64::MAX), json!(u64::MAX)),
    ] {
        assert_eq!(value.to_json(), Ok::<Json, Error>(expected));
    }
}

/// Values of CEL without objects. With objects the order of the operands matters.
#[test]
fn equality_and_order_are_symmetric() {
    let json = json!([1, 1.0, "a", null, true, [1, "a"], {"a": 1}, {"a": [1.5]}, -1, 1e300]);
    let mut values: Vec<Value<'_>> =
        json.as_array().unwrap().iter().map(Value::from_json).collect();
    values.extend([
        Value::Uint(1),
        Value::Uint(u64::MAX),
        Value::Int(i64::MIN),
        Value::Double(f64::NAN),
        Value::Double(-0.0),
        Value::Int(0),
        Value::Double(2f64.powi(53)),
        Value::Int(9_007_199_254_740_993),
        Value::Bytes(BytesValue::Borrowed(b"a")),
        Value::Duration(1),
        Value::Timestamp(Timestamp::new(0, 1).unwrap()),
        Value::list(vec![Value::Double(1.0), Value::text("a")]),
        Value::Map(MapValue::of(BTreeMap::from([(MapKey::String("a".into()), Value::Uint(1))]))),
        Value::some(Value::Int(1)),
        Value::Optional(None),
        Value::Int(1).type_value(),
    ]);
    for one in &values {
        for other in &values {
            assert_eq!(
                one.equals(other, &WorkBudget::unlimited()),
                other.equals(one, &WorkBudget::unlimited()),
                "{one} {other}"
            );
            let order = one.compare(other).ok();
            assert_eq!(order, other.compare(one).ok().map(Ordering::reverse), "{one} {other}");
            if let Some(order) = order {
                assert_eq!(
                    one.equals(other, &WorkBudget::unlimited()),
                    Ok(order.is_eq()),
                    "{one} {other}"
                );
            }
        }
        let is_nan = matches!(one, Value::Double(double) if double.is_nan());
        assert_eq!(one.equals(one, &WorkBudget::unlimited()), Ok(!is_nan), "{one}");
    }
}
