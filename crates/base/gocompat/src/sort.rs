//! Go's `sort.Slice`: pattern-defeating quicksort with Go's parameters.
//!
//! This sort does not keep the order of equal items. The order of two items with one reference, or of two
//! bundles with one name, follows from its algorithm alone. It is implemented for slices of `Copy` items,
//! such as references.

/// The maximum length for insertion sort.
const SMALL: usize = 12;
/// The minimum length for pivots from medians of three adjacent items, and for shifting items.
const LARGE: usize = 50;

/// Sorts items as Go's `sort.Slice` does, equal ones too.
pub fn sort_slice<T: Copy>(items: &mut [T], less: impl Fn(&T, &T) -> bool) {
    let limit = usize::BITS - items.len().leading_zeros();
    quick_sort(items, None, limit, &less);
}

/// Whether one item comes before another.
type Less<'l, T> = &'l dyn Fn(&T, &T) -> bool;

/// Sorts items of which none is less than `before`.
fn quick_sort<T: Copy>(
    mut items: &mut [T],
    mut before: Option<T>,
    mut limit: u32,
    less: Less<'_, T>,
) {
    let (mut balanced, mut untouched) = (true, true);
    while items.len() > SMALL {
        let length = items.len();
        if limit == 0 {
            heap_sort(items, less);
            return;
        }
        if !balanced {
            break_patterns(items);
            limit -= 1;
        }
        let (mut pivot, trend) = choose_pivot(items, less);
        if trend == Trend::Falling {
            items.reverse();
            pivot = length - 1 - pivot;
        }
        if balanced && untouched && trend != Trend::Neither && partial_insertion_sort(items, less) {
            return;
        }
        items.swap(0, pivot);
        if before.is_some_and(|before| !less(&before, &items[0])) {
            // The pivot is the smallest item, and many items may be equal to it.
            let end = partition(items, |item, pivot| !less(pivot, item)).0 + 1;
            before = Some(items[end - 1]);
            items = &mut items[end..];
            continue;
        }
        let (middle, in_place) = partition(items, less);
        items.swap(0, middle);
        untouched = in_place;
        let pivot = items[middle];
        let (left, right) = items.split_at_mut(middle);
        let shorter = left.len().min(right.len());
        balanced = shorter >= length / 8;
        if left.len() < right.len() {
            quick_sort(left, before, limit, less);
            before = Some(pivot);
            items = &mut right[1..];
        } else {
            quick_sort(&mut right[1..], Some(pivot), limit, less);
            items = left;
        }
    }
    insertion_sort(items, less);
}

fn insertion_sort<T: Copy>(items: &mut [T], less: Less<'_, T>) {
    for end in 1..items.len() {
        sink(items, end, less);
    }
}

/// Moves an item towards the front until the one before it is not greater.
fn sink<T: Copy>(items: &mut [T], mut at: usize, less: Less<'_, T>) {
    while at > 0 && less(&items[at], &items[at - 1]) {
        items.swap(at, at - 1);
        at -= 1;
    }
}

/// Moves the items that are `low` (compared with the pivot, the first item) before the others. Returns
/// the index of the last low item, and whether all items were in place.
fn partition<T: Copy>(items: &mut [T], low: impl Fn(&T, &T) -> bool) -> (usize, bool) {
    let pivot = items[0];
    let (mut front, mut back) = (1, items.len() - 1);
    let mut untouched = true;
    loop {
        while front <= back && low(&items[front], &pivot) {
            front += 1;
        }
        while front <= back && !low(&items[back], &pivot) {
            back -= 1;
        }
        if front > back {
            return (back, untouched);
        }
        items.swap(front, back);
        front += 1;
        back -= 1;
        untouched = false;
    }
}

/// Sorts items of which few are out of order; returns whether they are sorted now.
fn partial_insertion_sort<T: Copy>(items: &mut [T], less: Less<'_, T>) -> bool {
    let mut at = 1;
    for _ in 0..5 {
        while at < items.len() && !less(&items[at], &items[at - 1]) {
            at += 1;
        }
        if at == items.len() {
            return true;
        }
        if items.len() < LARGE {
            return false;
        }
        items.swap(at, at - 1);
        sink(items, at - 1, less);
        let mut rising = at + 1;
        while rising < items.len() && less(&items[rising], &items[rising - 1]) {
            items.swap(rising, rising - 1);
            rising += 1;
        }
    }
    false
}

