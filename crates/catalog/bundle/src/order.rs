//! Go's order of images.
//!
//! Upstream sorts images by reference with Go's `sort.Slice`, which does not keep the order of equal
//! ones: what becomes of images with one reference and two names follows from its algorithm alone,
//! pattern-defeating quicksort with bounds of Go's own. It is written here over slices.

use crate::csv::RelatedImage;

/// Up to here, insertion sort.
const SMALL: usize = 12;
/// From here on, medians of three neighbours are compared for the pivot, and elements are shifted.
const LARGE: usize = 50;

type Image<'i> = &'i RelatedImage;

/// The images by reference, in the order Go gives them.
pub(crate) fn by_reference(images: &[RelatedImage]) -> Vec<RelatedImage> {
    let mut order: Vec<Image<'_>> = images.iter().collect();
    let limit = usize::BITS - order.len().leading_zeros();
    quick(&mut order, None, limit);
    order.into_iter().cloned().collect()
}

fn less(a: Image<'_>, b: Image<'_>) -> bool {
    a.image < b.image
}

/// Sorts images of which none is less than `before`.
fn quick<'i>(mut images: &mut [Image<'i>], mut before: Option<Image<'i>>, mut limit: u32) {
    let (mut balanced, mut untouched) = (true, true);
    while images.len() > SMALL {
        let length = images.len();
        if limit == 0 {
            heap(images);
            return;
        }
        if !balanced {
            scatter(images);
            limit -= 1;
        }
        let (mut pivot, trend) = choose(images);
        if trend == Trend::Falling {
            images.reverse();
            pivot = length - 1 - pivot;
        }
        if balanced && untouched && trend != Trend::Neither && finish(images) {
            return;
        }
        images.swap(0, pivot);
        if before.is_some_and(|before| !less(before, images[0])) {
            // The pivot is the least there is, and perhaps much is equal to it.
            let end = split(images, |image, pivot| !less(pivot, image)).0 + 1;
            before = Some(images[end - 1]);
            images = &mut images[end..];
            continue;
        }
        let (middle, kept) = split(images, less);
        images.swap(0, middle);
        untouched = kept;
        let pivot = images[middle];
        let (left, right) = images.split_at_mut(middle);
        let shorter = left.len().min(right.len());
        balanced = shorter >= length / 8;
        if left.len() < right.len() {
            quick(left, before, limit);
            before = Some(pivot);
            images = &mut right[1..];
        } else {
            quick(&mut right[1..], Some(pivot), limit);
            images = left;
        }
    }
    insertion(images);
}

fn insertion(images: &mut [Image<'_>]) {
    for end in 1..images.len() {
        sink(images, end);
    }
}

/// Moves an image towards the front until the one before it is not greater.
fn sink(images: &mut [Image<'_>], mut at: usize) {
    while at > 0 && less(images[at], images[at - 1]) {
        images.swap(at, at - 1);
        at -= 1;
    }
}

/// Brings what belongs `low` (in relation to the pivot, which stands first) before the rest. Returns
/// the position of the last such image, and whether all were in place.
fn split(images: &mut [Image<'_>], low: impl Fn(Image<'_>, Image<'_>) -> bool) -> (usize, bool) {
    let pivot = images[0];
    let (mut front, mut back) = (1, images.len() - 1);
    let mut untouched = true;
    loop {
        while front <= back && low(images[front], pivot) {
            front += 1;
        }
        while front <= back && !low(images[back], pivot) {
            back -= 1;
        }
        if front > back {
            return (back, untouched);
        }
        images.swap(front, back);
        front += 1;
        back -= 1;
        untouched = false;
    }
}

/// Sorts images of which few are out of order; says whether that was enough.
fn finish(images: &mut [Image<'_>]) -> bool {
    let mut at = 1;
    for _ in 0..5 {
        while at < images.len() && !less(images[at], images[at - 1]) {
            at += 1;
        }
        if at == images.len() {
            return true;
        }
        if images.len() < LARGE {
            return false;
        }
        images.swap(at, at - 1);
        sink(images, at - 1);
        let mut rising = at + 1;
        while rising < images.len() && less(images[rising], images[rising - 1]) {
            images.swap(rising, rising - 1);
            rising += 1;
        }
    }
    false
}

/// Breaks patterns: three images of the middle change places with others. The generator always
/// starts from the length, so the outcome is fixed.
fn scatter(images: &mut [Image<'_>]) {
    let length = images.len();
    let mask = (1 << (usize::BITS - length.leading_zeros())) - 1;
    let first = (length / 4) * 2 - 2;
    let mut state = length as u64;
    for at in first..first + 3 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // The mask leaves fewer bits than a length has.
        let other = usize::try_from(state & mask).unwrap_or_default();
        images.swap(at, if other >= length { other - length } else { other });
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Trend {
    Rising,
    Falling,
    Neither,
}

/// The position of the pivot, and how the images seem to be ordered.
fn choose(images: &[Image<'_>]) -> (usize, Trend) {
    let mut exchanges = 0;
    let mut median = |[mut a, mut b, mut c]: [usize; 3]| {
        for pair in [0, 1, 0] {
            let (low, high) = if pair == 0 { (&mut a, &mut b) } else { (&mut b, &mut c) };
            if less(images[*high], images[*low]) {
                std::mem::swap(low, high);
                exchanges += 1;
            }
        }
        b
    };
    let quarter = images.len() / 4;
    let mut candidates = [quarter, quarter * 2, quarter * 3];
    if images.len() >= LARGE {
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

/// What remains when pivots were bad too often.
fn heap(images: &mut [Image<'_>]) {
    let sift = |images: &mut [Image<'_>], mut root: usize, end: usize| {
        loop {
            let mut child = 2 * root + 1;
            if child >= end {
                return;
            }
            if child + 1 < end && less(images[child], images[child + 1]) {
                child += 1;
            }
            if !less(images[root], images[child]) {
                return;
            }
            images.swap(root, child);
            root = child;
        }
    };
    let length = images.len();
    for root in (0..=(length - 1) / 2).rev() {
        sift(images, root, length);
    }
    for end in (0..length).rev() {
        images.swap(0, end);
        sift(images, 0, end);
    }
}
