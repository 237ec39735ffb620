//! Extension resolutions as JSON.

use mainstay_explain::ExtensionResolution;
use mainstay_resolver::extension::{CatalogCounts, CatalogEvaluation, CatalogResult, Dependency};
use serde_json::{Value, json};

/// A resolution: the choice or the failure, and what each filter left.
pub fn value(resolution: &ExtensionResolution) -> Value {
    let considered = resolution.considered();
    let counts = CatalogCounts::of(considered);
    let catalogs = considered.iter().map(|result| catalog_value(resolution, result));
    let mut value = json!({
        "conclusive": resolution.is_conclusive(),
        "chosen": null,
        "counts": {
            "catalogs": counts.all,
            "selected": counts.selected,
            "available": counts.available,
            "readable": counts.readable,
            "withPackage": counts.with_package,
            "withBundle": counts.with_bundle,
            "afterDeprecations": counts.not_deprecated,
            "ofHighestPriority": counts.of_top_priority,
        },
        "catalogs": catalogs.collect::<Vec<_>>(),
    });
    match &resolution.result {
        Ok(choice) => {
            value["chosen"] = json!({
                "catalog": choice.catalog,
                "bundle": choice.bundle,
                "version": choice.version.to_string(),
                "image": choice.image,
                "dependencies": texts(&choice.dependencies),
            });
            if let Some(unmet) = resolution.dependencies.unmet() {
                let unmet: Vec<&Dependency> = unmet.unmet.iter().map(|(one, _)| one).collect();
                value["unsatisfied"] = texts(unmet);
            }
        }
        Err(failure) => value["error"] = json!(failure.message),
    }
    value
}

/// Dependencies as texts.
fn texts<'d>(dependencies: impl IntoIterator<Item = &'d Dependency>) -> Value {
    dependencies.into_iter().map(ToString::to_string).collect()
}

fn catalog_value(resolution: &ExtensionResolution, result: &CatalogResult) -> Value {
    let (state, why) = match &result.state {
        CatalogEvaluation::NotSelected => ("notSelected", None),
        CatalogEvaluation::Unavailable => ("unavailable", None),
        CatalogEvaluation::Unreadable(_) if resolution.is_unread(&result.catalog) => {
            let unread = resolution.unread.iter().find(|(name, _)| *name == result.catalog);
            ("unread", unread.map(|(_, why)| why.to_string()))
        }
        CatalogEvaluation::Unreadable(why) => ("unreadable", Some(why.clone())),
        CatalogEvaluation::Absent => ("withoutPackage", None),
        CatalogEvaluation::Evaluated(_) => ("evaluated", None),
    };
    let mut value = json!({
        "name": result.catalog,
        "priority": result.priority,
        "state": state,
    });
    if let Some(why) = why {
        value["why"] = json!(why);
    }
    if let Some(counts) = result.bundle_counts() {
        value["counts"] = json!({
            "bundles": counts.all,
            "inChannels": counts.in_channels,
            "inVersion": counts.in_range,
            "successors": counts.successors,
            "notDeprecated": counts.not_deprecated,
        });
        value["best"] = json!(result.best().map(|best| &best.bundle));
    }
    value
}
