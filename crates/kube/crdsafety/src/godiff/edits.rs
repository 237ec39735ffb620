//! Edit scripts: which elements of two lists belong together.
//!
//! The search goes along diagonals of the edit graph, alternately from both ends, and takes the first
//! match that it finds. It is greedy and bounded, so the script need not be the shortest one.

/// A step from one list to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// Both have an equal element.
    Identity,
    /// Only the old list has the element.
    OnlyOld,
    /// Only the new list has the element.
    OnlyNew,
    /// Both have an element there, and the two are similar.
    Modified,
}

/// How alike two elements are: numbers of equal and of different parts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Likeness {
    pub(crate) same: usize,
    pub(crate) different: usize,
}

impl Likeness {
    /// Elements without parts, which are never similar.
    pub(crate) const fn of_atoms(equal: bool) -> Self {
        if equal { Self { same: 1, different: 0 } } else { Self { same: 0, different: 2 } }
    }

    const fn is_equal(self) -> bool {
        self.different == 0
    }

    const fn is_similar(self) -> bool {
        self.same + 1 >= self.different
    }
}

/// The edit script from a list of `old` elements to one of `new` elements.
pub(crate) fn edit_script(
    old: usize,
    new: usize,
    likeness: &mut dyn FnMut(usize, usize) -> Likeness,
) -> Vec<Edit> {
    let (end_x, end_y) = (signed(old), signed(new));
    let mut search = Search {
        front: Path { x: 0, y: 0, edits: Vec::new() },
        back: Path { x: end_x, y: end_y, edits: Vec::new() },
        front_frontier: (0, 0),
        back_frontier: (end_x, end_y),
        budget: 4 * (old + new),
        likeness,
    };
    let mut from_front = true;
    while !search.is_over() {
        if from_front {
            search.advance_front();
        } else {
            search.advance_back();
        }
        from_front = !from_front;
    }
    let back = search.back;
    let mut front = search.front;
    front.connect_front((back.x, back.y), search.likeness);
    front.edits.extend(back.edits.into_iter().rev());
    front.edits
}

/// Positions are signed, because diagonals leave the graph on both sides.
fn signed(number: usize) -> isize {
    isize::try_from(number).unwrap_or(isize::MAX)
}

/// An edit script that grows from one end.
struct Path {
    x: isize,
    y: isize,
    edits: Vec<Edit>,
}

type LikenessOf<'a> = &'a mut dyn FnMut(usize, usize) -> Likeness;

fn likeness_at(likeness: &mut dyn FnMut(usize, usize) -> Likeness, x: isize, y: isize) -> Likeness {
    likeness(x.unsigned_abs(), y.unsigned_abs())
}

impl Path {
    fn push(&mut self, edit: Edit, direction: isize) {
        self.edits.push(edit);
        if edit != Edit::OnlyNew {
            self.x += direction;
        }
        if edit != Edit::OnlyOld {
            self.y += direction;
        }
    }

    /// Goes on to a point behind.
    fn connect_front(&mut self, (x, y): (isize, isize), likeness: LikenessOf<'_>) {
        while x > self.x && y > self.y {
            let pair = likeness_at(likeness, self.x, self.y);
            let edit = edit_for(pair, x - self.x >= y - self.y);
            self.push(edit, 1);
        }
        while x > self.x {
            self.push(Edit::OnlyOld, 1);
        }
        while y > self.y {
            self.push(Edit::OnlyNew, 1);
        }
    }

    /// Goes back to a point before.
    fn connect_back(&mut self, (x, y): (isize, isize), likeness: LikenessOf<'_>) {
        while self.x > x && self.y > y {
            let pair = likeness_at(likeness, self.x - 1, self.y - 1);
            let edit = edit_for(pair, self.y - y < self.x - x);
            self.push(edit, -1);
        }
        while self.x > x {
            self.push(Edit::OnlyOld, -1);
        }
        while self.y > y {
            self.push(Edit::OnlyNew, -1);
        }
    }
}

fn edit_for(pair: Likeness, prefers_old: bool) -> Edit {
    if pair.is_equal() {
        Edit::Identity
    } else if pair.is_similar() {
        Edit::Modified
    } else if prefers_old {
        Edit::OnlyOld
    } else {
        Edit::OnlyNew
    }
}

