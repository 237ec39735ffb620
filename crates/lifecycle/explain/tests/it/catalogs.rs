//! CatalogSources that serve their last valid content.

use crate::explanations::{CATALOG, GROUP, csv, objects, subscription};
use mainstay_explain::{ClusterObjects, ExplainedKind, ExplainedObject, explain};

#[test]
fn catalog_source_that_serves_its_last_valid_content_blocks_no_subscription() {
    let invalid_catalog = |state: &str| {
        CATALOG.replace(
            "lastObservedState: READY, address: 'cat.olm.svc:50051'}",
            &format!("lastObservedState: {state}}}, reason: RegistryServerError, message: 'a.yaml:3:1: no'"),
        )
    };
    let subscribed = |healthy: bool| {
        subscription(&format!(
            "{{state: AtLatestKnown, currentCSV: anvil.v1, installedCSV: anvil.v1, lastUpdated: '2026-01-01T00:00:00Z', \
             catalogHealth: [{{healthy: {healthy}, catalogSourceRef: {{name: cat, namespace: olm}}}}]}}"
        ))
    };
    let succeeded = csv("{phase: Succeeded, reason: InstallSucceeded}");
    for state in ["READY", "TRANSIENT_FAILURE"] {
        let explain_with = |healthy| {
            let texts = [GROUP, &invalid_catalog(state), &subscribed(healthy), &succeeded];
            let cluster = ClusterObjects { objects: objects(&texts), ..ClusterObjects::default() };
            let target = ExplainedObject {
                kind: ExplainedKind::Subscription,
                namespace: "team".to_owned(),
                name: "anvil".to_owned(),
            };
            explain(&cluster, &target).unwrap()
        };
        let answer = explain_with(true);
        assert!(answer.is_healthy(), "{answer:?}");
        let note = "the newest content of CatalogSource olm/cat cannot be read, and its previous content is used: a.yaml:3:1: no";
        assert_eq!(answer.notes, [note]);
        // A catalog without any content is a cause.
        let cause = explain_with(false).cause.unwrap().render();
        assert!(cause.contains("CatalogSource olm/cat is not available"), "{cause}");
    }
}
