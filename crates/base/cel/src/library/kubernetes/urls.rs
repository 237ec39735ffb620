//! URL library: `url("https://a:80/b?c=d").getHostname()`.

use crate::library::args::{compare_opaque, exactly, new_list, new_string, opaque, str, wrap};
use crate::library::{FunctionLibrary, Overload};
use crate::types::Type;
use crate::value::{Error, MapKey, MapValue, Opaque, StringValue, Value, ValueResult, WorkBudget};
use mainstay_formats::url::{Url, check_request_uri};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

/// `url`, `isURL`, and the methods of URLs.
pub static LIBRARY: FunctionLibrary =
    FunctionLibrary { name: "kubernetes.urls", overloads, macros: &[], types: Vec::new };

/// The name of the type.
const NAME: &str = "kubernetes.URL";

/// A URL as a value.
#[derive(Debug)]
struct UrlValue(Url);

impl Opaque for UrlValue {
    fn cel_type(&self) -> Type {
        Type::object(NAME)
    }

    fn equals(&self, other: &Value<'_>) -> Result<bool, Error> {
        compare_opaque(other, |other: &Self| self.0.to_string() == other.0.to_string())
    }

    fn go_inside(&self) -> Option<String> {
        Some(format!("(*url.URL){}", self.0))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn overloads() -> Vec<Overload> {
    use Type::{Bool, String};
    let url = || Type::object(NAME);
    let get = |function, id, run| Overload::method(function, id, vec![url()], String, run);
    let query = Type::map(String, Type::list(String));
    vec![
        Overload::function("url", "string_to_url", vec![String], url(), parse_url),
        get("getScheme", "url_get_scheme", |args, _| Ok(new_string(receiver(args)?.scheme()))),
        get("getHost", "url_get_host", |args, _| Ok(new_string(&*receiver(args)?.host()))),
        get("getHostname", "url_get_hostname", |args, _| {
            Ok(new_string(&*receiver(args)?.hostname()))
        }),
        get("getPort", "url_get_port", |args, _| Ok(new_string(receiver(args)?.port()))),
        get("getEscapedPath", "url_get_escaped_path", |args, _| {
            Ok(new_string(&*receiver(args)?.escaped_path()))
        }),
        Overload::method("getQuery", "url_get_query", vec![url()], query, get_query),
        Overload::function("isURL", "is_url_string", vec![String], Bool, |args, _| {
            Ok(Value::Bool(check_request_uri(str(&exactly::<1>(args)?[0])?).is_ok()))
        }),
    ]
}

fn receiver<'v>(args: &'v [Value<'_>]) -> Result<&'v Url, Error> {
    let [url] = exactly(args)?;
    opaque(url).map(|url: &UrlValue| &url.0)
}

/// Go's stricter rules for request URIs decide whether a URL is valid; its general rules parse it,
/// because those of requests have no fragments.
fn parse_url<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [text] = exactly(args)?;
    let text = str(text)?;
    check_request_uri(text).and_then(|()| Url::parse(text)).map_or_else(
        |why| {
            Err(Error::text(format!("URL parse error during conversion from string: {why}"), work))
        },
        |url| Ok(wrap(UrlValue(url))),
    )
}

fn get_query<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let mut parameters: BTreeMap<String, Vec<Value<'a>>> = BTreeMap::new();
    for (key, value) in receiver(args)?.query() {
        parameters.entry(key).or_default().push(new_string(value));
    }
    let entries = parameters
        .into_iter()
        .map(|(key, values)| (MapKey::String(StringValue::Shared(key.into())), new_list(values)))
        .collect();
    Ok(Value::Map(MapValue::Values(Arc::new(entries))))
}
