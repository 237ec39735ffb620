//! Command simulation: the duration and the exit code of plain container commands.
//!
//! ```text
//! command + args ─┬─ sleep N, true, false, exit N ──────────┐
//!                 └─ sh -c SCRIPT ─► lines of such commands ┴─► Program
//! ```
//!
//! Not supported: variables, redirections, pipes and loops. A container with such a command, or
//! with any other unknown one, is simulated as if the command served the purpose of the Pod.

use mainstay_object::Object;
use serde_json::Value;

/// A command with a known duration and exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// The duration in seconds; none if the command never ends.
    pub(super) seconds: Option<i64>,
    /// The exit code.
    pub(super) code: i64,
}

impl Program {
    /// The program of a container, if its command is plain. The command of an image is unknown.
    pub(super) fn of(container: &Value) -> Option<Self> {
        let words = |field: &str| {
            let words = container.get(field).and_then(Value::as_array).into_iter().flatten();
            words.map(|word| word.as_str().unwrap_or_default())
        };
        let command: Vec<&str> = words("command").collect();
        if command.is_empty() {
            return None;
        }
        let all: Vec<&str> = command.into_iter().chain(words("args")).collect();
        let (program, arguments) = all.split_first()?;
        match (program.rsplit('/').next()?, arguments) {
            ("sh" | "bash" | "ash" | "dash", ["-c", script, ..]) => run_script(script),
            (name, arguments) => match run(name, arguments)? {
                // `exit` exists only in a shell.
                Outcome::Exited(_) => None,
                Outcome::Completed { seconds, code } => Some(Self { seconds, code }),
            },
        }
    }
}

/// The containers of a Pod combined, if the command of any is plain: the end of the last one, and
/// the first exit code other than 0. The other containers count as `usual`.
pub(super) fn of_pod(pod: &Object, usual: Program) -> Option<Program> {
    let containers = pod.array(&["spec", "containers"]);
    if !containers.iter().any(|container| Program::of(container).is_some()) {
        return None;
    }
    let mut all = Program { seconds: Some(0), code: 0 };
    for container in containers {
        let one = Program::of(container).unwrap_or(usual);
        all.seconds = all.seconds.zip(one.seconds).map(|(all, one)| all.max(one));
        if all.code == 0 {
            all.code = one.code;
        }
    }
    Some(all)
}

/// The outcome of a simple command.
enum Outcome {
    Completed {
        seconds: Option<i64>,
        code: i64,
    },
    /// `exit` ended the script with the code.
    Exited(i64),
}

/// Runs a simple command; none if it is unknown.
fn run(name: &str, arguments: &[&str]) -> Option<Outcome> {
    let went = |code| Some(Outcome::Completed { seconds: Some(0), code });
    match (name, arguments) {
        ("true" | ":" | "echo" | "date", _) => went(0),
        ("false", _) => went(1),
        ("exit", []) => Some(Outcome::Exited(0)),
        // An exit code has eight bits.
        ("exit", [code]) => Some(Outcome::Exited(code.parse::<i64>().ok()? & 0xff)),
        ("sleep", times @ [_, ..]) => {
            let mut all = 0_i64;
            for time in times.iter().filter(|time| !is_endless(time)) {
                all = all.saturating_add(seconds(time)?);
            }
            let seconds = (!times.iter().any(|time| is_endless(time))).then_some(all);
            Some(Outcome::Completed { seconds, code: 0 })
        }
        _ => None,
    }
}

fn is_endless(time: &str) -> bool {
    matches!(time, "infinity" | "inf")
}

/// The seconds of `5`, `0.5s`, `2m`, `1h` or `1d`, rounded up.
fn seconds(text: &str) -> Option<i64> {
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h', 'd']) {
        Some(number) => (number, text.as_bytes().last().copied()),
        None => (text, None),
    };
    let unit = match unit {
        Some(b'm') => 60,
        Some(b'h') => 3_600,
        Some(b'd') => 86_400,
        _ => 1,
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let whole: i64 = if whole.is_empty() && !part.is_empty() { 0 } else { whole.parse().ok()? };
    let more = i64::from(part.bytes().any(|byte| byte != b'0'));
    (whole >= 0).then(|| whole.saturating_add(more).saturating_mul(unit))
}

