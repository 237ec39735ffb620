//! Query parameters as Kubernetes reads them.

use mainstay_object::Status;

/// The parameters of a request, decoded, in order. Empty pairs (`?&limit=5`) are skipped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads the part after `?`.
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, Status> {
        let mut pairs = Vec::new();
        for pair in text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match (percent_decode(key, true), percent_decode(value, true)) {
                (Some(key), Some(value)) => pairs.push((key, value)),
                _ => {
                    return Err(Status::bad_request(format!("invalid URL escape in {pair:?}")));
                }
            }
        }
        Ok(Self(pairs))
    }

    /// The first value of a parameter, if it is given and not empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.first(name).filter(|value| !value.is_empty())
    }

    fn first(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All values of a parameter.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A boolean: absent, `0` and `false` are false, everything else is true, as in the original.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.tri(name).unwrap_or_default()
    }

    /// A boolean that may be absent.
    pub(crate) fn tri(&self, name: &str) -> Option<bool> {
        self.first(name).map(|value| !(value == "0" || value.eq_ignore_ascii_case("false")))
    }

    /// An integer.
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, Status> {
        self.text(name)
            .map(|value| {
                value.parse().map_err(|_| {
                    Status::bad_request(format!(
                        "strconv.ParseInt: parsing {value:?}: invalid syntax"
                    ))
                })
            })
            .transpose()
    }
}

/// Decodes `%xx`, and `+` as a blank in queries; none if an escape or the UTF-8 is broken.
pub(crate) fn percent_decode(text: &str, plus_is_blank: bool) -> Option<String> {
    if !text.bytes().any(|b| b == b'%' || b == b'+') {
        return Some(text.to_owned());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let high = char::from(bytes.next()?).to_digit(16)?;
                let low = char::from(bytes.next()?).to_digit(16)?;
                out.push(u8::try_from(high * 16 + low).ok()?);
            }
            b'+' if plus_is_blank => out.push(b' '),
            other => out.push(other),
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_pairs_are_skipped_and_escapes_decoded() {
        let query = Query::parse(Some("&limit=5&&labelSelector=a%3Db+c&watch&pretty=0")).unwrap();
        assert_eq!(query.integer("limit").unwrap(), Some(5));
        assert_eq!(query.text("labelSelector"), Some("a=b c"));
        assert!(query.flag("watch"));
        assert!(!query.flag("pretty"));
        assert_eq!(query.tri("other"), None);
        assert!(Query::parse(Some("a=%z")).is_err());
        assert!(Query::parse(Some("limit=x")).unwrap().integer("limit").is_err());
    }
}
