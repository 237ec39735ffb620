//! A converted operator is uninstalled, and its CustomResourceDefinitions stay.

use super::*;
use mainstay_command::io::CommandIo;
use mainstay_operators::uninstall;

const CRD: &str = "anvils.forge.example.com";

/// Runs `mainstay uninstall` for the extension.
async fn uninstall_and_keep_crds(live: &LiveCluster) -> CommandOutput {
    let words = ["mainstay", "uninstall", "clusterextension/anvil", "--keep-crds"];
    let Command::Uninstall(arguments) = Arguments::try_parse_from(words).unwrap().command else {
        unreachable!("it was typed")
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let stdin = &mut std::io::empty();
    let mut io = CommandIo::unattended(stdin, &mut out, &mut err, live.folder());
    let commands = live.commands.clone();
    let exit = uninstall::run(&arguments, &mut io, async move || Ok(commands)).await;
    CommandOutput::of(exit as u8, out, err)
}

/// The owner of the definitions goes before the extension, or with it.
async fn keeps_crds(features: Features) {
    let live = installed(features).await;
    if features.trust == TrustMode::Approved {
        approve(&live).await;
    }
    assert_done(&migrate(&live, "convert anvil -n team").await);
    let cluster = live.cluster.cluster();
    let kind = &builtin::CUSTOM_RESOURCE_DEFINITION;
    let before = cluster.get(kind, None, CRD).await.unwrap();
    assert_done(&uninstall_and_keep_crds(&live).await);
    live.cluster.wait_gone(&CLUSTER_EXTENSION, None, "anvil").await;
    live.cluster.wait_gone(&builtin::DEPLOYMENT, Some("team"), "anvil").await;
    let sets = Selection::all(CLUSTER_OBJECT_SET);
    live.cluster.wait_for_all(sets, |sets| sets.is_empty()).await;
    let after = cluster.get(kind, None, CRD).await.unwrap();
    assert_eq!(after.uid(), before.uid());
    assert!(!after.is_terminating());
    assert_eq!(after.owner_references(), []);
    live.shutdown().await;
}

#[tokio::test]
async fn uninstallation_of_releases_keeps_crds() {
    keeps_crds(Features::default()).await;
}

#[tokio::test]
async fn uninstallation_of_object_sets_keeps_crds() {
    keeps_crds(Features::object_sets(TrustMode::ClusterAdmin)).await;
}

#[tokio::test]
async fn uninstallation_of_object_sets_with_an_approved_account_keeps_crds() {
    keeps_crds(Features::object_sets(TrustMode::Approved)).await;
}
