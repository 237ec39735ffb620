use super::leaf::SERVING_NAMES;
use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

fn clock() -> Clock {
    Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap())
}

fn later(years: i64) -> Clock {
    Clock::starting_at(clock().now() + jiff::SignedDuration::from_hours(24 * 365 * years))
}

#[tokio::test]
async fn folder_keeps_the_keys_and_only_its_owner_may_read_them() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("a/pki");
    let first = Pki::load_or_create(&keys, &clock(), &[]).unwrap();
    let second = Pki::load_or_create(&keys, &clock(), &[]).unwrap();
    assert_eq!(first.kubeconfig("https://x", "m"), second.kubeconfig("https://x", "m"));
    assert_eq!(first.token_key_pkcs8(), second.token_key_pkcs8());
    assert_eq!(first.serving.certificate, second.serving.certificate);
    assert_eq!(fs::metadata(&keys).unwrap().permissions().mode() & 0o777, 0o700);
    let mut names = Vec::new();
    for entry in fs::read_dir(&keys).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(
        names,
        ["admin.crt", "admin.key", "apiserver.crt", "apiserver.key", "ca.crt", "ca.key", "sa.key"]
    );
}

#[tokio::test]
async fn leaf_certificates_are_renewed_before_they_expire_and_the_ca_key_stays() {
    let folder = tempfile::tempdir().unwrap();
    let first = Pki::load_or_create(folder.path(), &clock(), &[]).unwrap();
    let second = Pki::load_or_create(folder.path(), &later(1), &[]).unwrap();
    assert_eq!(first.authority_pem(), second.authority_pem());
    assert_ne!(first.admin.certificate, second.admin.certificate);
    let third = Pki::load_or_create(folder.path(), &later(10), &[]).unwrap();
    assert_ne!(second.authority_pem(), third.authority_pem());
    assert_eq!(second.authority.key.serialize_der(), third.authority.key.serialize_der());
}

#[tokio::test]
async fn imported_ca_replaces_the_one_that_is_there_and_signs_new_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let shared = Pki::ephemeral(&clock(), &[]).unwrap();
    let own = Pki::load_or_create(folder.path(), &clock(), &[]).unwrap();
    let import = || {
        let (certificate, key) = (shared.authority_pem(), shared.authority_key_pem());
        Pki::import_authority(folder.path(), certificate, &key).unwrap()
    };
    assert!(import(), "the folder changes");
    let imported = Pki::load_or_create(folder.path(), &clock(), &[]).unwrap();
    assert_eq!(imported.authority_pem(), shared.authority_pem());
    assert_ne!(imported.serving.certificate, own.serving.certificate);
    assert!(!import(), "nothing changes");
}

#[tokio::test]
async fn new_name_or_damage_makes_a_new_serving_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let load = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Pki::load_or_create(folder.path(), &clock(), &names).unwrap()
    };
    let first = load(&["0.0.0.0"]);
    let names = alternative_names(&parse(&first.serving.certificate).unwrap());
    assert_eq!(names, SERVING_NAMES);
    let second = load(&["10.1.2.3", "host.example", "0:0::1"]);
    let names = alternative_names(&parse(&second.serving.certificate).unwrap());
    assert_eq!(names[SERVING_NAMES.len()..], ["10.1.2.3", "host.example"]);
    assert_eq!(load(&["10.1.2.3"]).serving.certificate, second.serving.certificate);
    fs::write(folder.path().join("apiserver.crt"), "junk").unwrap();
    assert_ne!(load(&[]).serving.certificate, second.serving.certificate);
    assert!(matches!(
        Pki::ephemeral(&clock(), &["ä".to_owned()]),
        Err(PkiError::ServingName { .. })
    ));
}

