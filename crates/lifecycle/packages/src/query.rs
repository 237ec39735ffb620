//! The part of a request behind the question mark.

use mainstay_object::Status;

/// Parameters, in the order in which they stand.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, Status> {
        let mut pairs = Vec::new();
        for pair in text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Some(key), Some(value)) = (decoded(key), decoded(value)) else {
                return Err(Status::bad_request(format!("invalid URL escape in {pair:?}")));
            };
            pairs.push((key, value));
        }
        Ok(Self(pairs))
    }

    /// The first value of a parameter; empty if it is not given.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// Whether a parameter is given and says yes.
    pub(crate) fn flag(&self, name: &str) -> bool {
        let given = self.0.iter().find(|(key, _)| key == name);
        given.is_some_and(|(_, value)| !matches!(value.as_str(), "0" | "false"))
    }
}

/// The text that `%xx`, and `+` for a blank, stand for; none if that is broken.
fn decoded(text: &str) -> Option<String> {
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
    fn parameters_are_unescaped_and_broken_escapes_refused() {
        let query =
            Query::parse(Some("&labelSelector=catalog%3Dcat%2Ca+b&watch=&x=false")).unwrap();
        assert_eq!(query.text("labelSelector"), "catalog=cat,a b");
        assert_eq!((query.flag("watch"), query.flag("x"), query.flag("y")), (true, false, false));
        for broken in ["a=%2", "a=%zz", "a=%ff"] {
            assert_eq!(Query::parse(Some(broken)).unwrap_err().code, 400, "{broken}");
        }
    }
}
