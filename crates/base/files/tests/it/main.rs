//! Attacks of other users of the machine: links, FIFOs, and folders of other users.
#![expect(clippy::expect_used, reason = "tests stop at the first surprise")]

use mainstay_files::{
    AtomicFile, Durability, FileIdentity, PrivateFolder, claim_data_folder, claim_private_folder,
    is_private_folder, open, open_lock, open_log, read, read_text, replace, resolve_named_file,
};
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::process::Command;

/// A user id that no test runs as.
const OTHER_USER: u32 = 12_345;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it is there").mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode can be set");
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo runs").success());
}

/// Changes the owner of a name, not of the target of a link, to another user. Without the permission,
/// returns false and prints that the check is skipped.
fn change_owner(path: &Path) -> bool {
    let changed = std::os::unix::fs::lchown(path, Some(OTHER_USER), None).is_ok();
    if !changed {
        #[expect(clippy::print_stderr, reason = "a skipped check is reported")]
        {
            eprintln!("skipped: only root can make files of another user");
        }
    }
    changed
}

#[test]
fn private_folder_has_a_random_name_and_is_closed_and_removed_on_drop() {
    let parent = tempfile::tempdir().expect("a folder");
    set_mode(parent.path(), 0o1777);
    let one = PrivateFolder::create_in(parent.path(), "x-").expect("made");
    let two = PrivateFolder::create_in(parent.path(), "x-").expect("made");
    assert_ne!(one.path(), two.path());
    let name = one.path().file_name().expect("a name").to_string_lossy().into_owned();
    assert_eq!(name.len(), "x-".len() + 32, "{name}");
    assert_eq!(mode(one.path()), 0o700);
    assert!(is_private_folder(one.path()));
    let path = one.path().to_owned();
    fs::write(path.join("file"), "a").expect("written");
    drop(one);
    assert!(!path.exists() && two.path().exists());
}

#[test]
fn only_a_closed_folder_of_the_own_user_is_private() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("runtime");
    fs::create_dir(&folder).expect("made");
    for (wanted, with) in [(true, 0o700), (false, 0o750), (false, 0o701), (false, 0o1777)] {
        set_mode(&folder, with);
        assert_eq!(is_private_folder(&folder), wanted, "{with:o}");
    }
    set_mode(&folder, 0o700);
    let link = parent.path().join("link");
    symlink(&folder, &link).expect("linked");
    assert!(!is_private_folder(&link));
    if change_owner(&folder) {
        assert!(!is_private_folder(&folder));
    }
}

#[test]
fn replace_writes_a_closed_file_and_does_not_follow_a_link() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, victim) = (folder.path().join("file"), folder.path().join("victim"));
    fs::write(&victim, "kept").expect("written");
    symlink(&victim, &file).expect("linked");
    replace(&file, b"new", Durability::PowerCut).expect("replaced");
    assert_eq!(fs::read_to_string(&victim).expect("there"), "kept");
    assert!(!file.is_symlink());
    assert_eq!((fs::read(&file).expect("there").as_slice(), mode(&file)), (&b"new"[..], 0o600));
    // A FIFO of that name does not block.
    fs::remove_file(&file).expect("removed");
    fifo(&file);
    replace(&file, b"again", Durability::Process).expect("replaced");
    assert_eq!(fs::read_to_string(&file).expect("there"), "again");
    // An unpublished file is removed.
    let mut unpublished = AtomicFile::create(&file).expect("begun");
    unpublished.write_all(b"half").expect("written");
    drop(unpublished);
    let names = fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!((names, fs::read_to_string(&file).expect("there")), (2, "again".to_owned()));
}

#[test]
fn only_regular_files_are_opened_and_open_never_blocks() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "12345").expect("written");
    symlink(at("file"), at("link")).expect("linked");
    fifo(&at("fifo"));
    fs::create_dir(at("folder")).expect("made");
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).expect("bound");
    assert_eq!(read_text(&at("file"), 5).expect("read"), "12345");
    assert!(read(&at("file"), 4).expect_err("too long").to_string().contains("longer than 4"));
    for (name, wanted) in
        [("link", "a link"), ("fifo", "a FIFO"), ("socket", "a socket"), ("folder", "directory")]
    {
        let error = open(&at(name)).expect_err("refused").to_string();
        assert!(error.contains(wanted), "{name}: {error}");
    }
    assert!(open(Path::new("/dev/zero")).expect_err("refused").to_string().contains("a device"));
    assert_eq!(open(&at("none")).expect_err("not there").kind(), ErrorKind::NotFound);
}

#[test]
fn lock_must_be_a_regular_file_of_the_own_user() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    open_lock(&at("lock")).expect("made");
    open_lock(&at("lock")).expect("opened again");
    assert_eq!(mode(&at("lock")), 0o600);
    symlink(at("elsewhere"), at("link")).expect("linked");
    fifo(&at("fifo"));
    open_lock(&at("link")).expect_err("a link is refused");
    open_lock(&at("fifo")).expect_err("a FIFO is refused");
    assert!(!at("elsewhere").exists());
    if change_owner(&at("lock")) {
        let error = open_lock(&at("lock")).expect_err("refused").to_string();
        assert!(error.contains("another user (12345)"), "{error}");
    }
}

