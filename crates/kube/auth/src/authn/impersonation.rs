//! Acting as somebody else: the `Impersonate-*` headers.
//!
//! Whoever may `impersonate` a user (or service account), each of the groups, each extra fact and the
//! uid that the headers name is that identity for the rest of the request. The first that is not
//! allowed is refused in the original's words. Facts are asked about in the order of their names,
//! where the original's order is random.

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

/// One thing that somebody wants to be, in the order in which permission is asked.
#[derive(Debug, PartialEq, Eq)]
enum Wish {
    User(String),
    Account { namespace: String, name: String },
    Group(String),
    Extra { key: String, value: String },
    Uid(String),
}

impl Wish {
    /// As Go prints the reference that the original makes of it (`%v`).
    fn printed(&self) -> String {
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

    /// What permission is asked for.
    fn attributes<'a>(&'a self, asker: &'a Identity) -> Attributes<'a> {
        let ask = |group, resource| Attributes::resource(asker, "impersonate", group, resource);
        match self {
            Self::User(name) => ask("", "users").named(name),
            Self::Account { namespace, name } => {
                ask("", "serviceaccounts").in_namespace(namespace).named(name)
            }
            Self::Group(name) => ask("", "groups").named(name),
            Self::Extra { key, value } => ask(API_GROUP, "userextras").below(key).named(value),
            Self::Uid(uid) => ask(API_GROUP, "uids").named(uid),
        }
    }
}

/// Whom a request acts as; none if it acts for its sender. 400 if the headers name no user, 403 if
/// the sender may not.
pub fn acting(
    asker: &Identity,
    headers: &HeaderMap,
    authorizer: &Authorizer,
) -> Result<Option<Identity>, Status> {
    let wishes = wishes(headers)?;
    if wishes.is_empty() {
        return Ok(None);
    }
    let mut user = String::new();
    let mut uid = String::new();
    let mut groups: Vec<String> = Vec::new();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let groups_given = headers.contains_key(GROUP);
    for wish in wishes {
        authorizer.require(&wish.attributes(asker))?;
        match wish {
            Wish::User(name) => user = name,
            Wish::Account { namespace, name } => {
                user = super::token::user_name(&namespace, &name);
                if !groups_given {
                    groups.extend(account_groups(&namespace));
                }
            }
            Wish::Group(name) => groups.push(name),
            Wish::Extra { key, value } => extra.entry(key).or_default().push(value),
            Wish::Uid(wanted) => uid = wanted,
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
    Ok(Some(Identity::exactly(user, uid, groups, extra)))
}

/// What the headers wish for.
fn wishes(headers: &HeaderMap) -> Result<Vec<Wish>, Status> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let first = |name: &str| headers.get(name).map(text).filter(|text| !text.is_empty());
    let mut wishes = Vec::new();
    if let Some(user) = first(USER) {
        wishes.push(match account(&user) {
            Some((namespace, name)) => {
                Wish::Account { namespace: namespace.to_owned(), name: name.to_owned() }
            }
            None => Wish::User(user),
        });
    }
    let has_user = !wishes.is_empty();
    wishes.extend(headers.get_all(GROUP).iter().map(text).map(Wish::Group));
    let keys: BTreeSet<&str> =
        headers.keys().filter_map(|name| name.as_str().strip_prefix(EXTRA)).collect();
    for key in keys {
        for value in headers.get_all(format!("{EXTRA}{key}")) {
            wishes.push(Wish::Extra { key: unescaped(key), value: text(value) });
        }
    }
    wishes.extend(first(UID).map(Wish::Uid));
    if !has_user && !wishes.is_empty() {
        let printed: Vec<String> = wishes.iter().map(Wish::printed).collect();
        let why = format!("requested [{}] without impersonating a user", printed.join(" "));
        return Err(Status::bad_request(why));
    }
    Ok(wishes)
}

/// Takes the headers away: nobody behind this may look at them.
pub fn strip(headers: &mut HeaderMap) {
    let ours: Vec<http::HeaderName> = headers
        .keys()
        .filter(|name| {
            let name = name.as_str();
            matches!(name, USER | GROUP | UID) || name.starts_with(EXTRA)
        })
        .cloned()
        .collect();
    for name in ours {
        headers.remove(name);
    }
}

/// Namespace and name of a service account's user name.
fn account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(ACCOUNT_PREFIX)?.split_once(':')?;
    let good =
        names::dns1123_label(namespace).is_empty() && names::dns1123_subdomain(name).is_empty();
    good.then_some((namespace, name))
}

/// Undoes percent escapes; what is no escape leaves the text as it is.
fn unescaped(key: &str) -> String {
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

    fn map(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    #[test]
    fn wishes_come_in_order_and_need_a_user() {
        let all = map(&[
            (UID, "u"),
            ("impersonate-extra-b%2fc", "1"),
            ("impersonate-extra-a%zz", "2"),
            (GROUP, "g1"),
            (GROUP, "g2"),
            (USER, "me"),
            (USER, "you"),
        ]);
        let extra = |key: &str, value: &str| Wish::Extra { key: key.into(), value: value.into() };
        assert_eq!(
            wishes(&all).unwrap(),
            [
                Wish::User("me".into()),
                Wish::Group("g1".into()),
                Wish::Group("g2".into()),
                extra("a%zz", "2"),
                extra("b/c", "1"),
                Wish::Uid("u".into()),
            ]
        );
        for (headers, why) in [
            (map(&[(GROUP, "a")]), "[{Group  a    }]"),
            (map(&[(USER, ""), (UID, "u")]), "[{UID  u  authentication.k8s.io/v1  }]"),
            (
                map(&[(GROUP, ""), ("impersonate-extra-k", "v")]),
                "[{Group      } {UserExtra  v  authentication.k8s.io/v1  k}]",
            ),
        ] {
            let refused = wishes(&headers).unwrap_err();
            let message = format!("requested {why} without impersonating a user");
            assert_eq!((refused.code, refused.message), (400, message));
        }
        assert_eq!(wishes(&map(&[(USER, ""), ("impersonate-user-x", "a")])), Ok(Vec::new()));
        let mut stripped = all;
        stripped.insert("accept", "x".parse().unwrap());
        strip(&mut stripped);
        assert_eq!(stripped.len(), 1);
    }

    #[test]
    fn users_that_are_accounts_are_told_apart_by_their_names() {
        for (user, found) in [
            ("system:serviceaccount:n:a.b", Some(("n", "a.b"))),
            ("system:serviceaccount:n", None),
            ("system:serviceaccount:n:a:b", None),
            ("system:serviceaccount:N:a", None),
            ("system:serviceaccount:n:", None),
            ("system:serviceaccounts:n:a", None),
            ("jane", None),
        ] {
            assert_eq!(account(user), found, "{user}");
        }
    }
}
