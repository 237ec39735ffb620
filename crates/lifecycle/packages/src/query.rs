//! Query parameters of a request.

use mainstay_object::Status;

/// The parameters, in order.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, Status> {
        let mut pairs = Vec::new();
        for pair in text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Some(key), Some(value)) = (percent_decode(key), percent_decode(value)) else {
                return Err(Status::bad_request(format!("invalid URL escape in {pair:?}")));
            };
            pairs.push((key, value));
        }
        Ok(Self(pairs))
    }

    /// The first value of a parameter; empty if it is missing.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// Whether a parameter is present and neither `0` nor `false`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        let pair = self.0.iter().find(|(key, _)| key == name);
        pair.is_some_and(|(_, value)| !matches!(value.as_str(), "0" | "false"))
    }
}

/// Decodes `%xx` and `+`; none if an escape is invalid.
fn percent_decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                u8::try_from(high * 16 + low).ok()?
            }
            b'+' => b' ',
            other => other,
        });
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_parameters_are_decoded_and_invalid_escapes_are_bad_requests() {
        let query =
            Query::parse(Some("&labelSelector=catalog%3Dcat%2Ca+b&watch=&x=false")).unwrap();
        assert_eq!(query.text("labelSelector"), "catalog=cat,a b");
        assert_eq!((query.flag("watch"), query.flag("x"), query.flag("y")), (true, false, false));
        for invalid in ["a=%2", "a=%zz", "a=%ff"] {
            assert_eq!(Query::parse(Some(invalid)).unwrap_err().code, 400, "{invalid}");
        }
    }
}
