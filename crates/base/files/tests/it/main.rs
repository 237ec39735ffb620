//! What other users of a machine can put in the way, and what becomes of it.
#![expect(clippy::expect_used, reason = "tests stop at the first surprise")]

use mainstay_files::{
    Draft, Durability, Held, PrivateFolder, claim_data, claim_inner, is_private, named_target,
    open, open_lock, open_log, read, read_text, replace,
};
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::process::Command;

/// A user that no test is.
const STRANGER: u32 = 12_345;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it is there").mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode can be set");
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo runs").success());
}

/// Gives a name, not what a link leads to, to a stranger; false, said visibly, for who may not.
fn give_away(path: &Path) -> bool {
    let given = std::os::unix::fs::lchown(path, Some(STRANGER), None).is_ok();
    if !given {
        #[expect(clippy::print_stderr, reason = "a test that is left out says so")]
        {
            eprintln!("skipped: only root can make files of another user");
        }
    }
    given
}

#[test]
fn private_folder_has_a_random_name_and_is_closed_and_goes() {
    let parent = tempfile::tempdir().expect("a folder");
    set_mode(parent.path(), 0o1777);
    let one = PrivateFolder::make_in(parent.path(), "x-").expect("made");
    let two = PrivateFolder::make_in(parent.path(), "x-").expect("made");
    assert_ne!(one.path(), two.path());
    let name = one.path().file_name().expect("a name").to_string_lossy().into_owned();
    assert_eq!(name.len(), "x-".len() + 32, "{name}");
    assert_eq!(mode(one.path()), 0o700);
    assert!(is_private(one.path()));
    let path = one.path().to_owned();
    fs::write(path.join("file"), "a").expect("written");
    drop(one);
    assert!(!path.exists() && two.path().exists());
}

#[test]
fn only_a_closed_folder_of_our_own_is_private() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("runtime");
    fs::create_dir(&folder).expect("made");
    for (wanted, with) in [(true, 0o700), (false, 0o750), (false, 0o701), (false, 0o1777)] {
        set_mode(&folder, with);
        assert_eq!(is_private(&folder), wanted, "{with:o}");
    }
    set_mode(&folder, 0o700);
    let link = parent.path().join("link");
    symlink(&folder, &link).expect("linked");
    assert!(!is_private(&link));
    if give_away(&folder) {
        assert!(!is_private(&folder));
    }
}

#[test]
fn replaced_file_is_whole_and_closed_and_a_link_is_not_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, victim) = (folder.path().join("file"), folder.path().join("victim"));
    fs::write(&victim, "kept").expect("written");
    symlink(&victim, &file).expect("linked");
    replace(&file, b"new", Durability::PowerCut).expect("replaced");
    assert_eq!(fs::read_to_string(&victim).expect("there"), "kept");
    assert!(!file.is_symlink());
    assert_eq!((fs::read(&file).expect("there").as_slice(), mode(&file)), (&b"new"[..], 0o600));
    // A FIFO of that name is not waited for.
    fs::remove_file(&file).expect("removed");
    fifo(&file);
    replace(&file, b"again", Durability::Process).expect("replaced");
    assert_eq!(fs::read_to_string(&file).expect("there"), "again");
    // What is not published leaves nothing behind.
    let mut draft = Draft::begin(&file).expect("begun");
    draft.write_all(b"half").expect("written");
    drop(draft);
    let names = fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!((names, fs::read_to_string(&file).expect("there")), (2, "again".to_owned()));
}

