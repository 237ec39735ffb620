//! Memory and processor time of processes, from Linux' `/proc`.

use anyhow::{Context, Result};
use std::fs;
use std::time::Duration;

/// The sum of memory and processor time of some processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Resident memory, in bytes.
    pub(crate) memory: u64,
    /// User and system time since their start.
    pub(crate) processor: Duration,
}

/// Clock ticks per second in `/proc`: a constant of the interface, independent of the kernel's own.
const TICKS: u64 = 100;

impl Usage {
    /// The usage of these processes; zero for none.
    pub(crate) fn of(processes: &[u32]) -> Result<Self> {
        let mut usage = Self::default();
        for id in processes {
            let read = |name: &str| {
                let path = format!("/proc/{id}/{name}");
                fs::read_to_string(&path).with_context(|| format!("reading {path}"))
            };
            usage.memory += memory(&read("status")?).context("a process without memory")?;
            usage.processor += processor(&read("stat")?).context("a process without times")?;
        }
        Ok(usage)
    }
}

/// The current and the peak resident memory of this process, in bytes.
pub(crate) fn own_memory() -> Result<(u64, u64)> {
    let status = fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
    let now = memory(&status).context("a process without memory")?;
    Ok((now, kilobytes(&status, "VmHWM:").unwrap_or(now)))
}

/// The peak resident memory of a process, in bytes.
pub(crate) fn peak(process: u32) -> Result<u64> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    kilobytes(&status, "VmHWM:").context("a process without memory")
}

/// The anonymous memory of a process, in bytes: mostly that of its allocator.
pub(crate) fn anonymous(process: u32) -> Result<u64> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    kilobytes(&status, "RssAnon:").context("a process without memory")
}

fn memory(status: &str) -> Option<u64> {
    kilobytes(status, "VmRSS:")
}

fn kilobytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

fn processor(stat: &str) -> Option<Duration> {
    // The second field is the program's name in parentheses, which may contain anything.
    let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 1000 / TICKS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_stat_is_parsed_for_any_program_name() {
        assert_eq!(memory("Name:\tx\nVmRSS:\t    1234 kB\n"), Some(1234 * 1024));
        let (now, most) = own_memory().unwrap();
        assert!(now > 0 && most > 0);
        assert!(anonymous(std::process::id()).unwrap() > 0);
        let stat = "7 (a) (b c) S 1 7 7 0 -1 4194304 90 0 0 0 150 50 0 0 20 0 1 0 100";
        assert_eq!(processor(stat), Some(Duration::from_secs(2)));
        assert!(Usage::of(&[std::process::id()]).unwrap().memory > 0);
    }
}
