//! The query parameters of `metas`: which blobs are selected.

use std::borrow::Cow;

/// The fields that a blob must have; an empty one matches anything.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Query<'a> {
    schema: Cow<'a, str>,
    package: Cow<'a, str>,
    name: Cow<'a, str>,
}

impl<'a> Query<'a> {
    /// Parses the parameters; `None` if one is unknown. Of equal names the first one counts, and a
    /// pair with invalid escapes is ignored.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let [mut schema, mut package, mut name] = [None, None, None];
        // As in Go, a pair with a semicolon is ignored.
        for pair in text.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Some(key), Some(value)) = (unescape(key, true), unescape(value, true)) else {
                continue;
            };
            let place = match &*key {
                "schema" => &mut schema,
                "package" => &mut package,
                "name" => &mut name,
                _ => return None,
            };
            place.get_or_insert(value);
        }
        let [schema, package, name] = [schema, package, name].map(Option::unwrap_or_default);
        Some(Self { schema, package, name })
    }

    /// The wanted schema, package and name. A package document has a name and usually no package,
    /// so a query for a package selects the documents of the package, not the package document.
    pub(super) fn wanted(&self) -> [&str; 3] {
        [&self.schema, &self.package, &self.name]
    }
}

/// Decodes percent escapes; in queries a plus is a space. `None` if an escape is invalid or the
/// result is not UTF-8.
pub(super) fn unescape(text: &str, plus: bool) -> Option<Cow<'_, str>> {
    if !(text.contains('%') || plus && text.contains('+')) {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            b'+' if plus => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_query_parameters_are_refused() {
        let query = |schema: &'static str, package: &'static str, name: &'static str| {
            Some(Query { schema: schema.into(), package: package.into(), name: name.into() })
        };
        for (text, read) in [
            ("", query("", "", "")),
            ("&&", query("", "", "")),
            ("schema=olm.bundle", query("olm.bundle", "", "")),
            ("name=a&package=b&schema=c", query("c", "b", "a")),
            ("schema=a&&schema=b", query("a", "", "")),
            ("schema=&package=b", query("", "b", "")),
            ("schema", query("", "", "")),
            ("name=a%20b+c%2B", query("", "", "a b c+")),
            ("n%61me=x", query("", "", "x")),
            // Invalid pairs are ignored.
            ("name=%zz&package=p", query("", "p", "")),
            ("other=%4", query("", "", "")),
            ("other=a;b", query("", "", "")),
            ("other=x", None),
            ("Schema=x", None),
            ("schema=x&other", None),
            ("=x", None),
        ] {
            assert_eq!(Query::read(text), read, "{text}");
        }
    }
}
