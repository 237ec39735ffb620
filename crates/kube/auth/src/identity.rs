//! User identity: name, uid, groups and extra fields, as authentication proved them.

use mainstay_port::ConnectionOwner;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The group whose members may do everything.
pub const MASTERS: &str = "system:masters";
/// The group of everyone who has proved who they are.
pub const AUTHENTICATED: &str = "system:authenticated";

/// The user who has not proved who they are.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group of everyone who has not.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";

/// Who asks: what authentication found, and what `SelfSubjectReview` answers.
///
/// Cheap to clone: every request of a connection carries one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity(Arc<Facts>);

#[derive(Debug, PartialEq, Eq)]
struct Facts {
    user: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl Identity {
    /// A user with groups; [`AUTHENTICATED`] is added when they do not say.
    pub fn new(user: impl Into<String>, groups: impl IntoIterator<Item = String>) -> Self {
        Self::with_details(user, "", groups, BTreeMap::new())
    }

    /// As [`Identity::new`], with uid and extra facts, such as the pod that a token is bound to.
    pub fn with_details(
        user: impl Into<String>,
        uid: impl Into<String>,
        groups: impl IntoIterator<Item = String>,
        extra: BTreeMap<String, Vec<String>>,
    ) -> Self {
        let user = user.into();
        let mut groups: Vec<String> = groups.into_iter().collect();
        let said = groups.iter().any(|group| group == AUTHENTICATED || group == UNAUTHENTICATED);
        if !said && user != ANONYMOUS {
            groups.push(AUTHENTICATED.to_owned());
        }
        Self::exactly(user, uid, groups, extra)
    }

    /// With these groups and no others.
    pub fn exactly(
        user: impl Into<String>,
        uid: impl Into<String>,
        groups: Vec<String>,
        extra: BTreeMap<String, Vec<String>>,
    ) -> Self {
        Self(Arc::new(Facts { user: user.into(), uid: uid.into(), groups, extra }))
    }

    /// Somebody who has not proved who they are.
    pub fn anonymous() -> Self {
        Self(Arc::new(Facts {
            user: ANONYMOUS.to_owned(),
            uid: String::new(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            extra: BTreeMap::new(),
        }))
    }

    /// Whether nobody has proved who this is.
    pub fn is_anonymous(&self) -> bool {
        self.is_in(UNAUTHENTICATED)
    }

    /// The administrator: what the kubeconfig's certificate and in-process controllers are.
    pub fn admin() -> Self {
        Self::new("kubernetes-admin", [MASTERS.to_owned()])
    }

    /// User name, such as `system:serviceaccount:ns:name`.
    pub fn user(&self) -> &str {
        &self.0.user
    }

    /// Whose connections count as one client's at a port. The service accounts of a namespace are one:
    /// whoever may make one of them may make thousands.
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

    /// Groups, in the order found.
    pub fn groups(&self) -> &[String] {
        &self.0.groups
    }

    /// Extra facts.
    pub fn extra(&self) -> &BTreeMap<String, Vec<String>> {
        &self.0.extra
    }

    /// Whether the user belongs to a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.0.groups.iter().any(|one| one == group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_accounts_of_a_namespace_are_one_client() {
        let account = |name: &str| {
            let groups = ["system:serviceaccounts", "system:serviceaccounts:shop"];
            Identity::new(format!("system:serviceaccount:shop:{name}"), groups.map(str::to_owned))
        };
        assert_eq!(account("a").client(), account("b").client());
        assert_eq!(Identity::new("jane", []).client(), ConnectionOwner::User("jane"));
        assert_eq!(Identity::admin().client(), ConnectionOwner::Administrator);
    }
}