/// Breaks patterns: swaps three items of the middle with others. The random generator starts from the
/// length, so the result is deterministic.
fn break_patterns<T: Copy>(items: &mut [T]) {
    let length = items.len();
    let mask = (1 << (usize::BITS - length.leading_zeros())) - 1;
    let first = (length / 4) * 2 - 1;
    let mut state = length as u64;
    for at in first..first + 3 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // The mask leaves fewer bits than a length has.
        let other = usize::try_from(state & mask).unwrap_or_default();
        items.swap(at, if other >= length { other - length } else { other });
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Trend {
    Rising,
    Falling,
    Neither,
}

/// The index of the pivot, and the likely order of the items.
fn choose_pivot<T: Copy>(items: &[T], less: Less<'_, T>) -> (usize, Trend) {
    let mut exchanges = 0;
    let mut median = |[mut a, mut b, mut c]: [usize; 3]| {
        for pair in [0, 1, 0] {
            let (low, high) = if pair == 0 { (&mut a, &mut b) } else { (&mut b, &mut c) };
            if less(&items[*high], &items[*low]) {
                std::mem::swap(low, high);
                exchanges += 1;
            }
        }
        b
    };
    let quarter = items.len() / 4;
    let mut candidates = [quarter, quarter * 2, quarter * 3];
    if items.len() >= LARGE {
        candidates = candidates.map(|at| median([at - 1, at, at + 1]));
    }
    let pivot = median(candidates);
    let trend = match exchanges {
        0 => Trend::Rising,
        12 => Trend::Falling,
        _ => Trend::Neither,
    };
    (pivot, trend)
}

/// Heapsort, after too many bad pivots.
fn heap_sort<T: Copy>(items: &mut [T], less: Less<'_, T>) {
    let sift = |items: &mut [T], mut root: usize, end: usize| {
        loop {
            let mut child = 2 * root + 1;
            if child >= end {
                return;
            }
            if child + 1 < end && less(&items[child], &items[child + 1]) {
                child += 1;
            }
            if !less(&items[root], &items[child]) {
                return;
            }
            items.swap(root, child);
            root = child;
        }
    };
    let length = items.len();
    for root in (0..=(length - 1) / 2).rev() {
        sift(items, root, length);
    }
    for end in (0..length).rev() {
        items.swap(0, end);
        sift(items, 0, end);
    }
}

#[cfg(test)]
mod tests {
    use super::sort_slice;

    /// A hash of the order of a sorted list with many equal items.
    fn order_hash(length: u32, spread: u32) -> u64 {
        let mut state = length * 31 + spread;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % (spread * spread + 1)
        };
        let mut items: Vec<(u32, u32)> = (0..length).map(|at| (next(), at)).collect();
        sort_slice(&mut items, |a, b| a.0 < b.0);
        assert!(items.is_sorted_by_key(|item| item.0));
        let hash =
            |sum: u64, item: &(u32, u32)| sum.wrapping_mul(1_000_003).wrapping_add(item.1.into());
        items.iter().fold(0, hash)
    }

    #[test]
    fn equal_items_have_the_order_of_go() {
        // The same hash after `sort.Slice` of Go 1.26.
        for (length, spread, expected) in [
            (7, 1, 4_592_078_443_263_250_691),
            (14, 2, 1_343_029_705_268_950_825),
            (28, 1, 14_448_001_759_358_501_808),
            (28, 5, 12_718_430_501_999_753_194),
            (35, 2, 6_558_758_925_364_552_761),
            (49, 3, 11_121_445_904_127_312_588),
            (56, 1, 6_615_027_409_715_275_754),
            (77, 4, 9_518_115_596_062_988_190),
            (126, 1, 9_552_807_450_323_606_711),
            (126, 5, 7_268_655_986_061_790_801),
        ] {
            assert_eq!(order_hash(length, spread), expected, "{length} {spread}");
        }
    }
}
