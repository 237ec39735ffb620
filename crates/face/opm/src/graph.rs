//! `opm alpha render-graph`: the channels of catalogs as a Mermaid diagram.

use super::call::{Call, CommandIo, Failure};
use super::command::{Action, Arguments, Command};
use super::flags::Flag;
use super::pull::ImagePuller;
use super::reference;
use super::render::{AllowedReferences, Renderer};
use mainstay_catalog::{DiagramError, DiagramOptions, MigrationLevel, Rendition};

/// The command.
pub(super) fn command() -> Command {
    Command {
        long: "Prints the channels of catalogs and their updates as a Mermaid diagram, which mermaid.live and many\n\
               code hosts draw. mainstay catalog graph draws images itself.\n\n  \
               opm alpha render-graph catalog/ -p my-operator > graph.mmd",
        arguments: Arguments::AtLeast(1),
        flags: vec![
            Flag::switch(
                "draw-v0-semantics",
                "mark skipped bundles, and updates that OLM does not offer because of them",
            ),
            Flag::text(
                "minimum-edge",
                None,
                "the first bundle whose updates are shown (default: all)",
            ),
            Flag::text("package-name", Some('p'), "the only package to show (default: all)"),
        ],
        action: Some(Action::Async(|call| Box::pin(run(call)))),
        ..Command::new(
            "render-graph [index-image | fbc-dir]",
            "Print the channels of catalogs as a Mermaid diagram",
        )
    }
}

async fn run(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let access = reference::registry_access(call).map_err(Failure::log)?;
    let renderer = Renderer {
        template: None,
        level: MigrationLevel::None,
        allowed: AllowedReferences::CATALOGS,
        images: ImagePuller::containers(access.containers()),
    };
    let mut all = Rendition::default();
    for reference in &call.arguments {
        all.append(renderer.render(call.io, reference).await.map_err(Failure::log)?);
    }
    let given = |name: &str| match call.flags.text(name) {
        "" => None,
        text => Some(text.to_owned()),
    };
    let (minimum, package) = (given("minimum-edge"), given("package-name"));
    let options = DiagramOptions {
        minimum: minimum.as_deref(),
        package: package.as_deref(),
        semantics: call.flags.is_on("draw-v0-semantics"),
    };
    print(call.io, &all, &options).map_err(Failure::log)
}

/// Prints the diagram of a rendition, and warnings about omitted parts.
///
/// # Errors
/// If there is no diagram.
pub(super) fn print(
    io: &mut CommandIo<'_>,
    all: &Rendition,
    options: &DiagramOptions<'_>,
) -> Result<(), DiagramError> {
    let diagram = all.diagram(options)?;
    for warning in &diagram.warnings {
        io.print_error(&format!("{warning}\n"));
    }
    io.print(&diagram.text);
    Ok(())
}
