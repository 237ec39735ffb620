//! `mainstay why`: why something is not where its user wants it.
//!
//! ```text
//! cluster, --state ─► objects ─┬─────────────────────► World ── explain ─► Answer ─┬─► text
//!                              └─► resolution ─► reasons ─┘                        └─► JSON
//! ```

use crate::catalog::plain;
use crate::cluster::AskedArguments;
use crate::exit::{Exit, Failure};
use crate::outlet::Outlet;
use crate::resolve::{self, Io};
use clap::{Args, ValueEnum};
use mainstay_api::names;
use mainstay_api::resources::CLUSTER_SERVICE_VERSION;
use mainstay_cause::{Cause, Place};
use mainstay_explain::{Answer, EVERYWHERE, Kind, NEARBY, Target, World, explain};
use mainstay_object::{Object, Resource};
use mainstay_resolver::universe::cause_json;
use mainstay_yaml::{Options, documents};
use serde_json::{Value, json};
use std::io::Write;

/// What people type to save a state.
const SAVE: &str =
    "kubectl get og,catalogsource,sub,installplan,csv,operatorcondition,deployment,pod -A -o yaml";

/// Help of `--state`. The command stands on one line, so that it can be copied.
const STATE: &str = "A saved state instead of a cluster; `-` reads standard input (repeatable). Save one with\n\
kubectl get og,catalogsource,sub,installplan,csv,operatorcondition,deployment,pod -A -o yaml";

/// Arguments of `why`.
///
/// Ends with 0 if everything is as it should be, with 1 if something is in the way, which is then
/// explained, and with 2 if it cannot be looked at.
#[derive(Args, Debug)]
pub struct WhyArguments {
    /// What to explain: a subscription, installplan, clusterserviceversion (csv) or catalogsource.
    #[arg(value_name = "KIND/NAME", value_parser = target)]
    target: (Kind, String),
    /// Its namespace [default: that of the kubeconfig's context].
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    #[arg(long = "state", value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"], help = STATE)]
    states: Vec<String>,
    /// The cluster to ask.
    #[command(flatten)]
    pub asked: AskedArguments,
    /// How the answer is written.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
}

/// Formats of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// One JSON value.
    Json,
}

/// Reads `KIND/NAME`.
fn target(text: &str) -> Result<(Kind, String), String> {
    let (kind, name) = text
        .split_once('/')
        .filter(|(_, name)| !name.is_empty() && !name.contains('/'))
        .ok_or("write it as KIND/NAME, such as subscription/my-operator")?;
    let kind = kind.parse().map_err(|why: Cause| why.to_string())?;
    Ok((kind, name.to_owned()))
}

