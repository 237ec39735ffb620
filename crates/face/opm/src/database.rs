//! Databases of indexes, where a catalog may be given.

use super::call::Io;
use super::voice::{self, Level};
use mainstay_catalog::Declared;
use std::path::Path;

const DEPRECATED: &str = "catalogs in databases are deprecated and only read; \
    make a file-based catalog of this one with `opm migrate`";

/// What a database declares.
///
/// # Errors
/// Why it is no catalog, in upstream's words where it has some.
pub(super) fn read(io: &mut Io<'_>, path: &Path) -> Result<Declared, String> {
    voice::log(io, Level::Warning, DEPRECATED, &[]);
    if !path.is_file() {
        return Err("unable to open database file: no such file or directory".to_owned());
    }
    mainstay_database::read(path).map_err(|error| {
        let (ours, upstream) = (error.to_string(), error.upstream());
        // Upstream's words do not always say what is the matter.
        if !ours.contains(&upstream) {
            voice::log(io, Level::Warning, &ours, &[]);
        }
        upstream
    })
}
