//! `mainstay-conformance`: records what a real Kubernetes answers, and holds the embedded API
//! against it. See the README beside it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool")]

use anyhow::{Context, bail};
use clap::{Args, Parser, Subcommand};
use mainstay_conformance::check::{self, Judged};
use mainstay_conformance::differences::Differences;
use mainstay_conformance::kubectl::Kubectl;
use mainstay_conformance::olm;
use mainstay_conformance::opm;
use mainstay_conformance::scenario::{self, Scenario, Selection};
use mainstay_conformance::score;
use mainstay_conformance::server::Server;
use mainstay_conformance::walk;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Compares the embedded API with a real Kubernetes 1.35.
#[derive(Parser)]
#[command(name = "mainstay-conformance")]
struct Arguments {
    /// The folder with scenarios/ and recorded/.
    #[arg(long, global = true, default_value_os_t = scenario::home())]
    home: PathBuf,
    /// The kubectl to run, with further words if need be; its minor version must be 35.
    #[arg(long, global = true, env = "KUBECTL")]
    kubectl: Option<String>,
    /// How many differences of a scenario to print.
    #[arg(long, global = true, default_value_t = 12)]
    most: usize,
    #[command(subcommand)]
    task: Task,
}

#[derive(Args)]
struct Which {
    /// Only scenarios of this area.
    #[arg(long)]
    area: Option<String>,
    /// Only scenarios of this file.
    #[arg(long)]
    file: Option<String>,
    /// Only scenarios whose name contains this.
    #[arg(long)]
    name: Option<String>,
}

#[derive(Args)]
struct OpmCases {
    /// A folder of cases to run instead, recorded in the same form.
    #[arg(long)]
    answers: Option<PathBuf>,
    /// Only cases of this area.
    #[arg(long)]
    area: Option<String>,
    /// Only cases whose name contains this.
    #[arg(long)]
    name: Option<String>,
}

#[derive(Args)]
struct ClassicCases {
    /// A folder of cases to run instead, recorded in the same form.
    #[arg(long)]
    answers: Option<PathBuf>,
    /// Only cases with one of these ids or rules (`c045`, `og-form-*`), separated by commas.
    #[arg(long, value_delimiter = ',')]
    case: Vec<String>,
    /// Print also what differs as it shall.
    #[arg(long)]
    all: bool,
    /// Print lines for `olm/differences.txt` that would explain what differs otherwise.
    #[arg(long)]
    propose: bool,
    /// How many cases run at the same time; twenty-four times the number of cores unless given: they
    /// mostly wait.
    #[arg(long)]
    jobs: Option<usize>,
}

#[derive(Args)]
struct Walks {
    /// A catalog to walk, `NAME=FOLDER`: of files, or of folders of bundles (`PACKAGE/VERSION`).
    /// Without one, the published ones of the folder that `MAINSTAY_TESTDATA` names.
    #[arg(long)]
    catalog: Vec<String>,
    /// Only these packages, separated by commas.
    #[arg(long, value_delimiter = ',')]
    package: Vec<String>,
    /// Only every N-th package, beginning with the K-th: `K/N`. The N shares have each package once.
    #[arg(long, value_name = "K/N", conflicts_with = "package")]
    share: Option<walk::Share>,
    /// Have each package uninstalled as well, and fail unless everything is as before, but for what may
    /// stay.
    #[arg(long)]
    back: bool,
    /// Write the page to this file instead of printing it.
    #[arg(long)]
    table: Option<PathBuf>,
    /// Fail if the page is not what this file has.
    #[arg(long, conflicts_with = "table")]
    check: Option<PathBuf>,
    /// How many packages walk at the same time; twice the number of cores unless given.
    #[arg(long)]
    jobs: Option<usize>,
    /// Walk on this cluster and back, one package after the other, with `mainstay run` and `mainstay uninstall`,
    /// instead of in clusters in this process. It should have nothing else to do.
    #[arg(long, conflicts_with = "jobs")]
    kubeconfig: Option<PathBuf>,
    /// The `mainstay` to run [default: that beside this program].
    #[arg(long, requires = "kubeconfig")]
    mainstay: Option<PathBuf>,
}

