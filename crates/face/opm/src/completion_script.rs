//! `opm completion`: completion scripts for shells.

use super::call::{Call, Failure};
use super::command::{Action, ArgumentCompletion, Arguments, Command};
use super::complete;
use super::flags::Flag;

/// The command, with a sub-command for each shell.
pub(super) fn command() -> Command {
    let children = vec![
        Command {
            flags_in_usage: false,
            ..shell(
                "bash",
                "Completion for bash",
                "Try it with\n\n\tsource <(opm completion bash)\n\nand keep it with\n\n\topm completion bash > /etc/bash_completion.d/opm",
                bash,
            )
        },
        shell(
            "fish",
            "Completion for fish",
            "Try it with\n\n\topm completion fish | source\n\nand keep it with\n\n\topm completion fish > ~/.config/fish/completions/opm.fish",
            fish,
        ),
        shell(
            "powershell",
            "Completion for PowerShell",
            "Try it with\n\n\topm completion powershell | Out-String | Invoke-Expression\n\nand keep it by adding that line to your profile.",
            powershell,
        ),
        shell(
            "zsh",
            "Completion for zsh",
            "Try it with\n\n\tsource <(opm completion zsh)\n\nand keep it with\n\n\topm completion zsh > \"${fpath[1]}/_opm\"",
            zsh,
        ),
    ];
    Command {
        long: "Writes a completion script for the commands and flags of opm.\n\
               The help of each shell explains how to load it.",
        completion: ArgumentCompletion::Nothing,
        arguments: Arguments::None,
        children,
        ..Command::new("completion", "Write a completion script for a shell")
    }
}

fn shell(
    name: &'static str,
    short: &'static str,
    long: &'static str,
    run: fn(&mut Call<'_, '_>) -> Result<(), Failure>,
) -> Command {
    Command {
        long,
        arguments: Arguments::None,
        completion: ArgumentCompletion::Nothing,
        flags: vec![Flag::switch("no-descriptions", "names only, without descriptions")],
        action: Some(Action::Sync(run)),
        ..Command::new(name, short)
    }
}

fn bash(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    write(call, include_str!("scripts/bash.sh"))
}

fn fish(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    write(call, include_str!("scripts/fish.fish"))
}

fn powershell(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    write(call, include_str!("scripts/powershell.ps1"))
}

fn zsh(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    write(call, include_str!("scripts/zsh.sh"))
}

#[expect(clippy::unnecessary_wraps, reason = "an action")]
fn write(call: &mut Call<'_, '_>, script: &str) -> Result<(), Failure> {
    let request = if call.flags.is_on("no-descriptions") {
        complete::REQUEST_WITHOUT_DESCRIPTIONS
    } else {
        complete::REQUEST
    };
    call.io.print(&script.replace("{request}", request));
    Ok(())
}