#[test]
fn only_regular_files_are_read_and_nothing_is_waited_for() {
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
fn lock_is_a_regular_file_of_our_own() {
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
    if give_away(&at("lock")) {
        let error = open_lock(&at("lock")).expect_err("refused").to_string();
        assert!(error.contains("another user (12345)"), "{error}");
    }
}

#[test]
fn log_is_a_file_or_a_device_or_a_pipe_that_is_read() {
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
fn link_is_followed_where_nobody_else_can_have_made_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("config"), "a").expect("written");
    symlink("config", at("link")).expect("linked");
    symlink(at("link"), at("second")).expect("linked");
    assert_eq!(named_target(&at("second")).expect("followed"), at("config"));
    assert_eq!(named_target(&at("new")).expect("not there yet"), at("new"));
    // Our own link in a shared folder.
    set_mode(folder.path(), 0o1777);
    assert_eq!(named_target(&at("second")).expect("followed"), at("config"));
    symlink("loop", at("loop")).expect("linked");
    named_target(&at("loop")).expect_err("a loop has no end");
    fifo(&at("fifo"));
    assert!(named_target(&at("fifo")).expect_err("refused").to_string().contains("a FIFO"));
    if !give_away(&at("link")) {
        return;
    }
    let error = named_target(&at("second")).expect_err("refused").to_string();
    assert!(error.contains("another user (12345)"), "{error}");
    set_mode(folder.path(), 0o755);
    assert_eq!(named_target(&at("second")).expect("nobody else can write"), at("config"));
    // A stranger's file that waits in a shared folder.
    set_mode(folder.path(), 0o1777);
    chown(at("config"), Some(STRANGER), None).expect("given away");
    named_target(&at("config")).expect_err("refused");
}

#[test]
fn inner_folder_is_a_real_one_of_our_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("open")).expect("made");
    set_mode(&at("open"), 0o755);
    for name in ["open", "new"] {
        claim_inner(&at(name)).expect("claimed");
        assert_eq!(mode(&at(name)), 0o700);
    }
    symlink(at("open"), at("link")).expect("linked");
    assert!(claim_inner(&at("link")).expect_err("refused").to_string().contains("a link"));
    fs::write(at("file"), "").expect("written");
    claim_inner(&at("file")).expect_err("a file is no folder");
    if give_away(&at("open")) {
        let error = claim_inner(&at("open")).expect_err("refused").to_string();
        assert!(error.contains("another user (12345)"), "{error}");
    }
}

#[test]
fn data_folder_is_ours_and_nobody_else_writes_to_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    assert_eq!(claim_data(&at("deep/new")).expect("made"), None);
    assert_eq!((mode(&at("deep/new")), mode(&at("deep"))), (0o700, 0o700));
    // A group may share it; everybody may not.
    fs::create_dir(at("open")).expect("made");
    set_mode(&at("open"), 0o777);
    assert_eq!(claim_data(&at("open")).expect("closed"), None);
    assert_eq!(mode(&at("open")), 0o775);
    fs::create_dir(at("shared")).expect("made");
    set_mode(&at("shared"), 0o1777);
    assert!(claim_data(&at("shared")).expect_err("refused").to_string().contains("everybody"));
    assert_eq!(mode(&at("shared")), 0o1777, "a shared folder stays as it is");
    assert_eq!(claim_data(&at("shared/mine")).expect("nobody else can exchange it"), None);
    set_mode(&at("deep"), 0o777);
    let warning = claim_data(&at("deep/new")).expect("taken").expect("a warning");
    assert!(warning.contains("everybody may write to"), "{warning}");
    fs::write(at("file"), "").expect("written");
    claim_data(&at("file")).expect_err("a file is no folder");
    if give_away(&at("open")) {
        let error = claim_data(&at("open")).expect_err("refused").to_string();
        assert!(error.contains("another user (12345)"), "{error}");
        fs::create_dir(at("open/inner")).expect("made");
        let warning = claim_data(&at("open/inner")).expect("taken").expect("a warning");
        assert!(warning.contains("another user (12345)"), "{warning}");
    }
}

#[test]
fn held_file_that_is_removed_or_replaced_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("lock");
    let file = open_lock(&path).expect("made");
    let held = Held::new(&file, &path).expect("held");
    held.check().expect("it is there");
    let other = folder.path().join("other");
    fs::write(&other, "").expect("written");
    fs::rename(&other, &path).expect("renamed");
    assert!(held.check().expect_err("replaced").to_string().contains("another file"));
    fs::remove_file(&path).expect("removed");
    assert!(held.check().expect_err("removed").to_string().contains("removed"));
}
