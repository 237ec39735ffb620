//! `mainstay up`: a cluster to keep.

use crate::embedded::{Embedded, Settings};
use crate::stop::Stop;
use mainstay_cause::Cause;
use mainstay_cli::config::Up;
use mainstay_cli::report::{Report, milliseconds};

/// Brings the cluster up, says what is ready, serves until a signal, and stops.
pub(crate) async fn run(up: Up, report: Report) -> Result<(), Cause> {
    let mut stop = Stop::listen()?;
    let say = |line: &str| report.say(line);
    let settings = Settings {
        data: up.data,
        listen: up.listen,
        kubeconfig: up.kubeconfig,
        catalogs: up.catalogs,
        nodes: up.nodes,
        profile: up.profile,
        repair: up.repair,
    };
    let embedded = tokio::select! {
        embedded = Embedded::start(settings, &say) => embedded?,
        () = stop.asked() => return Err(Cause::new("interrupted while starting")),
    };
    report.say(format!(
        "ready       {} after {}",
        embedded.url(),
        milliseconds(embedded.started_in())
    ));
    stop.asked().await;
    embedded.stop().await?;
    report.say("stopped");
    Ok(())
}
