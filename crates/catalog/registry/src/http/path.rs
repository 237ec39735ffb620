//! Paths: the resource that a path names, and the redirection of paths that are not clean.

use std::fmt::Write as _;

/// The resource below a catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resource {
    All,
    Metas,
}

/// Splits a path into the catalog (still escaped) and the resource.
pub(super) fn route(path: &str) -> Option<(&str, Resource)> {
    let (name, rest) = path.strip_prefix("/catalogs/")?.split_once('/')?;
    let resource = match rest {
        "api/v1/all" => Resource::All,
        "api/v1/metas" => Resource::Metas,
        _ => return None,
    };
    (!name.is_empty()).then_some((name, resource))
}

/// The path without empty parts, `.` and `..`, if it has any; `None` for a clean path. As in Go, the
/// slash at the end stays.
pub(super) fn cleaned(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let mut clean = format!("/{}", parts.join("/"));
    if path.ends_with('/') && clean.len() > 1 {
        clean.push('/');
    }
    (clean != path).then_some(clean)
}

/// A text in an attribute of HTML, as Go escapes it.
pub(super) fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // Writing to a text cannot fail.
            '"' | '\'' => drop(write!(out, "&#{};", u32::from(sign))),
            sign => out.push(sign),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_catalog_and_a_resource() {
        for (path, wanted) in [
            ("/catalogs/a/api/v1/all", Some(("a", Resource::All))),
            ("/catalogs/a%2fb/api/v1/metas", Some(("a%2fb", Resource::Metas))),
            ("/catalogs/a/api/v1/all/", None),
            ("/catalogs/a/b/api/v1/all", None),
            ("/catalogs//api/v1/all", None),
            ("/catalogs/a/api/v1/graphql", None),
            ("/catalogs", None),
            ("*", None),
        ] {
            assert_eq!(route(path), wanted, "{path}");
        }
    }

    #[test]
    fn a_path_is_cleaned_and_keeps_its_last_slash() {
        for (path, clean) in [
            ("/", None),
            ("/a/b/", None),
            ("/a/..b", None),
            ("//", Some("/")),
            ("/a//b", Some("/a/b")),
            ("/a/./b/.", Some("/a/b")),
            ("/a/../../b/", Some("/b/")),
            ("/a/%2e%2e/b", None),
        ] {
            assert_eq!(cleaned(path).as_deref(), clean, "{path}");
        }
        assert_eq!(escape_html("a&b<c>\"'"), "a&amp;b&lt;c&gt;&#34;&#39;");
    }
}