/// Runs the commands of a script; none if any of them is unknown.
fn run_script(script: &str) -> Option<Program> {
    if script.contains(['$', '`', '|', '<', '>', '(', ')', '{', '}', '*', '?', '#', '\\']) {
        return None;
    }
    let mut done = Program { seconds: Some(0), code: 0 };
    let mut ended = false;
    for line in script.split([';', '\n']) {
        for (at, command) in line.split("&&").enumerate() {
            // Commands after a failure or an end do not run. They must be known all the same, as
            // another run may reach them.
            if command.contains('&') {
                return None;
            }
            let words = words(command)?;
            let Some((name, arguments)) = words.split_first() else {
                if at > 0 {
                    return None;
                }
                continue;
            };
            let outcome = run(name, arguments)?;
            if ended || (at > 0 && done.code != 0) {
                continue;
            }
            match outcome {
                Outcome::Completed { seconds, code } => {
                    done.code = code;
                    let all = done.seconds.zip(seconds);
                    done.seconds = all.map(|(all, one)| all.saturating_add(one));
                    // Commands after an endless one are never reached.
                    ended = done.seconds.is_none();
                }
                Outcome::Exited(code) => {
                    done.code = code;
                    ended = true;
                }
            }
        }
    }
    Some(done)
}

/// The words of a command; none if its quotes are not plain.
fn words(command: &str) -> Option<Vec<&str>> {
    let mut words = Vec::new();
    let mut rest = command.trim();
    while !rest.is_empty() {
        let (word, after) = match rest.as_bytes()[0] {
            quote @ (b'"' | b'\'') => {
                let (word, after) = rest[1..].split_once(char::from(quote))?;
                if !after.is_empty() && !after.starts_with(char::is_whitespace) {
                    return None;
                }
                (word, after)
            }
            _ => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        if word.contains(['"', '\'']) {
            return None;
        }
        words.push(word);
        rest = after.trim_start();
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn program(command: &[&str]) -> Option<(Option<i64>, i64)> {
        let program = Program::of(&json!({"command": command}))?;
        Some((program.seconds, program.code))
    }

    #[test]
    fn plain_commands_are_followed() {
        for (command, wanted) in [
            (&["sleep", "5"][..], Some((Some(5), 0))),
            (&["/bin/sleep", "1m", "0.5"], Some((Some(61), 0))),
            (&["sleep", "infinity"], Some((None, 0))),
            (&["true"], Some((Some(0), 0))),
            (&["/bin/false"], Some((Some(0), 1))),
            (&["exit", "1"], None),
            (&["sleep"], None),
            (&["sleep", "-1"], None),
            (&["nginx"], None),
            (&[], None),
        ] {
            assert_eq!(program(command), wanted, "{command:?}");
        }
        let split = json!({"command": ["sh"], "args": ["-c", "sleep 3; exit 4"]});
        assert_eq!(Program::of(&split), Some(Program { seconds: Some(3), code: 4 }));
        assert_eq!(Program::of(&json!({"args": ["sleep", "3"]})), None, "of an unknown image");
    }

    #[test]
    fn scripts_of_plain_commands_are_followed_and_others_are_not() {
        for (script, wanted) in [
            ("exit 1", Some((Some(0), 1))),
            ("sleep 5 && exit 257", Some((Some(5), 1))),
            ("false && sleep 9; sleep 2", Some((Some(2), 0))),
            ("echo 'hello world'\ndate\nsleep 1\n", Some((Some(1), 0))),
            ("sleep inf; exit 1", Some((None, 0))),
            ("exit 3; sleep 9", Some((Some(0), 3))),
            ("true;", Some((Some(0), 0))),
            ("", Some((Some(0), 0))),
            ("sleep $N", None),
            ("sleep 5 & wait", None),
            ("sleep 5 | cat", None),
            ("while true; do sleep 1; done", None),
            ("echo \"it's\"", None),
            ("&& true && ", None),
        ] {
            assert_eq!(program(&["/bin/sh", "-c", script]), wanted, "{script:?}");
        }
    }
}
