//! Problems of catalogs: each rule once, with message and place.

use crate::{SOUND, load};

/// The problems of a catalog in one file, one a line, without remedies.
fn problems(text: &str) -> String {
    match load(&[("c.yaml", text)]) {
        Ok(_) => String::new(),
        Err(error) => {
            assert!(error.problems.iter().all(|problem| !problem.remedy.is_empty()), "{error}");
            let lines: Vec<String> = error
                .problems
                .into_iter()
                .map(|problem| {
                    mainstay_catalog::CatalogProblem { remedy: "".into(), ..problem }.to_string()
                })
                .collect();
            lines.join("\n")
        }
    }
}

/// The problems of the sound catalog with one replacement.
fn changed(from: &str, to: &str) -> String {
    assert!(SOUND.contains(from), "{from}");
    problems(&SOUND.replacen(from, to, 1))
}

/// The problems of the sound catalog with one more document.
fn added(document: &str) -> String {
    problems(&format!("{SOUND}---\n{document}"))
}

#[test]
fn unknown_default_channel_suggests_channels_of_the_package() {
    for (channel, wanted) in [
        ("stabel", "did you mean \"stable\"? the package has beta, stable"),
        ("gamma", "the package has beta, stable"),
    ] {
        let text =
            SOUND.replacen("defaultChannel: stable", &format!("defaultChannel: {channel}"), 1);
        let problems = load(&[("c.yaml", &text)]).unwrap_err().problems;
        let remedies: Vec<&str> = problems.iter().map(|problem| &*problem.remedy).collect();
        assert_eq!(remedies, [wanted]);
    }
}

#[test]
fn sound_catalog_has_no_problem() {
    assert_eq!(problems(SOUND), "");
}