#[test]
fn log_can_be_a_file_or_a_device_or_a_pipe_with_a_reader() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    assert!(open_log(&at("log")).expect("made").1);
    symlink(at("log"), at("link")).expect("linked");
    assert!(open_log(&at("link")).expect("followed").1);
    assert!(!open_log(Path::new("/dev/null")).expect("a device").1);
    fifo(&at("fifo"));
    let error = open_log(&at("fifo")).expect_err("nobody reads").to_string();
    assert!(error.contains("nobody reads"), "{error}");
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
    let _reader = rustix::fs::open(at("fifo"), flags, rustix::fs::Mode::empty()).expect("read");
    assert!(!open_log(&at("fifo")).expect("somebody reads").1);
}

#[test]
fn link_is_followed_only_where_no_other_user_can_have_made_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("config"), "a").expect("written");
    symlink("config", at("link")).expect("linked");
    symlink(at("link"), at("second")).expect("linked");
    assert_eq!(resolve_named_file(&at("second")).expect("followed"), at("config"));
    assert_eq!(resolve_named_file(&at("new")).expect("not there yet"), at("new"));
    // A link of the own user in a shared folder.
    set_mode(folder.path(), 0o1777);
    assert_eq!(resolve_named_file(&at("second")).expect("followed"), at("config"));
    symlink("loop", at("loop")).expect("linked");
    resolve_named_file(&at("loop")).expect_err("a loop has no end");
    fifo(&at("fifo"));
    assert!(resolve_named_file(&at("fifo")).expect_err("refused").to_string().contains("a FIFO"));
    if !change_owner(&at("link")) {
        return;
    }
    let error = resolve_named_file(&at("second")).expect_err("refused").to_string();
    assert!(error.contains("another user (12345)"), "{error}");
    set_mode(folder.path(), 0o755);
    assert_eq!(resolve_named_file(&at("second")).expect("nobody else can write"), at("config"));
    // A file of another user in a shared folder.
    set_mode(folder.path(), 0o1777);
    chown(at("config"), Some(OTHER_USER), None).expect("given away");
    resolve_named_file(&at("config")).expect_err("refused");
}

#[test]
fn claimed_private_folder_must_belong_to_the_own_user_and_be_no_link() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("open")).expect("made");
    set_mode(&at("open"), 0o755);
    for name in ["open", "new"] {
        claim_private_folder(&at(name)).expect("claimed");
        assert_eq!(mode(&at(name)), 0o700);
    }
    symlink(at("open"), at("link")).expect("linked");
    assert!(claim_private_folder(&at("link")).expect_err("refused").to_string().contains("a link"));
    fs::write(at("file"), "").expect("written");
    claim_private_folder(&at("file")).expect_err("a file is no folder");
    if change_owner(&at("open")) {
        let error = claim_private_folder(&at("open")).expect_err("refused").to_string();
        assert!(error.contains("another user (12345)"), "{error}");
    }
}

#[test]
fn claimed_data_folder_is_writable_only_for_its_owner_and_group() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    assert_eq!(claim_data_folder(&at("deep/new")).expect("made"), None);
    assert_eq!((mode(&at("deep/new")), mode(&at("deep"))), (0o700, 0o700));
    // The group may write; others may not.
    fs::create_dir(at("open")).expect("made");
    set_mode(&at("open"), 0o777);
    assert_eq!(claim_data_folder(&at("open")).expect("closed"), None);
    assert_eq!(mode(&at("open")), 0o775);
    fs::create_dir(at("shared")).expect("made");
    set_mode(&at("shared"), 0o1777);
    assert!(
        claim_data_folder(&at("shared")).expect_err("refused").to_string().contains("everybody")
    );
    assert_eq!(mode(&at("shared")), 0o1777, "a shared folder stays as it is");
    assert_eq!(claim_data_folder(&at("shared/mine")).expect("nobody else can exchange it"), None);
    set_mode(&at("deep"), 0o777);
    let warning = claim_data_folder(&at("deep/new")).expect("taken").expect("a warning");
    assert!(warning.contains("everybody may write to"), "{warning}");
    fs::write(at("file"), "").expect("written");
    claim_data_folder(&at("file")).expect_err("a file is no folder");
    if change_owner(&at("open")) {
        let error = claim_data_folder(&at("open")).expect_err("refused").to_string();
        assert!(error.contains("another user (12345)"), "{error}");
        fs::create_dir(at("open/inner")).expect("made");
        let warning = claim_data_folder(&at("open/inner")).expect("taken").expect("a warning");
        assert!(warning.contains("another user (12345)"), "{warning}");
    }
}

#[test]
fn identity_check_notices_a_removed_or_replaced_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("lock");
    let file = open_lock(&path).expect("made");
    let identity = FileIdentity::new(&file, &path).expect("identified");
    identity.check().expect("it is there");
    let other = folder.path().join("other");
    fs::write(&other, "").expect("written");
    fs::rename(&other, &path).expect("renamed");
    assert!(identity.check().expect_err("replaced").to_string().contains("another file"));
    fs::remove_file(&path).expect("removed");
    assert!(identity.check().expect_err("removed").to_string().contains("removed"));
}
