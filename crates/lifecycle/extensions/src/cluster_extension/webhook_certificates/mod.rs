//! Certificates of webhooks that the controller issues itself: a CA for each extension, and a certificate of
//! that CA for each Service with webhooks.
//!
//! ```text
//! Secret with the CA and all certificates ─► what is due ─► that Secret, written ─► rendered objects
//! ```
//!
//! One Secret in the namespace of releases has the keys of an extension ([`store`]). It is written before
//! anything is rendered with it, so a killed process goes on with the same certificates, and what is
//! rendered depends on nothing else: what Secrets of the operator's namespace contain is not used.

mod renewal;
mod store;

use self::renewal::Renewal;
use self::store::CertificateStore;
use super::failure::Failure;
use crate::context::Context;
use jiff::Timestamp;
use mainstay_api::ClusterExtension;
use mainstay_api::names::olm_v1::OWNER_NAME_LABEL;
use mainstay_bundle::render::{IssuedCertificates, WebhookServing};
use mainstay_certificates::sha256_hex;
use mainstay_controller::api_message;
use mainstay_object::{Object, builtin};
use mainstay_objectsets::ExtensionIdentity;

/// What the name of a Secret with the certificates of an extension ends with.
const SUFFIX: &str = "-webhook-certificates";
/// The longest name of an object, in bytes.
const MAX_NAME: usize = 253;

/// The certificates of an extension, and when they are due for renewal.
#[derive(Debug)]
pub(super) struct Issued {
    pub(super) certificates: IssuedCertificates,
    pub(super) renew_at: Timestamp,
}

/// The name of the Secret with the certificates of an extension.
fn secret_name(extension: &str) -> String {
    if extension.len() + SUFFIX.len() <= MAX_NAME {
        return format!("{extension}{SUFFIX}");
    }
    // Too long for a release; with ClusterObjectSets, names may have this length.
    let digest = &sha256_hex(extension.as_bytes())[..16];
    let room = MAX_NAME - SUFFIX.len() - digest.len() - 1;
    format!("{}-{digest}{SUFFIX}", &extension[..extension.floor_char_boundary(room)])
}

fn failed(extension: &ClusterExtension, why: impl std::fmt::Display) -> Failure {
    let name = secret_name(&extension.metadata.name);
    Failure::retrying(format!("cannot issue certificates of webhooks (Secret \"{name}\"): {why}"))
}

/// The certificates for these servers. What is missing or due is issued, and stored before this returns.
///
/// # Errors
/// The Secret cannot be read or written, or belongs to something else; or a certificate cannot be created.
pub(super) async fn issue(
    context: &Context,
    extension: &ClusterExtension,
    servers: &[WebhookServing],
) -> Result<Issued, Failure> {
    let now = context.clock.now();
    let found = find(context, extension).await?;
    let store = found.as_ref().map(CertificateStore::of).unwrap_or_default();
    let renewal = Renewal::decide(&store, servers, now);
    let store = if renewal.is_needed() {
        let store = renewal.carry_out(store, servers, now);
        let store = store.map_err(|error| failed(extension, error))?;
        write(context, extension, found, &store).await?;
        store
    } else {
        store
    };
    let renew_at = renewal::due(&store);
    Ok(Issued { certificates: store.issued(), renew_at })
}

/// When the certificates of an extension are due for renewal; none if it has none.
///
/// # Errors
/// As [`issue`].
pub(super) async fn renew_at(
    context: &Context,
    extension: &ClusterExtension,
) -> Result<Option<Timestamp>, Failure> {
    let found = find(context, extension).await?;
    Ok(found.map(|secret| renewal::due(&CertificateStore::of(&secret))))
}

/// The Secret with the certificates of an extension, if there is one.
async fn find(context: &Context, extension: &ClusterExtension) -> Result<Option<Object>, Failure> {
    let (name, namespace) = (secret_name(&extension.metadata.name), &*context.release_namespace);
    let found = context.cluster.find(&builtin::SECRET, Some(namespace), &name).await;
    let found = found.map_err(|error| failed(extension, api_message(&error)))?;
    match found {
        Some(secret) if !secret.is_controlled_by(&extension.metadata.uid) => {
            let why = format!(
                "it exists in namespace \"{namespace}\" and does not belong to this \
                 ClusterExtension; delete it if nothing else needs it"
            );
            Err(failed(extension, why))
        }
        found => Ok(found),
    }
}

async fn write(
    context: &Context,
    extension: &ClusterExtension,
    found: Option<Object>,
    store: &CertificateStore,
) -> Result<(), Failure> {
    let cluster = &context.cluster;
    let written = if let Some(mut secret) = found {
        secret.set(&["data"], store.data());
        cluster.update(&builtin::SECRET, &secret).await
    } else {
        let name = &extension.metadata.name;
        let mut secret = Object::new(&builtin::SECRET.gvk(), &secret_name(name));
        secret.set(&["metadata", "namespace"], context.release_namespace.clone().into());
        secret.set_label(OWNER_NAME_LABEL, &**name);
        let owner = ExtensionIdentity::new(extension, false).owner_reference();
        secret.set(&["metadata", "ownerReferences"], serde_json::json!([owner]));
        secret.set(&["type"], "Opaque".into());
        secret.set(&["data"], store.data());
        cluster.create(&builtin::SECRET, &secret).await
    };
    written.map(drop).map_err(|error| failed(extension, api_message(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_have_at_most_253_bytes_and_differ() {
        assert_eq!(secret_name("kiwi"), "kiwi-webhook-certificates");
        let [one, other] = ["a", "b"].map(|end| secret_name(&format!("{}{end}", "x".repeat(252))));
        assert_eq!((one.len(), other.len()), (253, 253));
        assert_ne!(one, other);
        assert!(one.ends_with(SUFFIX));
    }
}
