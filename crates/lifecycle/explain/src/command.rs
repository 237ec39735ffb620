//! kubectl commands for remedies.

use serde_json::{Value, json};

/// `kubectl patch` with a merge patch.
pub(crate) fn patch(kind: &str, namespace: &str, name: &str, body: &Value) -> String {
    format!("kubectl -n {namespace} patch {kind} {name} --type merge -p '{body}'")
}

/// `kubectl delete`.
pub(crate) fn delete(kind: &str, namespace: &str, name: &str) -> String {
    format!("kubectl -n {namespace} delete {kind} {name}")
}

/// `kubectl patch` that approves an InstallPlan.
pub(crate) fn approve(namespace: &str, plan: &str) -> String {
    patch("installplan", namespace, plan, &json!({"spec": {"approved": true}}))
}

/// `kubectl apply` of an object as one line of JSON.
pub(crate) fn apply(object: &Value) -> String {
    format!("echo '{object}' | kubectl apply -f -")
}

/// The parts of a `Forbidden` message of the API server: user, verb, resource and namespace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal<'m> {
    user: &'m str,
    verb: &'m str,
    resource: &'m str,
    group: &'m str,
    namespace: Option<&'m str>,
}

impl<'m> Refusal<'m> {
    /// Parses the refusal in a message.
    pub(crate) fn of(message: &'m str) -> Option<Self> {
        let (_, rest) = message.split_once("is forbidden: User \"")?;
        let (user, rest) = rest.split_once("\" cannot ")?;
        let (verb, rest) = rest.split_once(" resource \"")?;
        let (resource, rest) = rest.split_once("\" in API group \"")?;
        let (group, rest) = rest.split_once('"')?;
        let namespace = rest
            .strip_prefix(" in the namespace \"")
            .and_then(|text| text.split_once('"'))
            .map(|(namespace, _)| namespace);
        Some(Self { user, verb, resource, group, namespace })
    }

    /// Whether a ServiceAccount was refused.
    pub(crate) fn is_of_account(&self, namespace: &str, name: &str) -> bool {
        self.user == format!("system:serviceaccount:{namespace}:{name}")
    }

    /// Commands that grant the refused permission.
    pub(crate) fn grant_commands(&self) -> String {
        let Self { user, verb, resource, group, namespace } = self;
        let resource = match *group {
            "" => (*resource).to_owned(),
            group => format!("{resource}.{group}"),
        };
        let account = user
            .strip_prefix("system:serviceaccount:")
            .and_then(|account| account.split_once(':'))
            .map(|(namespace, name)| (format!("--serviceaccount={namespace}:{name}"), name));
        let (subject_flag, name) = account.unwrap_or_else(|| (format!("--user={user}"), "granted"));
        let (namespace_flag, kind, binding_kind) = match namespace {
            Some(namespace) => (format!("-n {namespace} "), "role", "rolebinding"),
            None => (String::new(), "clusterrole", "clusterrolebinding"),
        };
        let role_name = format!("{name}-{}", resource.split('.').next().unwrap_or_default());
        // The API refuses one verb at a time: grant the usual ones together.
        let verbs =
            if matches!(*verb, "get" | "list" | "watch" | "create" | "update" | "patch" | "delete")
            {
                "get,list,watch,create,update,patch,delete"
            } else {
                verb
            };
        format!(
            "kubectl {namespace_flag}create {kind} {role_name} --verb={verbs} --resource={resource} && kubectl {namespace_flag}create {binding_kind} {role_name} --{kind}={role_name} {subject_flag}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_message_yields_commands_that_grant_the_permission() {
        let refused = |message: &str| Refusal::of(message).map(|refusal| refusal.grant_commands());
        insta::assert_snapshot!(refused("retrying execution due to error: error creating csv a.v1: clusterserviceversions.operators.coreos.com is forbidden: User \"system:serviceaccount:team:installer\" cannot create resource \"clusterserviceversions\" in API group \"operators.coreos.com\" in the namespace \"team\"").unwrap(), @"kubectl -n team create role installer-clusterserviceversions --verb=get,list,watch,create,update,patch,delete --resource=clusterserviceversions.operators.coreos.com && kubectl -n team create rolebinding installer-clusterserviceversions --role=installer-clusterserviceversions --serviceaccount=team:installer");
        insta::assert_snapshot!(refused("nodes is forbidden: User \"eve\" cannot escalate resource \"nodes\" in API group \"\" at the cluster scope").unwrap(), @"kubectl create clusterrole granted-nodes --verb=escalate --resource=nodes && kubectl create clusterrolebinding granted-nodes --clusterrole=granted-nodes --user=eve");
        assert_eq!(refused("deployments.apps \"a\" is invalid"), None);
    }
}
