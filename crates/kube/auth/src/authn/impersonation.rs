//! Impersonation: the `Impersonate-*` headers.
//!
//! The sender needs the verb `impersonate` on the user (or service account), each group, each extra
//! value and the uid in the headers. The rest of the request then has that identity. The first
//! permission that is missing is an error with kube-apiserver's text. Extra fields are checked in
//! the order of their names; kube-apiserver's order is random.

use super::account_groups;
use crate::Identity;
use crate::authz::{Attributes, Authorizer};
use crate::identity::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED};
use http::HeaderMap;
use mainstay_object::{Status, names};
use std::collections::{BTreeMap, BTreeSet};

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
const API_GROUP: &str = "authentication.k8s.io";
const ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// One attribute of the impersonated identity, in the order of the permission checks.
#[derive(Debug, PartialEq, Eq)]
enum ImpersonatedAttribute {
    User(String),
    Account { namespace: String, name: String },
    Group(String),
    Extra { key: String, value: String },
    Uid(String),
}

impl ImpersonatedAttribute {
    /// The object reference of kube-apiserver for this attribute, as Go prints it (`%v`).
    fn go_reference(&self) -> String {
        match self {
            Self::User(name) => format!("{{User  {name}    }}"),
            Self::Account { namespace, name } => {
                format!("{{ServiceAccount {namespace} {name}    }}")
            }
            Self::Group(name) => format!("{{Group  {name}    }}"),
            Self::Extra { key, value } => {
                format!("{{UserExtra  {value}  {API_GROUP}/v1  {key}}}")
            }
            Self::Uid(uid) => format!("{{UID  {uid}  {API_GROUP}/v1  }}"),
        }
    }

    /// The permission that impersonation needs.
    fn permission<'a>(&'a self, sender: &'a Identity) -> Attributes<'a> {
        let impersonate =
            |group, resource| Attributes::resource(sender, "impersonate", group, resource);
        match self {
            Self::User(name) => impersonate("", "users").with_name(name),
            Self::Account { namespace, name } => {
                impersonate("", "serviceaccounts").in_namespace(namespace).with_name(name)
            }
            Self::Group(name) => impersonate("", "groups").with_name(name),
            Self::Extra { key, value } => {
                impersonate(API_GROUP, "userextras").with_subresource(key).with_name(value)
            }
            Self::Uid(uid) => impersonate(API_GROUP, "uids").with_name(uid),
        }
    }
}

/// The impersonated identity of a request; none without the headers. Status 400 if the headers name
/// no user, 403 if the sender lacks a permission.
pub fn impersonated_identity(
    sender: &Identity,
    headers: &HeaderMap,
    authorizer: &Authorizer,
) -> Result<Option<Identity>, Status> {
    let attributes = impersonated_attributes(headers)?;
    if attributes.is_empty() {
        return Ok(None);
    }
    let mut user = String::new();
    let mut uid = String::new();
    let mut groups: Vec<String> = Vec::new();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let has_groups = headers.contains_key(GROUP);
    for attribute in attributes {
        authorizer.require(&attribute.permission(sender))?;
        match attribute {
            ImpersonatedAttribute::User(name) => user = name,
            ImpersonatedAttribute::Account { namespace, name } => {
                user = super::token::user_name(&namespace, &name);
                if !has_groups {
                    groups.extend(account_groups(&namespace));
                }
            }
            ImpersonatedAttribute::Group(name) => groups.push(name),
            ImpersonatedAttribute::Extra { key, value } => {
                extra.entry(key).or_default().push(value);
            }
            ImpersonatedAttribute::Uid(value) => uid = value,
        }
    }
    let has = |groups: &[String], wanted: &str| groups.iter().any(|group| group == wanted);
    if user == ANONYMOUS {
        if !has(&groups, UNAUTHENTICATED) {
            groups.push(UNAUTHENTICATED.to_owned());
        }
    } else if !has(&groups, AUTHENTICATED)
        && !has(&groups, UNAUTHENTICATED)
        && !mainstay_fault::is_on("impersonated-users-are-not-authenticated")
    {
        groups.push(AUTHENTICATED.to_owned());
    }
    Ok(Some(Identity::with_exact_groups(user, uid, groups, extra)))
}