/// A cluster whose objects can be listed.
pub trait Remote: resolve::Remote {
    /// The objects of a kind, of one namespace or of all, with such labels if a selector is given.
    ///
    /// # Errors
    /// If the cluster cannot be asked.
    fn of_kind(
        &mut self,
        kind: &Resource,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Result<Vec<Object>, Cause>;

    /// The namespace that counts where none is named.
    fn namespace(&self) -> String;

    /// This, for resolution.
    fn resolving(&mut self) -> &mut dyn resolve::Remote;
}

/// Runs the command.
pub fn run(
    arguments: &WhyArguments,
    io: &mut Io<'_>,
    connect: &mut dyn FnMut() -> Result<Box<dyn Remote>, Failure>,
) -> Exit {
    let answered = answer(arguments, io, connect);
    let text = match &answered {
        Ok(answer) => match arguments.output {
            Format::Text => text(answer),
            Format::Json => format!("{:#}\n", value(answer)),
        },
        Err(Failure { exit: _, cause }) => {
            let _ = write!(io.stderr, "error: {}", cause.render());
            return Exit::Usage;
        }
    };
    let mut stdout = Outlet::new(&mut *io.stdout);
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    if let (Err(error), Some(_)) = (written, stdout.trouble()) {
        let _ = writeln!(io.stderr, "error: the answer cannot be written: {error}");
        return Exit::Usage;
    }
    match answered {
        Ok(answer) if answer.is_healthy() => Exit::Done,
        _ => Exit::Failed,
    }
}

fn answer(
    arguments: &WhyArguments,
    io: &mut Io<'_>,
    connect: &mut dyn FnMut() -> Result<Box<dyn Remote>, Failure>,
) -> Result<Answer, Failure> {
    let (kind, name) = arguments.target.clone();
    let mut world = World::default();
    let namespace;
    if arguments.states.is_empty() {
        let mut remote = connect()?;
        namespace = arguments.namespace.clone().unwrap_or_else(|| remote.namespace());
        world.objects = listed(&mut *remote, &namespace).map_err(Failure::usage)?;
        if kind == Kind::Subscription {
            let objects = world.objects.clone();
            let found = resolve::unresolved(io, objects, &namespace, remote.resolving());
            world.resolved = found.is_some();
            world.unresolved = found.unwrap_or_default();
        }
    } else {
        namespace = arguments.namespace.clone().unwrap_or_else(|| "default".to_owned());
        for file in &arguments.states {
            read(io, file, &mut world.objects)?;
        }
    }
    let target = Target { kind, namespace, name };
    explain(&world, &target).map_err(Failure::usage)
}

/// What is looked at in a cluster.
fn listed(remote: &mut dyn Remote, namespace: &str) -> Result<Vec<Object>, Cause> {
    let mut all = Vec::new();
    for kind in &EVERYWHERE {
        all.extend(remote.of_kind(kind, None, None)?);
    }
    for kind in &NEARBY {
        // Copies of versions are many, large, and of no meaning here.
        let originals = format!("!{}", names::COPIED_FROM);
        let labels = (*kind == CLUSTER_SERVICE_VERSION).then_some(&*originals);
        all.extend(remote.of_kind(kind, Some(namespace), labels)?);
    }
    Ok(all)
}

/// Reads a saved state.
fn read(io: &mut Io<'_>, file: &str, objects: &mut Vec<Object>) -> Result<(), Failure> {
    let text = resolve::text_of(io, file)?;
    let place = |line| Place { line, ..Place::file(if file == "-" { "<stdin>" } else { file }) };
    let refuse = |line, why: &str| {
        Failure::usage(
            Cause::new(plain(why))
                .at(place(line))
                .remedy(format!("give it what this prints: {SAVE}")),
        )
    };
    for document in documents(text.as_bytes(), &Options::default()) {
        let document = document.map_err(|error| refuse(error.line, &error.message))?;
        let items = match document.value {
            Value::Null => continue,
            Value::Object(mut fields) if fields.contains_key("items") => {
                match fields.remove("items") {
                    Some(Value::Array(items)) => items,
                    _ => return Err(refuse(document.line, "`items` is no list")),
                }
            }
            other => vec![other],
        };
        for item in items {
            let object = Object::from_value(item)
                .map_err(|_| refuse(document.line, "this is no Kubernetes object"))?;
            objects.push(object);
        }
    }
    Ok(())
}

fn text(answer: &Answer) -> String {
    let mut text = match &answer.why {
        Some(why) => why.render(),
        None => format!("{} {}\n", answer.target, answer.standing),
    };
    for note in &answer.notes {
        text.push_str("note: ");
        text.push_str(note);
        text.push('\n');
    }
    text.lines().map(|line| plain(line) + "\n").collect()
}

fn value(answer: &Answer) -> Value {
    let target = &answer.target;
    let mut value = json!({
        "kind": target.kind.name(),
        "namespace": target.namespace,
        "name": target.name,
        "healthy": answer.is_healthy(),
        "standing": answer.standing,
        "notes": answer.notes,
    });
    if let Some(why) = &answer.why {
        value["because"] = cause_json(why)["because"].clone();
    }
    value
}
