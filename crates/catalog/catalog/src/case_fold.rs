//! Case folding of field names as in Go's JSON decoder: the exact name first, then any case.

use mainstay_gocompat::json::is_same_field as same;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Map, Value};
use std::{borrow::Cow, fmt};

/// The value of `field` in an object: the exact name, or else one that differs only in case.
pub(crate) fn get<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    get_in(object.as_object()?, field)
}

/// As [`get`], on the fields of an object.
pub(crate) fn get_in<'a>(fields: &'a Map<String, Value>, field: &str) -> Option<&'a Value> {
    fields
        .get(field)
        .or_else(|| fields.iter().find(|(name, _)| same(name, field)).map(|(_, value)| value))
}

/// The texts of an object's fields, in the order of `names`; empty where a field is unset. Of
/// several fields with equal names, the last one counts.
pub(crate) fn texts<'de, D: Deserializer<'de>, const N: usize>(
    from: D,
    names: [&'static str; N],
) -> Result<[String; N], D::Error> {
    struct Fields<const N: usize>([&'static str; N]);

    #[derive(Deserialize)]
    struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

    impl<'de, const N: usize> Visitor<'de> for Fields<N> {
        type Value = [String; N];

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok([const { String::new() }; N])
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut texts = [const { String::new() }; N];
            while let Some(Name(name)) = map.next_key()? {
                match self.0.iter().position(|field| same(&name, field)) {
                    Some(at) => {
                        if let Some(text) = map.next_value::<Option<String>>()? {
                            texts[at] = text;
                        }
                    }
                    None => {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
            }
            Ok(texts)
        }
    }
    from.deserialize_any(Fields(names))
}