#[tokio::test]
async fn damage_to_permanent_keys_names_the_file_and_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let load_damaged = |name: &str, content: Option<&[u8]>| {
        let path = folder.path().join(name);
        let original = fs::read(&path).unwrap();
        match content {
            Some(content) => fs::write(&path, content).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let error = Pki::load_or_create(folder.path(), &clock(), &[]).unwrap_err().to_string();
        fs::write(&path, original).unwrap();
        assert!(error.contains(path.to_str().unwrap()), "{error}");
        assert!(error.contains("from a backup"), "{error}");
        error
    };
    Pki::load_or_create(folder.path(), &clock(), &[]).unwrap();
    let other = Pki::ephemeral(&clock(), &[]).unwrap();
    assert!(load_damaged("ca.key", None).contains("missing"));
    load_damaged("ca.key", Some(b"\xff\xfe"));
    load_damaged("sa.key", Some(b""));
    assert!(load_damaged("ca.crt", Some(b"x")).contains("no PEM certificate"));
    assert!(
        load_damaged("ca.crt", Some(other.authority_pem().as_bytes()))
            .contains("belongs to another key")
    );
    fs::remove_file(folder.path().join("ca.crt")).unwrap();
    Pki::load_or_create(folder.path(), &clock(), &[]).unwrap();
}

#[tokio::test]
async fn kubeconfig_is_readable_by_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    fs::write(&file, "old").unwrap();
    let pki = Pki::ephemeral(&clock(), &[]).unwrap();
    pki.write_kubeconfig(&file, "https://127.0.0.1:6443", "mainstay").unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&file).unwrap();
    let shape: Vec<&str> =
        text.lines().map(|line| line.split_once("-data: ").map_or(line, |(key, _)| key)).collect();
    insta::assert_snapshot!(shape.join("\n"), @r"
    apiVersion: v1
    kind: Config
    clusters:
    - name: mainstay
      cluster:
        certificate-authority
        server: https://127.0.0.1:6443
    users:
    - name: mainstay-admin
      user:
        client-certificate
        client-key
    contexts:
    - name: mainstay
      context:
        cluster: mainstay
        user: mainstay-admin
    current-context: mainstay
    ");
    let missing_folder = folder.path().join("no/such/config");
    let error = pki.write_kubeconfig(&missing_folder, "", "m").unwrap_err().to_string();
    assert!(error.contains("no/such/config"), "{error}");
}

#[tokio::test]
async fn renamed_token_key_is_accepted_and_a_new_one_signs() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let first = Pki::load_or_create(folder.path(), &clock(), &[]).unwrap();
    fs::rename(path("sa.key"), path("sa-2026.key")).unwrap();
    let second = Pki::load_or_create(folder.path(), &clock(), &[]).unwrap();
    assert_ne!(first.token_key_pkcs8(), second.token_key_pkcs8());
    assert_eq!(second.older_token_keys, [first.token_key_pkcs8().to_vec()]);
    fs::remove_file(path("sa-2026.key")).unwrap();
    let third = Pki::load_or_create(folder.path(), &clock(), &[]).unwrap();
    assert_eq!(third.token_key_pkcs8(), second.token_key_pkcs8());
    assert!(third.older_token_keys.is_empty());
    fs::write(path("sa-x.key"), "junk").unwrap();
    let error = Pki::load_or_create(folder.path(), &clock(), &[]).unwrap_err().to_string();
    assert!(error.contains("sa-x.key is damaged"), "{error}");
}

#[tokio::test]
async fn ca_certificate_with_a_damaged_end_marker_is_an_error_before_clients_get_it() {
    let folder = tempfile::tempdir().unwrap();
    Pki::load_or_create(folder.path(), &clock(), &[]).unwrap();
    let file = folder.path().join("ca.crt");
    let whole = fs::read_to_string(&file).unwrap();
    let end = whole.rfind("-----END").unwrap();
    for damaged in [&whole[..end], &whole[..end + 12], &whole.replace("-----END", "-----\0ND")] {
        fs::write(&file, damaged).unwrap();
        let error = Pki::load_or_create(folder.path(), &clock(), &[]).unwrap_err().to_string();
        assert!(error.contains("ca.crt is damaged"), "{error}");
    }
}
