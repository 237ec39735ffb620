//! ClusterCatalogs: whether the cluster serves their newest content.

use super::ReportedCondition;
use crate::Finding;
use mainstay_api::names::olm_v1::CATALOG_FINALIZER;
use mainstay_cause::Cause;
use mainstay_object::Object;

/// Explains a ClusterCatalog.
pub(crate) fn finding(catalog: &Object) -> Finding {
    let causes = causes(catalog);
    let state = if catalog.is_terminating() {
        "is being deleted"
    } else if causes.is_empty() {
        "is served"
    } else if is_switched_off(catalog) {
        "is switched off"
    } else if catalog.condition("Serving") == Some("True") {
        "serves its previous content, because its newest content cannot be used"
    } else {
        "is not served"
    };
    let notes = catalog.str(&["status", "resolvedSource", "image", "ref"]);
    let notes = notes.filter(|_| !is_switched_off(catalog));
    let notes = notes.map(|image| format!("its content is that of image {image}"));
    Finding { state: state.to_owned(), causes, notes: notes.into_iter().collect() }
}

/// Whether users have switched a catalog off.
pub(super) fn is_switched_off(catalog: &Object) -> bool {
    catalog.str(&["spec", "availabilityMode"]) == Some("Unavailable")
}

/// Why a catalog does not serve its newest content.
pub(super) fn causes(catalog: &Object) -> Vec<Cause> {
    let name = catalog.name();
    if catalog.is_terminating() {
        let finalizers: Vec<&str> = catalog.finalizers().collect();
        let mut cause = Cause::new("it is being deleted");
        if !finalizers.is_empty() {
            cause = cause.because(Cause::new(format!(
                "its finalizers block the deletion: {}",
                finalizers.join(", ")
            )));
        }
        return vec![if finalizers.contains(&CATALOG_FINALIZER) {
            cause.remedy(CHECK_CONTROLLER)
        } else {
            cause
        }];
    }
    if is_switched_off(catalog) {
        return vec![Cause::new("its spec.availabilityMode is Unavailable").remedy(format!(
            "switch it on: kubectl patch clustercatalog {name} --type merge -p '{{\"spec\":{{\"availabilityMode\":\"Available\"}}}}'"
        ))];
    }
    let Some(progressing) = ReportedCondition::of(catalog, "Progressing") else {
        return vec![Cause::new("no controller has reconciled it yet").remedy(CHECK_CONTROLLER)];
    };
    let image = catalog.str(&["spec", "source", "image", "ref"]).unwrap_or_default();
    let edit = format!("correct spec.source.image.ref: kubectl edit clustercatalog {name}");
    match (progressing.status, progressing.reason) {
        _ if !progressing.is_current => vec![
            Cause::new("no controller has reported on the present spec").remedy(CHECK_CONTROLLER),
        ],
        ("True", "Succeeded") if catalog.condition("Serving") == Some("True") => Vec::new(),
        ("True", "Succeeded") => {
            let message = ReportedCondition::of(catalog, "Serving").map(|serving| serving.message);
            let message = message.filter(|message| !message.is_empty());
            vec![
                Cause::new(message.unwrap_or("its content is stored, and no server has it yet"))
                    .remedy(CHECK_CONTROLLER),
            ]
        }
        ("True", _) => {
            let cause =
                Cause::new("its content cannot be loaded").because(Cause::new(progressing.message));
            let cause = if image.is_empty() {
                cause
            } else {
                cause.remedy(format!(
                    "check that the image can be pulled and holds a catalog: mainstay image inspect {image}"
                ))
            };
            vec![
                cause
                    .remedy(format!("see its events: kubectl describe clustercatalog {name}"))
                    .remedy(edit),
            ]
        }
        _ => vec![
            Cause::new("its source cannot be used")
                .because(Cause::new(progressing.message))
                .remedy(edit),
        ],
    }
}

const CHECK_CONTROLLER: &str =
    "check that a controller of ClusterCatalogs runs, such as `mainstay run`";

/// A cause for a catalog that others depend on.
pub(super) fn dependent_cause(catalog: &Object) -> Option<Cause> {
    let causes = causes(catalog);
    (!causes.is_empty()).then(|| {
        Cause::new(format!("ClusterCatalog {} does not serve its newest content", catalog.name()))
            .because_all(causes)
    })
}
