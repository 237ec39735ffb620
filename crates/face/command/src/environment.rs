//! Variables of the environment and the folders that they name. The command line is where the
//! environment is read.

use std::path::{Path, PathBuf};

#[expect(clippy::disallowed_methods, reason = "the command line is where the environment is read")]
fn environment(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// `$XDG_DATA_HOME/mainstay`, or `~/.local/share/mainstay`.
pub fn default_data_folder() -> Option<PathBuf> {
    let base = environment("XDG_DATA_HOME")
        .filter(|folder| folder.is_absolute())
        .or_else(|| environment("HOME").map(|home| home.join(".local/share")))?;
    Some(base.join("mainstay"))
}

/// A variable of the environment; `None` if it is unset or not UTF-8.
pub fn variable(name: &str) -> Option<String> {
    environment(name).and_then(|value| value.into_os_string().into_string().ok())
}

/// The image store: `$XDG_DATA_HOME/mainstay/images`, or `~/.local/share/mainstay/images`.
pub fn image_folder(variable: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let base = variable("XDG_DATA_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let home = || variable("HOME").map(|home| Path::new(&home).join(".local/share"));
    Some(base.or_else(home)?.join("mainstay/images"))
}

/// The folder for large temporary files: `$TMPDIR`, or `/var/tmp`, which is on disk where `/tmp` may be
/// in memory.
pub fn scratch_folder(variable: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    let folder = variable("TMPDIR").map(PathBuf::from);
    let folder =
        folder.or_else(|| Some(PathBuf::from("/var/tmp")).filter(|folder| folder.is_dir()));
    folder.unwrap_or_else(std::env::temp_dir)
}

/// The parent of private folders that live as long as the process: `$XDG_RUNTIME_DIR`, if only this
/// user can access it, or the folder for temporary files.
pub fn runtime_folder() -> PathBuf {
    environment("XDG_RUNTIME_DIR")
        .filter(|folder| folder.is_absolute() && mainstay_files::is_private_folder(folder))
        .unwrap_or_else(std::env::temp_dir)
}

/// The folder of published catalogs that `MAINSTAY_PUBLISHED` names.
pub fn published_catalogs() -> Option<PathBuf> {
    environment("MAINSTAY_PUBLISHED")
}

/// The default kubeconfig of `mainstay up`, if it exists.
pub fn own_kubeconfig() -> Option<PathBuf> {
    default_data_folder().map(|folder| folder.join("kubeconfig")).filter(|file| file.is_file())
}

/// The kubeconfig paths in `KUBECONFIG`.
pub fn kubeconfig_variable() -> Option<PathBuf> {
    environment("KUBECONFIG")
}

/// A variable of the environment that is UTF-8.
#[expect(clippy::disallowed_methods, reason = "the command line is where the environment is read")]
pub fn text_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whether colours are disabled (`NO_COLOR`, <https://no-color.org>) or the terminal cannot show them.
pub fn plain_terminal() -> bool {
    environment("NO_COLOR").is_some()
        || environment("TERM").is_some_and(|term| term == Path::new("dumb"))
}
