//! Filter counts: how many catalogs and bundles each filter of a resolution leaves.

use super::pick::{CatalogEvaluation, CatalogResult};

/// The number of bundles of a catalog behind each filter. The filters follow one another, so no number is
/// greater than the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BundleCounts {
    /// All bundles of the package.
    pub all: usize,
    /// Those in the requested channels.
    pub in_channels: usize,
    /// Of these, those with a version in the requested range.
    pub in_range: usize,
    /// Of these, the installed bundle and its direct successors.
    pub successors: usize,
    /// Of these, those that the catalog does not deprecate.
    pub not_deprecated: usize,
}

/// The number of catalogs behind each filter. The filters follow one another, so no number is greater than
/// the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CatalogCounts {
    /// All catalogs.
    pub all: usize,
    /// Those that the selector selects.
    pub selected: usize,
    /// Of these, those that are not switched off.
    pub available: usize,
    /// Of these, those whose content can be read.
    pub readable: usize,
    /// Of these, those that have the package.
    pub with_package: usize,
    /// Of these, those with a bundle that fits.
    pub with_bundle: usize,
    /// Of these, those whose best bundle is not deprecated; if all are deprecated, all of them.
    pub not_deprecated: usize,
    /// Of these, those with the highest priority.
    pub of_top_priority: usize,
}

impl CatalogResult {
    /// Counts the bundles behind each filter; none if the catalog was not evaluated.
    pub fn bundle_counts(&self) -> Option<BundleCounts> {
        let CatalogEvaluation::Evaluated(bundle_matches) = &self.state else { return None };
        let mut counts = BundleCounts { all: bundle_matches.len(), ..BundleCounts::default() };
        for bundle_match in bundle_matches {
            let unmet = bundle_match.unmet;
            let passes = [!unmet.channel, !unmet.range, !unmet.successor, !bundle_match.deprecated];
            let passed = passes.iter().take_while(|passes| **passes).count();
            counts.in_channels += usize::from(passed > 0);
            counts.in_range += usize::from(passed > 1);
            counts.successors += usize::from(passed > 2);
            counts.not_deprecated += usize::from(passed > 3);
        }
        Some(counts)
    }
}