struct Search<'a> {
    front: Path,
    back: Path,
    front_frontier: (isize, isize),
    back_frontier: (isize, isize),
    budget: usize,
    likeness: LikenessOf<'a>,
}

impl Search<'_> {
    fn is_over(&self) -> bool {
        self.front_frontier.0 >= self.back_frontier.0
            || self.front_frontier.1 >= self.back_frontier.1
            || self.budget == 0
    }

    fn are_equal(&mut self, x: isize, y: isize) -> bool {
        likeness_at(self.likeness, x, y).is_equal()
    }

    fn advance_front(&mut self) {
        let (mut ends, mut step) = ((false, false), 0);
        while !(ends.0 && ends.1) && self.budget > 0 {
            let offset = zigzag(step);
            step += 1;
            let (x, y) = (self.front_frontier.0 + offset, self.front_frontier.1 - offset);
            if x >= self.back.x || y < self.front.y {
                ends.0 = true;
            } else if y >= self.back.y || x < self.front.x {
                ends.1 = true;
            } else if self.are_equal(x, y) {
                self.front.connect_front((x, y), self.likeness);
                self.front.push(Edit::Identity, 1);
                while self.front.x < self.back.x
                    && self.front.y < self.back.y
                    && self.are_equal(self.front.x, self.front.y)
                {
                    self.front.push(Edit::Identity, 1);
                }
                self.front_frontier = (self.front.x, self.front.y);
                break;
            } else {
                self.budget -= 1;
            }
        }
        let (x, y) = self.front_frontier;
        let along_old = self.back.x - x >= self.back.y - y;
        self.front_frontier = if along_old { (x + 1, y) } else { (x, y + 1) };
    }

    fn advance_back(&mut self) {
        let (mut ends, mut step) = ((false, false), 0);
        while !(ends.0 && ends.1) && self.budget > 0 {
            let offset = zigzag(step);
            step += 1;
            let (x, y) = (self.back_frontier.0 - offset, self.back_frontier.1 + offset);
            if self.front.x >= x || self.back.y < y {
                ends.0 = true;
            } else if self.front.y >= y || self.back.x < x {
                ends.1 = true;
            } else if self.are_equal(x - 1, y - 1) {
                self.back.connect_back((x, y), self.likeness);
                self.back.push(Edit::Identity, -1);
                while self.front.x < self.back.x
                    && self.front.y < self.back.y
                    && self.are_equal(self.back.x - 1, self.back.y - 1)
                {
                    self.back.push(Edit::Identity, -1);
                }
                self.back_frontier = (self.back.x, self.back.y);
                break;
            } else {
                self.budget -= 1;
            }
        }
        let (x, y) = self.back_frontier;
        let along_old = x - self.front.x >= y - self.front.y;
        self.back_frontier = if along_old { (x - 1, y) } else { (x, y - 1) };
    }
}

/// 0, -1, 1, -2, 2, …
fn zigzag(step: isize) -> isize {
    if step % 2 == 0 { step / 2 } else { -(step + 1) / 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(old: &str, new: &str) -> String {
        let (old, new) = (old.as_bytes(), new.as_bytes());
        let mut likeness = |x: usize, y: usize| Likeness::of_atoms(old[x] == new[y]);
        let edits = edit_script(old.len(), new.len(), &mut likeness);
        let letter = |edit| match edit {
            Edit::Identity => '.',
            Edit::OnlyOld => 'X',
            Edit::OnlyNew => 'Y',
            Edit::Modified => 'M',
        };
        edits.into_iter().map(letter).collect()
    }

    #[test]
    fn edit_script_covers_both_lists() {
        let cases = [
            ("", "", ""),
            ("abc", "abc", "..."),
            ("", "ab", "YY"),
            ("ab", "", "XX"),
            ("abc", "ac", ".X."),
            ("ac", "abc", ".Y."),
        ];
        for (old, new, expected) in cases {
            assert_eq!(script(old, new), expected, "{old:?} to {new:?}");
        }
    }
}