#[test]
fn each_rule_reports_message_and_place() {
    let table = [
        // Packages.
        (
            added("schema: olm.package\nname: kiwi\ndefaultChannel: x\n"),
            "c.yaml:86:7: duplicate package \"kiwi\"",
        ),
        (
            added("schema: olm.package\ndefaultChannel: x\n"),
            "c.yaml:85: config contains package with no name",
        ),
        (
            changed("defaultChannel: stable\n", ""),
            "c.yaml:2: invalid package \"kiwi\": default channel must be set",
        ),
        (
            changed("defaultChannel: stable", "defaultChannel: gamma"),
            "c.yaml:4:17: invalid package \"kiwi\": default channel \"gamma\" not found in channels list",
        ),
        (
            changed("PHN2Zy8+", "'###'"),
            "c.yaml:8:15: parse package: illegal base64 data at input byte 0",
        ),
        // Channels.
        (
            added("schema: olm.channel\nname: x\npackage: mango\nentries: [{name: a}]\n"),
            "c.yaml:87:10: unknown package \"mango\" for channel \"x\"",
        ),
        (
            added("schema: olm.channel\nname: x\npackage: kiwi\n"),
            "c.yaml:85:1: invalid package \"kiwi\": invalid channel \"x\": channel must contain at least one bundle",
        ),
        (
            added("schema: olm.channel\npackage: kiwi\n"),
            "c.yaml:85: package \"kiwi\" contains channel with no name",
        ),
        (
            changed("name: beta\nentries", "name: stable\nentries"),
            "c.yaml:23:7: package \"kiwi\" has duplicate channel \"stable\"\nc.yaml:63:7: package \"kiwi\", bundle \"kiwi.v1.2.0\" not found in any channel entries\nc.yaml:74:14: cannot deprecate channel \"beta\" for package \"kiwi\": channel not found",
        ),
        (
            changed("- name: kiwi.v1.1.0\n  replaces: kiwi.v1.0.0", "- name: kiwi.v1.0.0"),
            "c.yaml:16:9: invalid package \"kiwi\", channel \"stable\": duplicate entry \"kiwi.v1.0.0\"",
        ),
        (
            changed("- name: kiwi.v1.1.0\n  replaces: kiwi.v1.0.0", "- name: kiwi.v1.1.0"),
            "c.yaml:16:3: invalid package \"kiwi\": invalid channel \"stable\": multiple channel heads found in graph: kiwi.v1.0.0, kiwi.v1.1.0",
        ),
        (
            changed("- name: kiwi.v1.0.0\n", "- name: kiwi.v1.0.0\n  replaces: kiwi.v1.1.0\n"),
            "c.yaml:15:3: invalid package \"kiwi\": invalid channel \"stable\": no channel head found in graph",
        ),
        (
            changed(
                "- name: kiwi.v1.1.0\n- name: kiwi.v1.2.0",
                "- name: kiwi.v1.1.0\n  replaces: kiwi.v1.1.0\n- name: kiwi.v1.2.0",
            ),
            "c.yaml:25:3: invalid package \"kiwi\": invalid channel \"beta\": detected cycle in replaces chain of upgrade graph: kiwi.v1.1.0 -> kiwi.v1.1.0",
        ),
        (
            changed(
                "- name: kiwi.v1.1.0\n- name: kiwi.v1.2.0",
                "- name: kiwi.v1.1.0\n- name: kiwi.v1.0.0\n  replaces: kiwi.v1.0.0\n- name: kiwi.v1.2.0",
            ),
            "c.yaml:26:3: invalid package \"kiwi\": invalid channel \"beta\": channel contains one or more stranded bundles: kiwi.v1.0.0",
        ),
        (
            changed("skips: [kiwi.v1.0.1]", "skips: [a, \"\"]"),
            "c.yaml:18:10: invalid package \"kiwi\": invalid channel \"stable\": invalid bundle \"kiwi.v1.1.0\": skip[1] is empty",
        ),
        (
            changed("\">=1.0.0 <1.1.0\"", "abc"),
            "c.yaml:19:14: invalid package \"kiwi\": invalid channel \"stable\": invalid bundle \"kiwi.v1.1.0\": invalid skipRange \"abc\": Could not get version from string: \"abc\"",
        ),
        (
            changed("entries:\n- name: kiwi.v1.0.0", "entries:\n- name: 5"),
            "c.yaml:15:9: parse channel: json: cannot unmarshal number into Go struct field ChannelEntry.entries.name of type string",
        ),
        // Bundles.
        (
            added("schema: olm.bundle\nname: x\nimage: a\n"),
            "c.yaml:85: package name must be set for bundle \"x\"",
        ),
        (
            added("schema: olm.bundle\nname: x\npackage: mango\nimage: a\n"),
            "c.yaml:87:10: unknown package \"mango\" for bundle \"x\"",
        ),
        (
            changed("- name: kiwi.v1.2.0\n", "- name: kiwi.v1.3.0\n"),
            "c.yaml:26:9: no olm.bundle blobs found in package \"kiwi\" for olm.channel entries [kiwi.v1.3.0]\nc.yaml:63:7: package \"kiwi\", bundle \"kiwi.v1.2.0\" not found in any channel entries",
        ),
        (
            changed("version: 1.2.0}", "version: v1.2}"),
            "c.yaml:67:39: error parsing bundle \"kiwi.v1.2.0\" version \"v1.2\": No Major.Minor.Patch elements found",
        ),
        (
            changed("version: 1.2.0}", "version: 1.1.0}"),
            "c.yaml:61: invalid package \"kiwi\": duplicate versions found in bundles: [{1.1.0: [kiwi.v1.1.0, kiwi.v1.2.0]}]",
        ),
        (
            changed("{packageName: kiwi, version: 1.2.0}", "{packageName: mango, version: 1.2.0}"),
            "c.yaml:67:24: package \"kiwi\" does not match \"olm.package\" property \"mango\"",
        ),
        (
            changed(
                "type: olm.package\n  value: {packageName: kiwi, version: 1.2.0}",
                "type: other\n  value: {}",
            ),
            "c.yaml:66:3: package \"kiwi\" bundle \"kiwi.v1.2.0\" must have exactly 1 \"olm.package\" property, found 0",
        ),
        (
            changed(
                "type: olm.package\n  value: {packageName: kiwi, version: 1.2.0}",
                "type: olm.package\n  value: {packageName: kiwi, version: 1.2}",
            ),
            "c.yaml:67:39: parse properties for bundle \"kiwi.v1.2.0\": parse property[0] of type \"olm.package\": json: cannot unmarshal number into Go struct field Package.version of type string",
        ),
        (
            changed("image: example.com/kiwi:v1.2.0\n", ""),
            "c.yaml:61: invalid package \"kiwi\": invalid bundle \"kiwi.v1.2.0\": bundle image must be set",
        ),
        (
            changed("image: example.com/kiwi:v1.2.0\n", "image: Kiwi\n"),
            "c.yaml:64:8: package \"kiwi\" bundle \"kiwi.v1.2.0\" image: invalid image pull spec \"Kiwi\": invalid reference format: repository name must be lowercase",
        ),
        (
            changed("image: example.com/kiwi/operator:v1.1.0", "image: a b"),
            "c.yaml:59:10: package \"kiwi\" bundle \"kiwi.v1.1.0\" relatedImages[0].image: invalid image pull spec \"a b\": invalid reference format",
        ),
        (
            changed("data: eyJ", "data: ??eyJ"),
            "c.yaml:52:11: read bundle objects: package \"kiwi\", bundle \"kiwi.v1.1.0\": parse property at index 4 as bundle object: illegal base64 data at input byte 0",
        ),
        // Deprecations.
        (
            changed("name: beta}", "name: zeta}"),
            "c.yaml:74:14: cannot deprecate channel \"zeta\" for package \"kiwi\": channel not found",
        ),
        (
            changed("name: kiwi.v1.0.0}\n  message", "name: kiwi.v9}\n  message"),
            "c.yaml:76:14: cannot deprecate bundle \"kiwi.v9\" for package \"kiwi\": bundle not found",
        ),
        (
            changed("message: beta ends", "message: ''"),
            "c.yaml:74:3: invalid package \"kiwi\": invalid channel \"beta\": invalid deprecation: message must be set",
        ),
        (
            changed("{schema: olm.package}", "{schema: olm.thing}"),
            "c.yaml:78:14: cannot deprecate object declcfg.PackageScopedReference{Schema:\"olm.thing\", Name:\"\"} referenced by entry 2 for package \"kiwi\": object schema unknown",
        ),
        (
            changed("{schema: olm.package}", "{schema: olm.channel, name: beta}"),
            "c.yaml:78:14: duplicate deprecation entry declcfg.PackageScopedReference{Schema:\"olm.channel\", Name:\"beta\"} for package \"kiwi\"",
        ),
        (
            changed("{schema: olm.package}", "{name: beta}"),
            "c.yaml:78:14: schema must be set for deprecation entry [2] for package \"kiwi\"",
        ),
        (
            added("schema: olm.deprecations\npackage: kiwi\n"),
            "c.yaml:85: expected a maximum of one deprecation per package: \"kiwi\"",
        ),
        (
            added("schema: olm.deprecations\npackage: mango\n"),
            "c.yaml:86:10: cannot apply deprecations to an unknown package \"mango\"",
        ),
        (
            added("schema: olm.deprecations\n"),
            "c.yaml:85: package name must be set for deprecation item 1",
        ),
        // Documents.
        (added("name: x\n"), "c.yaml:85: object '{\"name\":\"x\"}' is missing root schema field"),
        (added("\n"), "c.yaml:85: object '' is missing root schema field"),
        (
            added("just words\n"),
            "c.yaml:85: json: cannot unmarshal string into Go value of type map[string]interface {}",
        ),
        (
            added("schema: x\nName: a\nname: b\n"),
            "c.yaml:86:7: duplicate keys for key \"name\": [Name name]",
        ),
        (
            added("schema: x\nname: yes\n"),
            "c.yaml:86:7: expected value for key \"name\" to be a string, got true",
        ),
        (added("schema: [x\n"), "c.yaml:86:1: did not find expected ',' or ']'"),
    ];
    let mut wrong = Vec::new();
    for (ours, expected) in table {
        if ours != expected {
            wrong.push(format!("ours     {ours}\nexpected {expected}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
}

#[test]
fn all_problems_are_reported_in_the_order_of_files_and_lines() {
    let bad_version = SOUND.replace("version: 1.2.0}", "version: x}");
    let mango = "schema: olm.package\nname: mango\n---\nschema: olm.package\nname: mango\n";
    let error = load(&[("z.yaml", mango), ("a.yaml", &bad_version)]).unwrap_err();
    insta::assert_snapshot!(error, @r#"
    a.yaml:67:39: error parsing bundle "kiwi.v1.2.0" version "x": No Major.Minor.Patch elements found (write three numbers, such as 1.4.2)
    z.yaml:1: invalid package "mango": default channel must be set (add the field defaultChannel)
    z.yaml:1: invalid package "mango": package must contain at least one channel (add an olm.channel document)
    z.yaml:5:7: duplicate package "mango" (the first one is at z.yaml:1; remove one of them)
    "#);
    insta::assert_snapshot!(error.headline(), @r#"a.yaml:67:39: error parsing bundle "kiwi.v1.2.0" version "x": No Major.Minor.Patch elements found (write three numbers, such as 1.4.2); and 3 more problems"#);
}

#[test]
fn documents_of_an_unread_file_are_not_reported_as_missing() {
    let (channels, bundles) = SOUND.split_at(SOUND.find("---\nschema: olm.bundle").unwrap());
    let broken = bundles.replace("packageName: kiwi, version: 1.2.0}", "packageName: kiwi");
    let error = load(&[("a.yaml", channels), ("b.yaml", &broken)]).unwrap_err();
    assert_eq!(error.problems.len(), 1, "{error}");
    assert_eq!(&*error.problems[0].file, "b.yaml");
}
