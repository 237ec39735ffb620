//! The token controller: a Secret of the type `kubernetes.io/service-account-token` gets the token,
//! the certificates and the namespace of the ServiceAccount that it names, and is deleted with it.

use crate::Started;
use crate::certificates::base64;
use crate::common::Context;
use crate::credentials::ClusterCredentials;
use mainstay_client::{
    Action, Cache, Controller, DeleteOptions, Error, ObjectList, Reconciler, Selection,
};
use mainstay_object::{NamespacedName, Object, builtin};
use serde_json::Value;
use std::sync::Arc;

const TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";

/// A token Secret: the name of its ServiceAccount.
#[derive(Clone, Debug, PartialEq)]
struct View {
    account: Arc<str>,
    resource_version: Arc<str>,
}

/// Starts the controller.
pub(crate) fn start(
    context: &Context,
    keys: &Arc<ClusterCredentials>,
    root_ca: Option<&str>,
    started: &mut Started,
) {
    let controller = Controller::new("serviceaccount-tokens");
    let queue = controller.queue();
    let index = |view: &View| vec![Arc::clone(&view.account)];
    let secrets =
        Cache::builder(Selection::all(builtin::SECRET).fields(format!("type={TYPE}")), |secret| {
            let account = secret.annotation(ACCOUNT).filter(|name| !name.is_empty())?;
            Some(View {
                account: format!("{}/{account}", secret.namespace()).into(),
                resource_version: secret.resource_version().into(),
            })
        })
        .index(index)
        .subscribe(move |change| queue.add(change.key.clone()))
        .start(&context.cluster, context.stop.clone());
    let (queue, of_account) = (controller.queue(), secrets.clone());
    let accounts = Cache::builder(Selection::all(builtin::SERVICE_ACCOUNT), |account| {
        Some(Arc::<str>::from(account.uid()))
    })
    .subscribe(move |change| {
        let account = format!("{}/{}", change.key.namespace, change.key.name);
        for (secret, _) in of_account.indexed(&account) {
            queue.add(secret);
        }
    })
    .start(&context.cluster, context.stop.clone());
    let controller = controller.reads(&secrets).reads(&accounts);
    let reconciler = Reconcile {
        context: context.clone(),
        keys: Arc::clone(keys),
        root_ca: root_ca.map(|pem| base64(pem.as_bytes())),
    };
    started.controller(controller.start(reconciler, context.stop.clone()));
}

struct Reconcile {
    context: Context,
    keys: Arc<ClusterCredentials>,
    /// The CA certificates for `ca.crt`.
    root_ca: Option<String>,
}

impl Reconciler for Reconcile {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        let cluster = &self.context.cluster;
        let namespace = Some(&*key.namespace);
        let Some(secret) = cluster.find(&builtin::SECRET, namespace, &key.name).await? else {
            // A ServiceAccount lists only existing Secrets.
            self.remove_from_accounts(key).await?;
            return Ok(Action::Done);
        };
        let name = secret.annotation(ACCOUNT).unwrap_or_default();
        if name.is_empty() || secret.is_terminating() {
            return Ok(Action::Done);
        }
        let account = cluster.find(&builtin::SERVICE_ACCOUNT, namespace, name).await?;
        let wanted = secret.annotation(UID).unwrap_or_default();
        let account = account.filter(|account| wanted.is_empty() || account.uid() == wanted);
        let Some(account) = account else {
            let options = DeleteOptions::uid(secret.uid());
            cluster.ensure_deleted(&builtin::SECRET, namespace, &key.name, &options).await?;
            return Ok(Action::Done);
        };
        let token = || self.keys.token(&account, &key.name);
        if let Some(fill_secret) = fill_secret(&secret, &account, self.root_ca.as_deref(), token) {
            match cluster.update(&builtin::SECRET, &fill_secret).await {
                // Another client wrote first: that event brings the key back.
                Err(error) if error.is_conflict() || error.is_not_found() => {}
                other => drop(other?),
            }
        }
        Ok(Action::Done)
    }
}

impl Reconcile {
    /// Removes a deleted Secret from `secrets` of ServiceAccounts.
    async fn remove_from_accounts(&self, secret: &NamespacedName) -> Result<(), Error> {
        let cluster = &self.context.cluster;
        let namespace = Some(&*secret.namespace);
        let all =
            cluster.list(&builtin::SERVICE_ACCOUNT, namespace, &ObjectList::default()).await?;
        for mut account in all.items {
            let is = |one: &&Value| one.get("name").and_then(Value::as_str) == Some(&*secret.name);
            let list = account.array(&["secrets"]);
            if !list.iter().any(|one| is(&one)) {
                continue;
            }
            let remaining: Vec<Value> = list.iter().filter(|one| !is(one)).cloned().collect();
            account.set(&["secrets"], remaining.into());
            match cluster.update(&builtin::SERVICE_ACCOUNT, &account).await {
                Err(error) if error.is_not_found() => {}
                other => drop(other?),
            }
        }
        Ok(())
    }
}

/// The Secret with the missing fields filled in; none if nothing is missing.
fn fill_secret(
    secret: &Object,
    account: &Object,
    root_ca: Option<&str>,
    token: impl FnOnce() -> String,
) -> Option<Object> {
    let has = |key: &str| secret.str(&["data", key]).unwrap_or_default();
    let needs_ca = root_ca.filter(|pem| has("ca.crt") != *pem);
    let (needs_namespace, needs_token) = (has("namespace").is_empty(), has("token").is_empty());
    if needs_ca.is_none() && !needs_namespace && !needs_token {
        return None;
    }
    let mut fill_secret = secret.clone();
    if let Some(pem) = needs_ca {
        fill_secret.set(&["data", "ca.crt"], pem.into());
    }
    if needs_namespace {
        fill_secret.set(&["data", "namespace"], base64(secret.namespace().as_bytes()).into());
    }
    if needs_token {
        fill_secret.set(&["data", "token"], base64(token().as_bytes()).into());
    }
    fill_secret.set_annotation(ACCOUNT, account.name());
    fill_secret.set_annotation(UID, account.uid());
    Some(fill_secret)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_token_secret_gets_missing_fields_and_keeps_its_token() {
        let secret = |data: Value| {
            Object::from_value(json!({"metadata": {"name": "s", "namespace": "n"}, "data": data}))
                .unwrap()
        };
        let account = Object::from_value(json!({"metadata": {"name": "a", "uid": "u"}})).unwrap();
        let fill =
            |data: Value| fill_secret(&secret(data), &account, Some("Y2E="), || "t".to_owned());
        let new = fill(json!({})).unwrap();
        let whole = json!({"ca.crt": "Y2E=", "namespace": "bg==", "token": "dA=="});
        assert_eq!(new.get(&["data"]), Some(&whole));
        assert_eq!((new.annotation(ACCOUNT), new.annotation(UID)), (Some("a"), Some("u")));
        assert_eq!(fill(whole), None);
        let other = fill(json!({"ca.crt": "b2xk", "namespace": "bg==", "token": "mine"})).unwrap();
        assert_eq!(other.str(&["data", "token"]), Some("mine"));
        assert_eq!(other.str(&["data", "ca.crt"]), Some("Y2E="));
    }
}
