//! CatalogSource status and health: the status and Events of a catalog, and its health for
//! Subscriptions.
//!
//! A folder that cannot be read puts its CatalogSource into `TRANSIENT_FAILURE`, with file and
//! line, and publishes an Event. For Subscriptions the catalog stays healthy while its last good
//! content is served: upstream too checks that the registry Service exists, not that it is
//! connected. Installs and upgrades continue. `CatalogSourcesUnhealthy` is `True` only without any
//! content; while old content is served, the condition is `False` and its message names the
//! catalog.
//!
//! A catalog image with content stays `READY` when a later image cannot be pulled or read, as in
//! upstream, where the old pod keeps running. Reason and message report the failure.
//!
//! A catalog at an address has only the state of its connection: upstream writes no reason there,
//! and clients take a reason for an invalid spec. The failure is in an Event and in the resolution
//! error of Subscriptions. As in upstream, the catalog counts as healthy in every state: a
//! Subscription that cannot be resolved without it reports that itself.

use crate::follow::{is_by_address, is_by_config_map, is_by_image};
use crate::store::{SourceContent, SourceState};
use crate::{images, pods};
use mainstay_api::{
    CatalogSource, CatalogSourceReason, CatalogSourceSpec, CatalogSourceStatus, ConfigMapReference,
    ConnectionState, LastObservedState, RegistryService, SourceType, Time,
};
use mainstay_client::EventType;
use std::sync::Arc;

/// `spec.address` of a CatalogSource whose catalog is a folder of this process.
///
/// The API requires an address or an image. Names under `invalid` never resolve (RFC 2606), so no
/// client can connect to it.
pub const FOLDER_ADDRESS: &str = "folder.mainstay.invalid:50051";

/// The error of an invalid spec.
fn spec_error(spec: &CatalogSourceSpec) -> Option<String> {
    match &spec.source_type {
        kind @ (SourceType::Internal | SourceType::ConfigMap) => spec
            .config_map
            .is_empty()
            .then(|| format!("configmap name unset: must be set for sourcetype: {kind}")),
        kind @ SourceType::Grpc => (spec.image.is_empty() && spec.address.is_empty()).then(|| {
            format!("image and address unset: at least one must be set for sourcetype: {kind}")
        }),
        other => Some(format!("unknown sourcetype: {other}")),
    }
}

/// The message for a catalog without a follower.
fn unserved_message(spec: &CatalogSourceSpec) -> String {
    let what = if spec.address.is_empty() {
        format!("catalog images are not served: {}", spec.image)
    } else {
        "no folder is known for this catalog".to_owned()
    };
    format!("{what}; give the catalog as a folder (--catalog NAME=DIR)")
}

/// Whether a reason reports that the content cannot be read.
pub(crate) fn is_content_failure(reason: &CatalogSourceReason) -> bool {
    matches!(reason, CatalogSourceReason::RegistryServer | CatalogSourceReason::ConfigMap)
}

