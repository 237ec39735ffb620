//! User identity: name, uid, groups and extra fields, as authentication established them.

use mainstay_port::ConnectionOwner;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The group whose members may do anything.
pub const MASTERS: &str = "system:masters";
/// The group of all authenticated users.
pub const AUTHENTICATED: &str = "system:authenticated";

/// The user of requests without a credential.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group of the anonymous user.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";

/// The identity of a sender: the result of authentication, and the content of a
/// `SelfSubjectReview`.
///
/// A clone is cheap, because each request of a connection has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity(Arc<UserInfo>);

#[derive(Debug, PartialEq, Eq)]
struct UserInfo {
    user: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl Identity {
    /// A user with groups; [`AUTHENTICATED`] is added unless they say otherwise.
    pub fn new(user: impl Into<String>, groups: impl IntoIterator<Item = String>) -> Self {
        Self::with_details(user, "", groups, BTreeMap::new())
    }

    /// As [`Identity::new`], with uid and extra fields, such as the pod that a token is bound to.
    pub fn with_details(
        user: impl Into<String>,
        uid: impl Into<String>,
        groups: impl IntoIterator<Item = String>,
        extra: BTreeMap<String, Vec<String>>,
    ) -> Self {
        let user = user.into();
        let mut groups: Vec<String> = groups.into_iter().collect();
        let is_decided =
            groups.iter().any(|group| group == AUTHENTICATED || group == UNAUTHENTICATED);
        if !is_decided && user != ANONYMOUS {
            groups.push(AUTHENTICATED.to_owned());
        }
        Self::with_exact_groups(user, uid, groups, extra)
    }

    /// A user with these groups and no others.
    pub fn with_exact_groups(
        user: impl Into<String>,
        uid: impl Into<String>,
        groups: Vec<String>,
        extra: BTreeMap<String, Vec<String>>,
    ) -> Self {
        Self(Arc::new(UserInfo { user: user.into(), uid: uid.into(), groups, extra }))
    }

    /// The user of a request without a credential.
    pub fn anonymous() -> Self {
        Self(Arc::new(UserInfo {
            user: ANONYMOUS.to_owned(),
            uid: String::new(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            extra: BTreeMap::new(),
        }))
    }

    /// Whether the user is not authenticated.
    pub fn is_anonymous(&self) -> bool {
        self.is_in(UNAUTHENTICATED)
    }

    /// The administrator: the identity of the kubeconfig's certificate and of in-process
    /// controllers.
    pub fn admin() -> Self {
        Self::new("kubernetes-admin", [MASTERS.to_owned()])
    }

    /// User name, such as `system:serviceaccount:ns:name`.
    pub fn user(&self) -> &str {
        &self.0.user
    }

    /// The client of the connection limits of a listener. The service accounts of a namespace are
    /// one client: a user who may create one of them may create thousands.
    pub fn client(&self) -> ConnectionOwner<'_> {
        if self.is_in(MASTERS) {
            return ConnectionOwner::Administrator;
        }
        let namespace =
            self.0.groups.iter().find(|group| group.starts_with("system:serviceaccounts:"));
        ConnectionOwner::User(namespace.unwrap_or(&self.0.user))
    }

    /// Uid of the user; empty if there is none.
    pub fn uid(&self) -> &str {
        &self.0.uid
    }

    /// Groups, in the order of the credential.
    pub fn groups(&self) -> &[String] {
        &self.0.groups
    }

    /// Extra fields.
    pub fn extra(&self) -> &BTreeMap<String, Vec<String>> {
        &self.0.extra
    }

    /// Whether the user belongs to a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.0.groups.iter().any(|name| name == group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_accounts_of_a_namespace_are_one_client() {
        let account = |name: &str| {
            let groups = ["system:serviceaccounts", "system:serviceaccounts:shop"];
            Identity::new(format!("system:serviceaccount:shop:{name}"), groups.map(str::to_owned))
        };
        assert_eq!(account("a").client(), account("b").client());
        assert_eq!(Identity::new("jane", []).client(), ConnectionOwner::User("jane"));
        assert_eq!(Identity::admin().client(), ConnectionOwner::Administrator);
    }
}
