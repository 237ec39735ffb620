//! Format library: `format.dns1123Label().validate(self.name)`.

use crate::library::args::{compare_opaque, exactly, new_list, new_string, str, wrap};
use crate::library::{FunctionLibrary, Overload, StrictFunction};
use crate::types::Type;
use crate::value::{Error, Opaque, Value, ValueResult, WorkBudget};
use mainstay_formats::url::check_request_uri;
use mainstay_formats::{StringFormat, names};
use std::any::Any;
use std::sync::Arc;

/// `format.named`, a function for each format, and `validate`.
pub static LIBRARY: FunctionLibrary =
    FunctionLibrary { name: "kubernetes.format", overloads, macros: &[], types: Vec::new };

/// The name of the type.
const NAME: &str = "kubernetes.NamedFormat";

/// A format.
struct NamedFormat {
    /// Its name, and the name of its function.
    name: &'static str,
    function: &'static str,
    /// The name by which formats are compared: that of upstream's value.
    comparison_name: &'static str,
    constructor: StrictFunction,
    /// The errors of a text.
    check: fn(&str) -> Vec<String>,
    /// The length of its regular expression for costs.
    pattern_size: u64,
}

/// The lengths of upstream's patterns for these formats.
const UUID: usize = r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$".len();
const DATE_TIME: usize =
    r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$".len();

macro_rules! formats {
    ($($at:literal $name:literal $comparison_name:literal $size:expr => $check:expr;)*) => {
        &[$(NamedFormat {
            name: $name,
            function: concat!("format.", $name),
            comparison_name: $comparison_name,
            constructor: |args, _| {
                exactly::<0>(args)?;
                Ok(wrap(FormatValue(&FORMATS[$at])))
            },
            check: $check,
            pattern_size: $size,
        }),*]
    };
}

static FORMATS: &[NamedFormat] = formats! {
    0 "dns1123Label" "DNS1123Label" 30 => names::dns1123_label;
    1 "dns1123Subdomain" "DNS1123Subdomain" 60 => names::dns1123_subdomain;
    2 "dns1035Label" "DNS1035Label" 30 => names::dns1035_label;
    3 "qualifiedName" "QualifiedName" 60 => names::qualified_name;
    4 "dns1123LabelPrefix" "DNS1123LabelPrefix" 30 => |text| names::dns1123_label(&complete_prefix(text));
    5 "dns1123SubdomainPrefix" "DNS1123SubdomainPrefix" 60 => |text| {
        names::dns1123_subdomain(&complete_prefix(text))
    };
    6 "dns1035LabelPrefix" "DNS1035LabelPrefix" 30 => |text| names::dns1035_label(&complete_prefix(text));
    7 "labelValue" "LabelValue" 40 => names::label_value;
    8 "uri" "URI" 1103 => |text| {
        check_request_uri(text).err().map(|error| error.to_string()).into_iter().collect()
    };
    9 "uuid" "uuid" UUID as u64 => |text| check_schema_format("uuid", text, "does not match the UUID format");
    10 "byte" "byte" 84 => |text| check_schema_format("byte", text, "invalid base64");
    11 "date" "date" DATE_TIME as u64 => |text| check_schema_format("date", text, "invalid date");
    12 "datetime" "datetime" DATE_TIME as u64 => |text| {
        check_schema_format("datetime", text, "invalid datetime")
    };
};

/// A prefix of a name may end with a dash.
fn complete_prefix(text: &str) -> String {
    match text.strip_suffix('-').and_then(|text| text.get(..text.len().checked_sub(1)?)) {
        Some(before) => format!("{before}a"),
        None => text.to_owned(),
    }
}

/// Formats of schemas have a fixed error.
fn check_schema_format(format: &str, text: &str, message: &str) -> Vec<String> {
    let matches = StringFormat::parse(format).is_some_and(|format| format.matches(text));
    if matches { Vec::new() } else { vec![message.to_owned()] }
}

/// A format as a value.
struct FormatValue(&'static NamedFormat);

impl std::fmt::Debug for FormatValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.function)
    }
}

impl Opaque for FormatValue {
    fn cel_type(&self) -> Type {
        Type::object(NAME)
    }

    fn equals(&self, other: &Value<'_>) -> Result<bool, Error> {
        compare_opaque(other, |other: &Self| self.0.comparison_name == other.0.comparison_name)
    }

    fn pattern_size(&self) -> Option<u64> {
        Some(self.0.pattern_size)
    }

    fn go_type(&self) -> Option<&'static str> {
        Some("cel.Format")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn overloads() -> Vec<Overload> {
    let format = || Type::object(NAME);
    let mut all = vec![
        Overload::method(
            "validate",
            "format-validate",
            vec![format(), Type::String],
            Type::optional(Type::list(Type::String)),
            validate,
        ),
        Overload::function(
            "format.named",
            "format-named",
            vec![Type::String],
            Type::optional(format()),
            by_name,
        ),
    ];
    all.extend(FORMATS.iter().map(|named| {
        Overload::function(named.function, named.function, Vec::new(), format(), named.constructor)
    }));
    all
}

fn by_name<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [name] = exactly(args)?;
    let name = str(name)?;
    let found = FORMATS.iter().find(|format| format.name == name);
    Ok(Value::Optional(found.map(|format| Arc::new(wrap(FormatValue(format))))))
}

fn validate<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [format, text] = exactly(args)?;
    let format: &FormatValue = crate::library::args::opaque(format)?;
    let messages = (format.0.check)(str(text)?);
    if messages.is_empty() {
        return Ok(Value::Optional(None));
    }
    let messages = new_list(messages.into_iter().map(new_string).collect());
    Ok(Value::Optional(Some(Arc::new(messages))))
}