/// The attributes that the headers name.
fn impersonated_attributes(headers: &HeaderMap) -> Result<Vec<ImpersonatedAttribute>, Status> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let first = |name: &str| headers.get(name).map(text).filter(|text| !text.is_empty());
    let mut attributes = Vec::new();
    if let Some(user) = first(USER) {
        attributes.push(match split_account(&user) {
            Some((namespace, name)) => ImpersonatedAttribute::Account {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            },
            None => ImpersonatedAttribute::User(user),
        });
    }
    let has_user = !attributes.is_empty();
    attributes.extend(headers.get_all(GROUP).iter().map(text).map(ImpersonatedAttribute::Group));
    let keys: BTreeSet<&str> =
        headers.keys().filter_map(|name| name.as_str().strip_prefix(EXTRA)).collect();
    for key in keys {
        for value in headers.get_all(format!("{EXTRA}{key}")) {
            attributes
                .push(ImpersonatedAttribute::Extra { key: unescape(key), value: text(value) });
        }
    }
    attributes.extend(first(UID).map(ImpersonatedAttribute::Uid));
    if !has_user && !attributes.is_empty() {
        let references: Vec<String> =
            attributes.iter().map(ImpersonatedAttribute::go_reference).collect();
        let message = format!("requested [{}] without impersonating a user", references.join(" "));
        return Err(Status::bad_request(message));
    }
    Ok(attributes)
}

/// Removes the impersonation headers; no later handler may read them.
pub fn remove_headers(headers: &mut HeaderMap) {
    let names: Vec<http::HeaderName> = headers
        .keys()
        .filter(|name| {
            let name = name.as_str();
            matches!(name, USER | GROUP | UID) || name.starts_with(EXTRA)
        })
        .cloned()
        .collect();
    for name in names {
        headers.remove(name);
    }
}

/// The namespace and name in the user name of a service account.
fn split_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(ACCOUNT_PREFIX)?.split_once(':')?;
    let is_valid =
        names::dns1123_label(namespace).is_empty() && names::dns1123_subdomain(name).is_empty();
    is_valid.then_some((namespace, name))
}

/// Decodes percent escapes; a text with a malformed escape stays as it is.
fn unescape(key: &str) -> String {
    let mut out = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            out.push(*byte);
            continue;
        }
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
            return key.to_owned();
        };
        out.push(byte);
        rest = &after[2..];
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header_map(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    #[test]
    fn impersonated_attributes_are_ordered_and_need_a_user() {
        let all = header_map(&[
            (UID, "u"),
            ("impersonate-extra-b%2fc", "1"),
            ("impersonate-extra-a%zz", "2"),
            (GROUP, "g1"),
            (GROUP, "g2"),
            (USER, "me"),
            (USER, "you"),
        ]);
        let extra = |key: &str, value: &str| ImpersonatedAttribute::Extra {
            key: key.into(),
            value: value.into(),
        };
        assert_eq!(
            impersonated_attributes(&all).unwrap(),
            [
                ImpersonatedAttribute::User("me".into()),
                ImpersonatedAttribute::Group("g1".into()),
                ImpersonatedAttribute::Group("g2".into()),
                extra("a%zz", "2"),
                extra("b/c", "1"),
                ImpersonatedAttribute::Uid("u".into()),
            ]
        );
        for (headers, references) in [
            (header_map(&[(GROUP, "a")]), "[{Group  a    }]"),
            (header_map(&[(USER, ""), (UID, "u")]), "[{UID  u  authentication.k8s.io/v1  }]"),
            (
                header_map(&[(GROUP, ""), ("impersonate-extra-k", "v")]),
                "[{Group      } {UserExtra  v  authentication.k8s.io/v1  k}]",
            ),
        ] {
            let error = impersonated_attributes(&headers).unwrap_err();
            let message = format!("requested {references} without impersonating a user");
            assert_eq!((error.code, error.message), (400, message));
        }
        assert_eq!(
            impersonated_attributes(&header_map(&[(USER, ""), ("impersonate-user-x", "a")])),
            Ok(Vec::new())
        );
        let mut headers = all;
        headers.insert("accept", "x".parse().unwrap());
        remove_headers(&mut headers);
        assert_eq!(headers.len(), 1);
    }

    #[test]
    fn user_name_of_a_service_account_is_recognized() {
        for (user, expected) in [
            ("system:serviceaccount:n:a.b", Some(("n", "a.b"))),
            ("system:serviceaccount:n", None),
            ("system:serviceaccount:n:a:b", None),
            ("system:serviceaccount:N:a", None),
            ("system:serviceaccount:n:", None),
            ("system:serviceaccounts:n:a", None),
            ("jane", None),
        ] {
            assert_eq!(split_account(user), expected, "{user}");
        }
    }
}