/// The desired status of a CatalogSource. `state` is the state in the store; none if the store does
/// not follow the catalog.
pub(crate) fn status(
    source: &CatalogSource,
    state: Option<&SourceState>,
    now: Time,
) -> CatalogSourceStatus {
    let old = &source.status;
    let mut new = old.clone();
    // After a restart, the old failure stays until the catalog is read.
    let is_loading = state.is_some_and(SourceState::is_loading);
    if !is_loading || !is_content_failure(&old.reason) {
        (new.reason, new.message) = Default::default();
    }
    if let Some(message) = spec_error(&source.spec) {
        new.reason = CatalogSourceReason::SpecInvalid;
        new.message = message;
        return new;
    }
    if let Some(read) = state.and_then(|state| state.config_map.as_ref()) {
        let known = old.config_map_reference.as_ref();
        if known.is_none_or(|reference| {
            reference.uid != read.uid || reference.resource_version != read.version
        }) {
            let before = known.and_then(|reference| reference.last_update_time);
            new.config_map_reference = Some(ConfigMapReference {
                name: source.spec.config_map.clone(),
                namespace: source.metadata.namespace.clone(),
                last_update_time: Some(now.later_than(before)),
                resource_version: read.version.clone(),
                uid: read.uid.clone(),
            });
        }
    }
    let is_config_map = is_by_config_map(source);
    let runs = is_config_map || is_by_image(source);
    if let Some(SourceState { missing_config_map: Some(missing), .. }) = state {
        new.reason = CatalogSourceReason::ConfigMap;
        new.message.clone_from(missing);
        // The other fields stay as they are.
        return new;
    }
    if is_config_map && state.is_some_and(|state| state.config_map.is_none()) {
        // The cache of the ConfigMap is not yet filled.
        return old.clone();
    }
    let served_address = state.and_then(|state| state.address.as_deref());
    let address = if let Some(address) = served_address {
        address.to_owned()
    } else if source.spec.address.is_empty() {
        pods::address(source)
    } else {
        source.spec.address.clone()
    };
    let (observed, failure) = match state {
        None => (LastObservedState::TransientFailure, Some(unserved_message(&source.spec))),
        Some(state) if state.is_loading() => (LastObservedState::Connecting, None),
        Some(SourceState { observed: Some(observed), .. }) => (observed.clone(), None),
        Some(SourceState { failure: Some(failure), content, .. }) => {
            let serves = runs && content.is_some();
            let observed =
                if serves { LastObservedState::Ready } else { LastObservedState::TransientFailure };
            (observed, Some(failure.clone()))
        }
        Some(_) => (LastObservedState::Ready, None),
    };
    if let (_, Some(wrong)) = images::poll_interval(source)
        && is_by_image(source)
    {
        // An invalid interval is reported whatever the state of the image.
        new.reason = CatalogSourceReason::InvalidInterval;
        new.message = match failure {
            Some(failure) => format!("{wrong}; {failure}"),
            None => wrong,
        };
    } else if let Some(failure) = failure {
        new.reason = if is_config_map {
            CatalogSourceReason::ConfigMap
        } else {
            CatalogSourceReason::RegistryServer
        };
        new.message = failure;
    }
    // Clients wait until `lastConnect` is later than the update of the ConfigMap, and that later
    // than the update before.
    let updated =
        new.config_map_reference.as_ref().and_then(|reference| reference.last_update_time);
    let last_connect = Some(now.later_than(updated));
    let connection = ConnectionState { last_observed_state: observed, address, last_connect };
    // Content that this process reads is served at once; a pod needs a connection first.
    let is_read_in_process =
        state.is_some_and(|state| state.config_map.is_some() && state.observed.is_none());
    let outdated =
        |connection: &ConnectionState| is_read_in_process && connection.last_connect <= updated;
    // After a restart, the old connection state stays until the new one is known.
    let same = old.connection_state.as_ref().is_some_and(|old| {
        (is_loading || old.last_observed_state == connection.last_observed_state)
            && old.address == connection.address
            && !outdated(old)
    });
    if !same {
        new.connection_state = Some(connection);
    }
    if state.is_some() && new.registry_service.is_none() {
        let metadata = &source.metadata;
        new.registry_service = Some(RegistryService {
            protocol: "grpc".to_owned(),
            created_at: Some(now),
            ..if runs {
                RegistryService {
                    port: pods::PORT.to_string(),
                    service_name: pods::service_name(source),
                    service_namespace: metadata.namespace.clone(),
                    ..RegistryService::default()
                }
            } else {
                RegistryService::default()
            }
        });
    }
    if let Some(polled) = state.and_then(|state| state.last_poll) {
        new.latest_image_registry_poll = Some(Time::new(polled));
    }
    new
}

/// Whether the connection state is `TRANSIENT_FAILURE`.
pub(crate) fn is_unreachable(status: &CatalogSourceStatus) -> bool {
    let state = status.connection_state.as_ref().map(|connection| &connection.last_observed_state);
    state == Some(&LastObservedState::TransientFailure)
}

/// The Event for an unreadable catalog.
pub(crate) fn unreadable_event(why: &str) -> (EventType, &'static str, String) {
    (EventType::Warning, "CatalogUnreadable", why.to_owned())
}

/// The Event for a status change: type, reason and message. `failure` is the failure of catalogs
/// whose status has no message.
pub(crate) fn status_event(
    old: &CatalogSourceStatus,
    new: &CatalogSourceStatus,
    failure: Option<&str>,
) -> Option<(EventType, &'static str, String)> {
    let bad = |status: &CatalogSourceStatus| is_content_failure(&status.reason);
    let is = |status: &CatalogSourceStatus, state: LastObservedState| {
        status
            .connection_state
            .as_ref()
            .is_some_and(|connection| connection.last_observed_state == state)
    };
    // A starting pod reports its own state.
    let starts = |old: &CatalogSourceStatus, new: &CatalogSourceStatus| {
        let service = new.registry_service.as_ref();
        service.is_some_and(|service| !service.service_name.is_empty())
            && !is(old, LastObservedState::Ready)
    };
    if bad(new) && (!bad(old) || old.message != new.message) {
        Some(unreadable_event(&new.message))
    } else if is_unreachable(new) && !is_unreachable(old) && !bad(new) && !starts(old, new) {
        Some(unreadable_event(failure.unwrap_or("the registry cannot be reached")))
    } else if (bad(old) || is_unreachable(old))
        && !is_unreachable(new)
        && new.reason == CatalogSourceReason::default()
        && new
            .connection_state
            .as_ref()
            .is_some_and(|connection| connection.last_observed_state == LastObservedState::Ready)
    {
        Some((EventType::Normal, "CatalogReadable", "the catalog can be read again".to_owned()))
    } else {
        None
    }
}

