//! Recorded costs of opm 1.73 on another machine.
//!
//! Absolute times of another machine are not comparable. The comparable figures are the multiple of
//! libyaml's time for the same bytes, and the memory.

/// A command and its recorded cost.
pub(super) struct Work {
    /// The displayed name.
    pub(super) name: &'static str,
    /// The arguments of `opm`; `{}` is the catalog, `{out}` a new folder.
    pub(super) arguments: &'static [&'static str],
    /// Processor time as a multiple of libyaml's: certified catalog, community catalog.
    pub(super) ratio: [f64; 2],
    /// Peak memory in MB: certified catalog, community catalog.
    pub(super) memory: [u32; 2],
}

/// The published catalogs: archive and folder in it.
pub(super) const CATALOGS: [(&str, &str); 2] =
    [("catalog-certified-v4.14", "v4.14"), ("catalog-community-v4.19", "v4.19")];

/// Commands over a catalog.
pub(super) const WORK: &[Work] = &[
    Work {
        name: "validate",
        arguments: &["validate", "{}"],
        ratio: [18.7, 3.2],
        memory: [341, 110],
    },
    Work {
        name: "render -o json",
        arguments: &["render", "{}", "-o", "json"],
        ratio: [15.8, 2.6],
        memory: [268, 89],
    },
    Work {
        name: "render -o yaml",
        arguments: &["render", "{}", "-o", "yaml"],
        ratio: [19.9, 4.5],
        memory: [288, 97],
    },
    Work {
        name: "render --migrate",
        arguments: &["render", "{}", "--migrate", "-o", "json"],
        ratio: [15.5, 2.7],
        memory: [263, 86],
    },
    Work {
        name: "migrate -o yaml",
        arguments: &[
            "migrate",
            "{}",
            "{out}",
            "--migrate-level",
            "bundle-object-to-csv-metadata",
            "-o",
            "yaml",
        ],
        ratio: [16.5, 4.7],
        memory: [274, 100],
    },
    Work {
        name: "alpha list packages",
        arguments: &["alpha", "list", "packages", "{}"],
        ratio: [18.6, 3.2],
        memory: [337, 113],
    },
    Work {
        name: "alpha list channels",
        arguments: &["alpha", "list", "channels", "{}"],
        ratio: [18.7, 3.3],
        memory: [339, 113],
    },
    Work {
        name: "alpha list bundles",
        arguments: &["alpha", "list", "bundles", "{}"],
        ratio: [19.1, 3.5],
        memory: [342, 114],
    },
];

/// Validation of the large catalog as one JSON file: processor time as a multiple of Python's JSON
/// decoder, and peak memory in MB.
pub(super) const FOURFOLD: (f64, u32) = (36.0, 1240);

/// Rendering of bundle folders: milliseconds of processor time per MB of input.
pub(super) const BUNDLES: f64 = 87.0;
