//! The names of the files in a data folder.

/// The lock file: locked while a process uses the folder; contains its process id.
pub(crate) const LOCK: &str = "lock";
/// The acknowledgement file.
pub(crate) const ACKNOWLEDGED: &str = "acknowledged";

/// The journal that continues a revision. Sixteen hexadecimal digits: the order of names is that of
/// revisions.
pub(crate) fn journal(base: u64) -> String {
    format!("journal-{base:016x}")
}

/// The snapshot of a revision.
pub(crate) fn snapshot(revision: u64) -> String {
    format!("snapshot-{revision:016x}")
}

/// The name of a file that is not complete yet; nothing depends on it.
pub(crate) fn unfinished(name: &str) -> String {
    format!("{name}{UNFINISHED}")
}

const UNFINISHED: &str = ".tmp";

/// The data files of a folder, in order of their revisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inventory {
    pub(crate) journals: Vec<u64>,
    pub(crate) snapshots: Vec<u64>,
    pub(crate) unfinished: Vec<String>,
}

impl Inventory {
    /// Sorts file names; unknown names are ignored.
    pub(crate) fn of(names: Vec<String>) -> Self {
        let mut inventory = Self::default();
        for name in names {
            let number = |prefix: &str| {
                let digits = name.strip_prefix(prefix).filter(|digits| digits.len() == 16)?;
                u64::from_str_radix(digits, 16).ok()
            };
            if let Some(base) = number("journal-") {
                inventory.journals.push(base);
            } else if let Some(revision) = number("snapshot-") {
                inventory.snapshots.push(revision);
            } else if name
                .strip_suffix(UNFINISHED)
                .is_some_and(|stem| stem.starts_with("snapshot-"))
            {
                inventory.unfinished.push(name);
            }
        }
        inventory.journals.sort_unstable();
        inventory.snapshots.sort_unstable();
        inventory
    }

    /// The names of all data files.
    pub(crate) fn data(&self) -> impl Iterator<Item = String> {
        let snapshots = self.snapshots.iter().copied().map(snapshot);
        snapshots.chain(self.journals.iter().copied().map(journal))
    }

    /// The files that a snapshot at a revision makes obsolete.
    pub(crate) fn obsolete(&self, revision: u64) -> impl Iterator<Item = String> {
        let older = move |base: &u64| *base < revision;
        let snapshots = self.snapshots.iter().copied().filter(older).map(snapshot);
        let journals = self.journals.iter().copied().filter(older).map(journal);
        snapshots.chain(journals).chain(self.unfinished.iter().cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_round_trip_and_unknown_files_are_ignored() {
        let names = [
            journal(255),
            journal(1),
            snapshot(254),
            unfinished(&snapshot(9)),
            "lost+found".into(),
        ];
        let inventory = Inventory::of(names.to_vec());
        assert_eq!(inventory.journals, [1, 255]);
        assert_eq!(inventory.snapshots, [254]);
        assert_eq!(
            inventory.obsolete(255).collect::<Vec<_>>(),
            [
                "snapshot-00000000000000fe",
                "journal-0000000000000001",
                "snapshot-0000000000000009.tmp"
            ]
        );
        assert_eq!(inventory.data().count(), 3);
    }
}