impl CatalogCounts {
    /// Counts the catalogs of a resolution.
    pub fn of(considered: &[CatalogResult]) -> Self {
        let mut counts = Self { all: considered.len(), ..Self::default() };
        let mut best = Vec::new();
        for result in considered {
            let passed = match &result.state {
                CatalogEvaluation::NotSelected => 0,
                CatalogEvaluation::Unavailable => 1,
                CatalogEvaluation::Unreadable(_) => 2,
                CatalogEvaluation::Absent => 3,
                CatalogEvaluation::Evaluated(_) => 4,
            };
            counts.selected += usize::from(passed > 0);
            counts.available += usize::from(passed > 1);
            counts.readable += usize::from(passed > 2);
            counts.with_package += usize::from(passed > 3);
            best.extend(result.best().map(|bundle| (bundle.deprecated, result.priority)));
        }
        counts.with_bundle = best.len();
        // Deprecation counts before priority.
        let all_deprecated = best.iter().all(|(deprecated, _)| *deprecated);
        best.retain(|(deprecated, _)| *deprecated == all_deprecated);
        counts.not_deprecated = best.len();
        let top = best.iter().map(|(_, priority)| *priority).max();
        counts.of_top_priority = best.iter().filter(|(_, priority)| Some(*priority) == top).count();
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension::{
        ExtensionRequest, InputCatalog, InputCatalogContent, InstalledExtensionBundle,
        read_package, resolve,
    };
    use serde_json::json;

    const DOCUMENTS: &str = r#"
        {"schema": "olm.package", "name": "tea"}
        {"schema": "olm.channel", "package": "tea", "name": "stable", "entries": [
            {"name": "tea.v1"}, {"name": "tea.v2", "replaces": "tea.v1"}, {"name": "tea.v3", "replaces": "tea.v2", "skips": ["tea.v1"]}]}
        {"schema": "olm.channel", "package": "tea", "name": "next", "entries": [{"name": "tea.v4"}]}
        {"schema": "olm.bundle", "package": "tea", "name": "tea.v1", "properties": [{"type": "olm.package", "value": {"version": "1.0.0"}}]}
        {"schema": "olm.bundle", "package": "tea", "name": "tea.v2", "properties": [{"type": "olm.package", "value": {"version": "2.0.0"}}]}
        {"schema": "olm.bundle", "package": "tea", "name": "tea.v3", "properties": [{"type": "olm.package", "value": {"version": "3.0.0"}}]}
        {"schema": "olm.bundle", "package": "tea", "name": "tea.v4", "properties": [{"type": "olm.package", "value": {"version": "4.0.0"}}]}
        {"schema": "olm.deprecations", "package": "tea", "entries": [{"reference": {"schema": "olm.bundle", "name": "tea.v2"}, "message": "old"}]}
    "#;

    #[test]
    fn each_filter_counts_the_bundles_that_the_filters_before_it_left() {
        let tea = read_package("tea", DOCUMENTS.as_bytes()).unwrap();
        let catalogs = [InputCatalog::new("shop", InputCatalogContent::Package(tea.as_ref()))];
        let mut request =
            ExtensionRequest { package: "tea".to_owned(), ..ExtensionRequest::default() };
        let installed = InstalledExtensionBundle {
            name: "tea.v1".to_owned(),
            version: "1.0.0".to_owned(),
            release: None,
        };
        for (channels, version, installed, expected) in [
            (&[] as &[&str], "", None, [4, 4, 4, 4, 3]),
            (&["stable"], "", None, [4, 3, 3, 3, 2]),
            (&["stable"], ">=2.0.0", None, [4, 3, 2, 2, 1]),
            (&["stable"], "", Some(&installed), [4, 3, 3, 3, 2]),
            (&[], ">=3.0.0", Some(&installed), [4, 4, 2, 1, 1]),
        ] {
            request.channels = channels.iter().map(|&channel| channel.to_owned()).collect();
            version.clone_into(&mut request.version);
            let choice = resolve(&request, installed, &catalogs).unwrap();
            let counts = choice.considered[0].bundle_counts().unwrap();
            let BundleCounts { all, in_channels, in_range, successors, not_deprecated } = counts;
            let found = [all, in_channels, in_range, successors, not_deprecated];
            // shows PATH-05
            assert_eq!(found, expected, "{channels:?} {version:?} {installed:?}");
        }
    }

    #[test]
    fn each_filter_counts_the_catalogs_that_the_filters_before_it_left() {
        let tea = read_package("tea", DOCUMENTS.as_bytes()).unwrap();
        let has_tea = || InputCatalogContent::Package(tea.as_ref());
        let labelled = |name: &str, content| {
            let labels = [("use".to_owned(), "yes".to_owned())].into();
            InputCatalog { labels, ..InputCatalog::new(name, content) }
        };
        let catalogs = [
            InputCatalog::new("other", has_tea()),
            InputCatalog { available: false, ..labelled("off", has_tea()) },
            InputCatalog { priority: -5, ..labelled("broken", InputCatalogContent::NotServed) },
            labelled("empty", InputCatalogContent::Package(None)),
            labelled("low", has_tea()),
            InputCatalog { priority: 1, ..labelled("high", has_tea()) },
        ];
        let request = ExtensionRequest {
            package: "tea".to_owned(),
            selector: Some(json!({"matchLabels": {"use": "yes"}})),
            ..ExtensionRequest::default()
        };
        let choice = resolve(&request, None, &catalogs).unwrap();
        assert_eq!(
            CatalogCounts::of(&choice.considered),
            CatalogCounts {
                all: 6,
                selected: 5,
                available: 4,
                readable: 3,
                with_package: 2,
                with_bundle: 2,
                not_deprecated: 2,
                of_top_priority: 1,
            }
        );
    }
}
