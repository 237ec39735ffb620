//! Sample catalog, embedded in the binary.

use mainstay_cause::{Cause, FileLocation};
use std::path::Path;

/// Folder and content of each package's file; `cargo xtask sample` writes them.
const FILES: [(&str, &str); 4] = [
    ("ferry-operator", include_str!("../sample/ferry-operator/catalog.yaml")),
    ("lighthouse-operator", include_str!("../sample/lighthouse-operator/catalog.yaml")),
    ("samovar-operator", include_str!("../sample/samovar-operator/catalog.yaml")),
    ("teapot-operator", include_str!("../sample/teapot-operator/catalog.yaml")),
];

/// Writes the sample catalog into a folder that exists.
pub(crate) fn write(folder: &Path) -> Result<(), Cause> {
    for (package, text) in FILES {
        let folder = folder.join(package);
        let file = folder.join("catalog.yaml");
        std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&file, text)).map_err(
            |error| {
                Cause::new("the sample catalog cannot be written")
                    .at(FileLocation::file(&file))
                    .because(Cause::new(mainstay_gocompat::io_error_text(&error)))
            },
        )?;
    }
    Ok(())
}