#[cfg(debug_assertions)]
#[derive(Args)]
struct WhichFaults {
    /// Only faults in Kubernetes, which scenarios find, or in operators and their content, which tests find.
    #[arg(long)]
    of: Option<FaultsOf>,
    /// Only faults of this area.
    #[arg(long)]
    area: Option<String>,
    /// Only faults whose name contains this.
    #[arg(long)]
    name: Option<String>,
    /// Try only what the list names, instead of everything until something finds the fault.
    #[arg(long)]
    listed: bool,
    /// How many faults in Kubernetes are hunted at the same time, each by a process of its own: a fault is
    /// seeded for a whole process, and most of the time nothing is done but to wait.
    #[arg(long, default_value_t = 6)]
    jobs: usize,
    /// Hunt exactly these in this process, and print what became of each as JSON: for the process that
    /// hunts all of them.
    #[arg(long, hide = true, value_delimiter = ',')]
    here: Vec<String>,
}

#[cfg(debug_assertions)]
#[derive(Clone, Copy, clap::ValueEnum)]
enum FaultsOf {
    Kubernetes,
    Operators,
}

#[derive(Subcommand)]
enum Task {
    /// Holds the embedded API against the recordings.
    Check {
        #[command(flatten)]
        which: Which,
        /// Do not run kubectl even if there is one: send the recorded requests.
        #[arg(long)]
        replay: bool,
    },
    /// Records what the real server of a kubeconfig answers.
    Record {
        #[command(flatten)]
        which: Which,
        /// The real server.
        #[arg(long)]
        kubeconfig: PathBuf,
        /// How often each scenario runs; rounds that differ are an error.
        #[arg(long, default_value_t = 2)]
        rounds: usize,
    },
    /// Runs every scenario on both servers and compares.
    SideBySide {
        #[command(flatten)]
        which: Which,
        /// The real server.
        #[arg(long)]
        kubeconfig: PathBuf,
    },
    /// Seeds faults one by one, and says which scenario or test finds each.
    #[cfg(debug_assertions)]
    Faults(WhichFaults),
    /// Holds `opm` against the recorded answers of opm 1.73, `answers/opm.tar.xz` in the folder that
    /// `MAINSTAY_TESTDATA` names.
    Opm(OpmCases),
    /// Holds OLM classic against the recorded behaviour of the original, `answers/olm-classic.tar.xz` in
    /// the folder that `MAINSTAY_TESTDATA` names.
    Classic(ClassicCases),
    /// Has every package of published catalogs updated from its oldest to its newest version, and makes
    /// a page of what became of it.
    Walk(Walks),
    /// Counts scenarios and invocations of kubectl.
    List {
        #[command(flatten)]
        which: Which,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime.context("start").and_then(|runtime| runtime.block_on(run(arguments))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mainstay-conformance: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { home, kubectl, most, task } = arguments;
    if let Task::Opm(which) = &task {
        return hold_opm(&home, which, most);
    }
    if let Task::Classic(which) = &task {
        return hold_classic(&home, which, most).await;
    }
    if let Task::Walk(which) = &task {
        return walks(which).await;
    }
    let kubectl = Kubectl::find(kubectl.as_deref());
    let all = scenario::all(&home)?;
    let differences = Differences::read(&home)?;
    match task {
        // Above: nothing of a cluster is needed.
        Task::Opm(_) | Task::Classic(_) | Task::Walk(_) => Ok(()),
        Task::List { which } => {
            let (wanted, _) = choose(&all, which)?;
            let wanted: Vec<Scenario> = wanted.into_iter().cloned().collect();
            print!("{}", score::counts(&wanted));
            Ok(())
        }
        Task::Check { which, replay } => {
            let (wanted, complete) = choose(&all, which)?;
            let kubectl = match kubectl {
                Ok(_) if replay => None,
                Ok(kubectl) => {
                    println!("kubectl {}", kubectl.version);
                    Some(kubectl)
                }
                Err(why) => {
                    println!("recorded requests of kubectl are sent again: {why}");
                    None
                }
            };
            let recordings = check::recordings(&home, wanted.iter().copied())?;
            let ours = Server::embedded().await;
            let judged = check::against_recordings(
                &wanted,
                &recordings,
                &ours,
                kubectl.as_ref(),
                &differences,
            )
            .await;
            report(&judged, &differences, &all, complete, most)
        }
        Task::SideBySide { which, kubeconfig } => {
            let (wanted, complete) = choose(&all, which)?;
            let kubectl = kubectl.map_err(anyhow::Error::msg)?;
            let real = real(&kubeconfig).await?;
            let ours = Server::embedded().await;
            let both = check::side_by_side(&wanted, &real, &ours, &kubectl, &differences).await;
            for title in &both.late {
                println!("the real server said it late: {title}");
            }
            // A real server that is late more often is too busy to compare with.
            if both.late.len() * 100 > wanted.len() {
                bail!("in {} scenarios the real server was late", both.late.len());
            }
            report(&both.judged, &differences, &all, complete, most)
        }
        #[cfg(debug_assertions)]
        Task::Faults(which) => faults(&home, &all, &differences, &which).await,
        Task::Record { which, kubeconfig, rounds } => {
            let (wanted, _) = choose(&all, which)?;
            let kubectl = kubectl.map_err(anyhow::Error::msg)?;
            let real = real(&kubeconfig).await?;
            let wrong = check::record(&home, &all, &wanted, &real, &kubectl, rounds).await?;
            println!("{} of {} recorded", wanted.len() - wrong.len(), wanted.len());
            if wrong.is_empty() { Ok(()) } else { bail!("{}", wrong.join("\n")) }
        }
    }
}

#[cfg(debug_assertions)]
async fn faults(
    home: &Path,
    all: &[Scenario],
    differences: &Differences,
    which: &WhichFaults,
) -> anyhow::Result<()> {
    use futures::StreamExt;
    use mainstay_conformance::faults::list::{self, Fault};
    use mainstay_conformance::faults::processes;
    use mainstay_conformance::faults::report::Report;
    use mainstay_conformance::faults::scenarios::Hunter;
    use mainstay_conformance::faults::suites::Suites;
    /// How many faults a process hunts, one after the other.
    const AT_ONCE: usize = 4;
    let listed = list::read(home)?;
    let is_wanted = |fault: &&Fault| {
        if !which.here.is_empty() {
            return which.here.contains(&fault.name);
        }
        which.name.as_ref().is_none_or(|name| fault.name.contains(name.as_str()))
            && which.area.as_ref().is_none_or(|area| fault.area == *area)
            && match which.of {
                Some(FaultsOf::Kubernetes) => fault.is_of_kubernetes(),
                Some(FaultsOf::Operators) => !fault.is_of_kubernetes(),
                None => true,
            }
    };
    let wanted: Vec<&Fault> = listed.iter().filter(is_wanted).collect();
    if wanted.is_empty() {
        bail!("no fault is meant by that");
    }
    let (of_kubernetes, of_operators): (Vec<&Fault>, Vec<&Fault>) =
        wanted.into_iter().partition(|fault| fault.is_of_kubernetes());
    let mut report = Report::default();
    let apart = which.here.is_empty() && of_kubernetes.len() > AT_ONCE;
    if apart {
        // The slow ones of an area are not left to one process.
        let count = of_kubernetes.len().div_ceil(AT_ONCE);
        let shares = (0..count).map(|at| {
            let share = of_kubernetes.iter().skip(at).step_by(count);
            share.map(|fault| fault.name.clone()).collect::<Vec<String>>()
        });
        let hunts = |names: Vec<String>| {
            let mut arguments = vec!["faults".to_owned(), format!("--here={}", names.join(","))];
            arguments.extend(which.listed.then(|| "--listed".to_owned()));
            processes::hunt(home, arguments)
        };
        let mut hunted = futures::stream::iter(shares).map(hunts).buffered(which.jobs.max(1));
        while let Some(hunts) = hunted.next().await {
            for (name, hunt) in hunts? {
                let fault = of_kubernetes.iter().find(|fault| fault.name == name);
                let fault = fault.with_context(|| format!("there is no fault {name}"))?;
                println!("{}", report.add(fault, hunt));
            }
        }
        if report.len() != of_kubernetes.len() {
            bail!("{} faults were hunted of {}", report.len(), of_kubernetes.len());
        }
    } else if !of_kubernetes.is_empty() {
        let mut hunter = Hunter::new(home, all, differences)?;
        hunter.prepare(&of_kubernetes).await;
        for fault in of_kubernetes {
            let hunt = hunter.hunt(fault, which.listed).await;
            if which.here.is_empty() {
                println!("{}", report.add(fault, hunt));
            } else {
                println!("{}", serde_json::to_string(&(&fault.name, &hunt))?);
            }
        }
    }
    if !of_operators.is_empty() {
        let mut suites = Suites::build().await?;
        suites.prepare(&of_operators).await;
        suites.hunt(&of_operators, |fault, hunt| println!("{}", report.add(fault, hunt))).await;
    }
    if !which.here.is_empty() {
        // Whoever reads it judges all of them together.
        return Ok(());
    }
    print!("{}", report.total());
    report.verdict()
}

fn hold_opm(home: &Path, which: &OpmCases, most: usize) -> anyhow::Result<()> {
    let OpmCases { answers, area, name } = which;
    let unpacked = match answers {
        Some(_) => None,
        None => mainstay_testdata::unpack("answers/opm", "recorded answers of opm"),
    };
    let root = match (answers, &unpacked) {
        (Some(folder), _) => folder.clone(),
        (None, Some(folder)) => folder.path().join("opm"),
        (None, None) => bail!("the recorded answers of opm are not at hand"),
    };
    let mut cases = opm::case::all(&root)?;
    let scope = opm::scope::Scope::read(home)?;
    let out = scope.count(&cases);
    for (reason, count) in &out.reasons {
        println!("{count:>5} are out: {reason}");
    }
    cases.retain(|case| {
        scope.reason(case).is_none()
            && area.as_ref().is_none_or(|area| case.area == *area)
            && name.as_ref().is_none_or(|name| case.name.contains(name))
    });
    let archives = opm::place::Archives::unpack(&cases)?;
    cases.retain(|case| archives.has(case));
    let listed = opm::listed::Listed::read(home)?;
    let judged = opm::judge(&cases, &archives)?;
    let (text, good) = opm::report(&judged, &listed, most);
    print!("{text}");
    let mut faults = Vec::new();
    if answers.is_none() && area.is_none() && name.is_none() {
        faults.extend(out.unused);
        faults.extend(listed.faults(&judged));
    }
    if !good || !faults.is_empty() {
        bail!("not all cases are as they shall be\n{}", faults.join("\n"));
    }
    Ok(())
}

async fn hold_classic(home: &Path, which: &ClassicCases, most: usize) -> anyhow::Result<()> {
    let what = "recorded behaviour of OLM classic";
    let unpacked = match &which.answers {
        Some(_) => None,
        None => mainstay_testdata::unpack("answers/olm-classic", what),
    };
    let root = match (&which.answers, &unpacked) {
        (Some(folder), _) => folder.clone(),
        (None, Some(folder)) => folder.path().join("olm-classic"),
        (None, None) => bail!("the recorded behaviour of OLM classic is not at hand"),
    };
    let notes = mainstay_testdata::file("answers/olm-classic.md");
    let lists = std::sync::Arc::new(olm::listed::Lists::read(home, notes.as_deref())?);
    let mut cases = olm::case::all(&root)?;
    let count = cases.len();
    let named = |name: &str, it: &olm::case::Case| {
        let begins = name.strip_suffix('*').is_some_and(|part| it.rule.starts_with(part));
        it.id == name || it.rule == name || begins
    };
    cases.retain(|it| which.case.is_empty() || which.case.iter().any(|name| named(name, it)));
    let complete = cases.len() == count && which.answers.is_none();
    if cases.is_empty() {
        bail!("no case is meant by that");
    }
    let jobs = which.jobs.unwrap_or_else(olm::run::jobs);
    let hear = |it: &olm::run::Judged| {
        // What is known so far, for whoever waits; the lists come at the end.
        eprint!("{}", olm::report::case(it, &lists, false, 0));
    };
    let meant = cases.clone();
    let judged = olm::run::judge(cases, &lists, jobs, hear).await;
    for case in &judged {
        print!("{}", olm::report::case(case, &lists, which.all, most));
    }
    if which.propose {
        print!("{}", olm::listed::proposal(&judged));
    }
    print!("{}", olm::report::totals(&olm::report::score(&judged), &lists));
    let mut faults = lists.faults(&judged, complete);
    faults.extend(olm::assertions::Assertions::read(home)?.faults(&meant, &judged));
    if !faults.is_empty() {
        bail!("not all cases are as they shall be\n{}", faults.join("\n"));
    }
    Ok(())
}

async fn walks(which: &Walks) -> anyhow::Result<()> {
    let mut stocks = Vec::new();
    for catalog in &which.catalog {
        let (name, folder) = catalog.split_once('=').context("a catalog is NAME=FOLDER")?;
        stocks.push(walk::Stock::read(name, Path::new(folder))?);
    }
    if stocks.is_empty() {
        stocks = walk::published()?.context("the published catalogs are not at hand")?;
    }
    let mut items: Vec<walk::Item> = stocks.iter().flat_map(walk::Stock::items).collect();
    items.retain(|it| which.package.is_empty() || which.package.contains(&it.package));
    if let Some(share) = which.share {
        items = share.of(items);
    }
    if items.is_empty() {
        bail!("no package is meant by that");
    }
    let count = items.len();
    let items = std::sync::Arc::new(items);
    let done = std::sync::atomic::AtomicUsize::new(1);
    // What is known so far, for whoever waits.
    let hear = |it: &walk::Walk| {
        let at = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        eprintln!("{at}/{count} {} {}: {:?} {:?}", it.catalog, it.package, it.seen, it.end);
        if let Some(back) = &it.back {
            eprintln!("  stays {:?}", back.stays);
            back.wrong.iter().for_each(|wrong| eprintln!("  wrong: {wrong}"));
        }
    };
    let walked = match &which.kubeconfig {
        Some(kubeconfig) => {
            let beside = || Ok(std::env::current_exe()?.with_file_name("mainstay"));
            let program = which.mainstay.clone().map_or_else(beside, anyhow::Ok)?;
            let there = walk::There { kubeconfig: kubeconfig.clone(), program };
            walk::walk_there(&there, &stocks, &items, hear).await?
        }
        None => walk::walk(&items, which.back, which.jobs.unwrap_or_else(walk::jobs), hear).await,
    };
    let page = walk::table(&items, &walked);
    let complete = which.package.is_empty() && which.share.is_none() && which.catalog.is_empty();
    let faults = walk::faults(&walked, complete);
    if (which.back || which.kubeconfig.is_some()) && !faults.is_empty() {
        if let Some(path) = &which.table {
            std::fs::write(path, page).with_context(|| format!("write {}", path.display()))?;
        }
        bail!("not all packages go as they shall\n{}", faults.join("\n"));
    }
    if let Some(path) = &which.check {
        let old = std::fs::read_to_string(path);
        let old = old.with_context(|| format!("read {}", path.display()))?;
        if !complete {
            // Of the others nothing is known.
            let row = |it: &&str| it.starts_with("| `") && it.matches(" | ").count() > 6;
            let known: Vec<&str> = old.lines().collect();
            if let Some(new) = page.lines().filter(row).find(|it| !known.contains(it)) {
                bail!("{} does not have it so:\n+ {new}", path.display());
            }
            println!("walks: {count} packages, as in {}", path.display());
            return Ok(());
        }
        if let Some((old, new)) = old.lines().zip(page.lines()).find(|(old, new)| old != new) {
            bail!("{} is not what became of it:\n- {old}\n+ {new}", path.display());
        }
        if old != page {
            bail!("{} has another number of lines", path.display());
        }
        println!("walks: {count} packages, as in {}", path.display());
        return Ok(());
    }
    if let Some(path) = &which.table {
        return std::fs::write(path, page).with_context(|| format!("write {}", path.display()));
    }
    print!("{page}");
    Ok(())
}

async fn real(kubeconfig: &Path) -> anyhow::Result<Server> {
    let server = Server::at(kubeconfig).await?;
    let version = server.version().await.context("ask the real server")?;
    if !version.starts_with("v1.35.") {
        bail!("the real server is {version}, not 1.35");
    }
    Ok(server)
}

/// The scenarios that are meant, and whether these are all.
fn choose(all: &[Scenario], which: Which) -> anyhow::Result<(Vec<&Scenario>, bool)> {
    let Which { area, file, name } = which;
    let file = file.map(|file| file.trim_end_matches(".yaml").to_owned());
    let selection = Selection { area, file, name };
    let wanted: Vec<&Scenario> = all.iter().filter(|it| selection.has(it)).collect();
    if wanted.is_empty() {
        bail!("no scenario is meant by that");
    }
    Ok((wanted, selection.is_all()))
}

fn report(
    judged: &[Judged<'_>],
    differences: &Differences,
    all: &[Scenario],
    complete: bool,
    most: usize,
) -> anyhow::Result<()> {
    print!("{}", score::findings(judged, most));
    println!("{}", score::table(judged));
    let bad = judged.iter().filter(|judged| !judged.verdict.is_good()).count();
    let listed = judged.iter().filter(|judged| judged.verdict == check::Verdict::Listed).count();
    let wrong = if complete { differences.verdict(all, listed) } else { Vec::new() };
    if bad > 0 || !wrong.is_empty() {
        bail!("{bad} scenarios are not as they shall be\n{}", wrong.join("\n"));
    }
    Ok(())
}