/// Whether a catalog is healthy for Subscriptions: it has content, which may be the last good one,
/// or its content is on a registry server.
pub fn is_healthy(source: &CatalogSource, state: Option<&SourceState>) -> bool {
    let has = state.is_some_and(|state| state.content.is_some());
    let served =
        state.is_some_and(|state| state.observed.is_some() && state.missing_config_map.is_none());
    spec_error(&source.spec).is_none() && (has || served || is_by_address(source))
}

/// A catalog has no content; the text is the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoContent(pub String);

/// The content of a catalog.
///
/// # Errors
/// The spec of the CatalogSource is invalid, or no content could be read yet.
pub fn content(
    source: &CatalogSource,
    state: Option<SourceState>,
) -> Result<Arc<SourceContent>, NoContent> {
    if let Some(message) = spec_error(&source.spec) {
        return Err(NoContent(message));
    }
    let (content, failure) = state.map(|state| (state.content, state.failure)).unwrap_or_default();
    content.ok_or_else(|| NoContent(failure.unwrap_or_else(|| source.status.message.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(kind: &str) -> CatalogSource {
        let mut source = CatalogSource::new("olm", "cat");
        source.spec.source_type = kind.into();
        source
    }

    fn time(second: i64) -> Time {
        Time::new(jiff::Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn invalid_specs_have_upstreams_messages() {
        for (kind, message) in [
            ("grpc", "image and address unset: at least one must be set for sourcetype: grpc"),
            ("configmap", "configmap name unset: must be set for sourcetype: configmap"),
            ("internal", "configmap name unset: must be set for sourcetype: internal"),
            ("nonsense", "unknown sourcetype: nonsense"),
        ] {
            let status = status(&source(kind), None, time(1));
            assert_eq!(
                (status.reason.as_str(), status.message.as_str()),
                ("SpecInvalidError", message)
            );
            assert!(status.connection_state.is_none());
        }
    }

    #[test]
    fn folder_failure_is_in_the_status_and_is_written_once() {
        let mut source = source("grpc");
        source.spec.address = FOLDER_ADDRESS.to_owned();
        let loading = status(&source, Some(&SourceState::default()), time(1));
        assert_eq!(
            loading.connection_state.unwrap().last_observed_state,
            LastObservedState::Connecting
        );
        let bad = SourceState { failure: Some("a.yaml:3: no".into()), ..SourceState::default() };
        source.status = status(&source, Some(&bad), time(2));
        assert_eq!(source.status.message, "a.yaml:3: no");
        assert_eq!(
            source.status.connection_state.as_ref().unwrap().last_observed_state,
            LastObservedState::TransientFailure
        );
        assert_eq!(status(&source, Some(&bad), time(9)), source.status);
        assert!(!is_healthy(&source, Some(&bad)));
        let restarted = status(&source, Some(&SourceState::default()), time(3));
        assert_eq!(restarted.message, "a.yaml:3: no", "nothing better is known yet");
    }

    #[test]
    fn connection_address_is_where_the_catalog_is_served() {
        let mut source = source("grpc");
        source.spec.address = FOLDER_ADDRESS.to_owned();
        let address = |state: Option<&SourceState>| {
            status(&source, state, time(1)).connection_state.unwrap().address
        };
        let served = SourceState { address: Some("127.0.0.1:7".into()), ..SourceState::default() };
        assert_eq!(address(Some(&served)), "127.0.0.1:7");
        assert_eq!(address(Some(&SourceState::default())), FOLDER_ADDRESS);
        assert_eq!(address(None), FOLDER_ADDRESS);
    }

    #[test]
    fn failures_and_recoveries_are_events() {
        use LastObservedState::{Connecting, Ready, TransientFailure};
        let bad = |message: &str| CatalogSourceStatus {
            reason: CatalogSourceReason::RegistryServer,
            message: message.to_owned(),
            ..CatalogSourceStatus::default()
        };
        let good = || CatalogSourceStatus {
            connection_state: Some(ConnectionState {
                last_observed_state: Ready,
                address: "a:1".to_owned(),
                last_connect: None,
            }),
            ..CatalogSourceStatus::default()
        };
        let lost = || {
            let mut status = good();
            if let Some(connection) = &mut status.connection_state {
                connection.last_observed_state = TransientFailure;
            }
            status
        };
        let runs = |state: LastObservedState| {
            let mut status = good();
            if let Some(connection) = &mut status.connection_state {
                connection.last_observed_state = state;
            }
            status.registry_service = Some(RegistryService {
                service_name: "cat".to_owned(),
                ..RegistryService::default()
            });
            status
        };
        let told = |message| Some((EventType::Warning, "CatalogUnreadable", message));
        let again = "the catalog can be read again";
        for (old, new, wanted) in [
            (good(), good(), None),
            (good(), bad("no"), told("no")),
            (bad("no"), bad("no"), None),
            (bad("no"), bad("neither"), told("neither")),
            (bad("no"), good(), Some((EventType::Normal, "CatalogReadable", again))),
            (good(), lost(), told("refused")),
            (lost(), lost(), None),
            (runs(Connecting), runs(TransientFailure), None),
            (runs(Ready), runs(TransientFailure), told("refused")),
            (lost(), good(), Some((EventType::Normal, "CatalogReadable", again))),
        ] {
            let event = status_event(&old, &new, Some("refused"));
            let event = event.as_ref().map(|event| (event.0, event.1, event.2.as_str()));
            assert_eq!(event, wanted);
        }
    }

    #[test]
    fn last_connect_is_later_than_each_config_map_update() {
        let mut source = source("configmap");
        source.spec.config_map = "content".to_owned();
        let state = |version: &str| SourceState {
            content: Some(content_of_nothing()),
            config_map: Some(crate::config_map::ConfigMapMetadata {
                version: version.to_owned(),
                ..Default::default()
            }),
            ..SourceState::default()
        };
        let mut seconds = Vec::new();
        for version in ["1", "2", "2", "3"] {
            source.status = status(&source, Some(&state(version)), time(10));
            let updated = source.status.config_map_reference.as_ref().unwrap().last_update_time;
            let connected = source.status.connection_state.as_ref().unwrap().last_connect;
            seconds.push([updated, connected].map(|time| time.unwrap().timestamp().as_second()));
        }
        // shows E047
        assert_eq!(seconds, [[10, 11], [11, 12], [11, 12], [12, 13]]);
    }

    fn content_of_nothing() -> Arc<SourceContent> {
        let catalog = mainstay_catalog::CatalogDocuments::default().check().unwrap();
        crate::store::content(catalog, std::time::SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn registry_source_has_its_connection_state_and_counts_as_healthy() {
        let mut source = source("grpc");
        source.spec.address = "127.0.0.1:9".to_owned();
        let lost = SourceState {
            failure: Some("failed to list bundles: refused".into()),
            observed: Some(LastObservedState::TransientFailure),
            ..SourceState::default()
        };
        source.status = status(&source, Some(&lost), time(1));
        let connection = source.status.connection_state.as_ref().unwrap();
        // shows CAT-31
        assert_eq!(connection.last_observed_state, LastObservedState::TransientFailure);
        assert_eq!(
            (connection.address.as_str(), source.status.message.as_str()),
            ("127.0.0.1:9", "")
        );
        assert_eq!(source.status.registry_service.as_ref().unwrap().service_name, "");
        assert!(is_healthy(&source, Some(&lost)));
        assert_eq!(status(&source, Some(&lost), time(9)), source.status);
        let why = content(&source, Some(lost)).err();
        assert_eq!(why.map(|why| why.0).as_deref(), Some("failed to list bundles: refused"));
        // After a restart nothing is written before the state is known.
        let begun =
            SourceState { observed: Some(LastObservedState::Connecting), ..SourceState::default() };
        assert_eq!(status(&source, Some(&begun), time(9)), source.status);
    }

    #[test]
    fn unserved_catalog_images_are_reported() {
        let mut source = source("grpc");
        source.spec.image = "registry.invalid/index:1".to_owned();
        let status = status(&source, None, time(1));
        assert_eq!(
            status.message,
            "catalog images are not served: registry.invalid/index:1; give the catalog as a folder (--catalog NAME=DIR)"
        );
        assert_eq!(status.connection_state.unwrap().address, "cat.olm.svc:50051");
    }
}
