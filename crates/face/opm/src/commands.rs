//! The command tree of `opm`.

use super::call::{Call, Failure};
use super::command::{Action, ArgumentCompletion, Arguments, Command};
use super::flags::Flag;
use super::{
    bundle, complete, completion_script, dockerfile, engine, graph, help, init, list, migrate,
    registry, render, serve, template, validate, version,
};

/// The root command with all sub-commands. `alpha` shows hidden ones.
pub(super) fn root(alpha: bool) -> Command {
    let mut children = vec![
        Command {
            hidden: !alpha,
            arguments: Arguments::None,
            action: Some(Action::Sync(no_action)),
            children: vec![
                bundle::command(),
                template::convert_command(),
                list::command(),
                graph::command(),
                template::command(),
            ],
            ..Command::new("alpha", "Commands that may still change")
        },
        completion_script::command(),
        Command {
            children: vec![dockerfile::command()],
            ..Command::new("generate", "Write files that belong to a file-based catalog")
        },
        Command {
            long: "Shows the help of a command.\n\
                   opm help [path to command] is the same as opm [path to command] --help.",
            completion: ArgumentCompletion::Commands,
            action: Some(Action::Sync(show_help)),
            ..Command::new("help [command]", "Help about any command")
        },
        registry::index(alpha),
        init::command(),
        migrate::command(),
        registry::registry(alpha),
        render::command(alpha),
        serve::command(),
        validate::command(),
        version::command(),
        Command {
            aliases: &[complete::REQUEST_WITHOUT_DESCRIPTIONS],
            hidden: true,
            disable_flag_parsing: true,
            arguments: Arguments::AtLeast(1),
            action: Some(Action::Sync(complete::run)),
            ..Command::new("__complete [command-line]", "Candidates for the shell")
        },
    ];
    children.sort_by_key(Command::name);
    Command {
        long: "Works on file-based catalogs of operators.\n\n\
               Set HELP_ALPHA=true in the environment to see commands that may still change.",
        arguments: Arguments::None,
        flags: vec![Flag::switch("debug", "log more").hidden()],
        persistent_flags: vec![
            Flag::switch("skip-tls", "do not check certificates of image registries")
                .deprecated("use --use-http and --skip-tls-verify instead"),
            Flag::switch("skip-tls-verify", "do not check certificates of image registries"),
            Flag::switch("use-http", "talk to image registries without TLS"),
        ],
        action: Some(Action::Sync(no_action)),
        children,
        ..Command::new("opm", "Works on file-based catalogs of operators")
    }
}

/// The action of a command with only sub-commands: an unknown word is an error.
#[expect(clippy::unnecessary_wraps, reason = "an action")]
fn no_action(_: &mut Call<'_, '_>) -> Result<(), Failure> {
    Ok(())
}

/// Prints the help of the last command that the arguments name.
#[expect(clippy::unnecessary_wraps, reason = "an action")]
fn show_help(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let mut path: Vec<&Command> = call.path.first().copied().into_iter().collect();
    engine::find(&mut path, &call.arguments);
    call.io.print(&help::help(&path));
    Ok(())
}
