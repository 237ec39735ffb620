//! Events that explain what a status does not.

use crate::explanations::explanation;

#[test]
fn newest_event_of_a_catalog_source_explains_an_unreachable_registry() {
    let far = "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: far, namespace: team, uid: u2}
spec: {sourceType: grpc, address: '127.0.0.1:9'}
status: {connectionState: {lastObservedState: TRANSIENT_FAILURE, address: '127.0.0.1:9', lastConnect: '2026-01-01T00:00:00Z'}}
";
    let event = |uid: &str, time: &str, kind: &str, message: &str| {
        format!(
            "
apiVersion: v1
kind: Event
metadata: {{name: far.{time}, namespace: team}}
involvedObject: {{kind: CatalogSource, namespace: team, name: far, uid: {uid}}}
type: {kind}
lastTimestamp: '2026-01-01T00:00:{time}Z'
message: '{message}'
"
        )
    };
    let refused = event("u2", "20", "Warning", "failed to list bundles: connection refused");
    let timed_out = event("u2", "10", "Warning", "failed to list bundles: no answer within 10 s");
    let of_other_uid = event("u1", "30", "Warning", "failed to list bundles: no such host");
    let recovered = event("u2", "40", "Normal", "the catalog can be read again");
    let because = |events: &[&str]| {
        let text = explanation("catalogsource/far", &[&[far], events].concat());
        let line = text.lines().find(|line| line.contains("failed to list bundles"));
        line.map(|line| line.trim().to_owned())
    };
    let expected = Some("because failed to list bundles: connection refused".to_owned());
    assert_eq!(because(&[&timed_out, &refused, &of_other_uid]), expected);
    assert_eq!(because(&[&refused, &timed_out]), expected);
    // After a normal Event, and without Events, the cause has no message.
    assert_eq!(because(&[&refused, &recovered]), None);
    assert_eq!(because(&[]), None);
}
