//! Decimal numbers of any length.
//!
//! Each byte has one digit, because all operations (compare, add, round at a digit) work on digits. Such
//! numbers are so rare that memory does not matter.

use std::cmp::Ordering;

/// The maximum number of digits. Exponents reach two billion, and the sum of two numbers needs the zeros
/// between them.
const MAX_DIGITS: usize = 1 << 20;

/// `± digits · 10^power`
#[derive(Clone, Debug)]
pub(crate) struct Decimal {
    negative: bool,
    /// Values 0 to 9; the first digit is not zero; empty for zero.
    digits: Vec<u8>,
    power: i32,
}

impl Decimal {
    pub(crate) fn new(value: i64, power: i32) -> Self {
        let digits = value.unsigned_abs().to_string();
        let mut number = Self {
            negative: value < 0,
            digits: digits.bytes().map(|digit| digit - b'0').collect(),
            power,
        };
        number.trim();
        number
    }

    /// `integer.fraction · 10^exponent`; none with too many digits.
    pub(crate) fn from_digits(integer: &str, fraction: &str, exponent: i32) -> Option<Self> {
        if integer.len() + fraction.len() > MAX_DIGITS {
            return None;
        }
        let digits = integer.bytes().chain(fraction.bytes()).map(|digit| digit - b'0').collect();
        let power = exponent.wrapping_sub(i32::try_from(fraction.len()).ok()?);
        let mut number = Self { negative: false, digits, power };
        number.trim();
        Some(number)
    }

    /// Removes leading zeros.
    fn trim(&mut self) {
        let zeros = self.digits.iter().take_while(|digit| **digit == 0).count();
        self.digits.drain(..zeros);
        if self.digits.is_empty() {
            self.negative = false;
        }
    }

    pub(crate) fn sign(&self) -> i64 {
        match (self.digits.is_empty(), self.negative) {
            (true, _) => 0,
            (_, true) => -1,
            (_, false) => 1,
        }
    }

    pub(crate) fn negated(&self) -> Self {
        Self { negative: !self.negative && !self.digits.is_empty(), ..self.clone() }
    }

    /// The number times `2^shift`, for a shift of at most 60.
    pub(crate) fn shifted_left(mut self, shift: u32) -> Self {
        let mut carry = 0_u128;
        for digit in self.digits.iter_mut().rev() {
            carry += u128::from(*digit) << shift;
            *digit = (carry % 10) as u8;
            carry /= 10;
        }
        let mut front = Vec::new();
        while carry > 0 {
            front.push((carry % 10) as u8);
            carry /= 10;
        }
        self.digits.splice(..0, front.into_iter().rev());
        self
    }

    /// The number with exactly this power, rounded away from zero. None with too many digits.
    pub(crate) fn rounded_up(mut self, power: i32) -> Option<Self> {
        let excess = i64::from(power) - i64::from(self.power);
        let Ok(excess) = usize::try_from(excess) else {
            return self.with_power(power);
        };
        let length = self.digits.len().saturating_sub(excess);
        let inexact = self.digits.drain(length..).any(|digit| digit != 0);
        self.power = power;
        if inexact {
            let mut at = length;
            loop {
                let Some(before) = at.checked_sub(1) else {
                    self.digits.insert(0, 1);
                    break;
                };
                at = before;
                if self.digits[at] < 9 {
                    self.digits[at] += 1;
                    break;
                }
                self.digits[at] = 0;
            }
        }
        Some(self)
    }

    /// The same number with a smaller power and more zeros.
    fn with_power(mut self, power: i32) -> Option<Self> {
        let zeros = usize::try_from(i64::from(self.power) - i64::from(power)).ok()?;
        if !self.digits.is_empty() {
            let length = self.digits.len().checked_add(zeros).filter(|all| *all <= MAX_DIGITS)?;
            self.digits.resize(length, 0);
        }
        self.power = power;
        Some(self)
    }

    pub(crate) fn add(&self, other: &Self) -> Option<Self> {
        let power = self.power.min(other.power);
        let one = self.clone().with_power(power)?;
        let other = other.clone().with_power(power)?;
        if one.negative == other.negative {
            let digits = add_digits(&one.digits, &other.digits);
            return Some(Self { negative: one.negative, digits, power });
        }
        let (more, less) = match compare_magnitude(&one, &other) {
            Ordering::Less => (other, one),
            _ => (one, other),
        };
        let digits = subtract_digits(&more.digits, &less.digits);
        let mut difference = Self { negative: more.negative, digits, power };
        difference.trim();
        Some(difference)
    }

    /// The nearest float to the digits, times the float of the power.
    pub(crate) fn as_float(&self) -> f64 {
        let text: String = self.digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        let base: f64 = text.parse().unwrap_or(0.0);
        scaled(if self.negative { -base } else { base }, self.power)
    }
}

/// `base · 10^power` with upstream's rounding: the power is computed first.
pub(crate) fn scaled(base: f64, power: i32) -> f64 {
    const LOW: [f64; 32] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
        1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31,
    ];
    const HIGH: [f64; 10] = [1e0, 1e32, 1e64, 1e96, 1e128, 1e160, 1e192, 1e224, 1e256, 1e288];
    const SMALL: [f64; 11] =
        [1e-0, 1e-32, 1e-64, 1e-96, 1e-128, 1e-160, 1e-192, 1e-224, 1e-256, 1e-288, 1e-320];
    let at = power.unsigned_abs() as usize;
    base * match power {
        0 => return base,
        1..=308 => HIGH[at / 32] * LOW[at % 32],
        309.. => f64::INFINITY,
        -323..=-1 => SMALL[at / 32] / LOW[at % 32],
        _ => 0.0,
    }
}

/// Compares the absolute values.
fn compare_magnitude(one: &Decimal, other: &Decimal) -> Ordering {
    let top = |number: &Decimal| {
        i64::try_from(number.digits.len()).unwrap_or(i64::MAX).saturating_add(number.power.into())
    };
    match (one.digits.is_empty(), other.digits.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Less,
        (false, true) => return Ordering::Greater,
        (false, false) => {}
    }
    top(one).cmp(&top(other)).then_with(|| {
        let length = one.digits.len().max(other.digits.len());
        let padded = |number: &Decimal, at: usize| number.digits.get(at).copied().unwrap_or(0);
        (0..length)
            .map(|at| padded(one, at).cmp(&padded(other, at)))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    })
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.sign(), other.sign()) {
            (1, 1) => compare_magnitude(self, other),
            (-1, -1) => compare_magnitude(other, self),
            (one, other) => one.cmp(&other),
        }
    }
}

fn add_digits(one: &[u8], other: &[u8]) -> Vec<u8> {
    let mut sum = Vec::with_capacity(one.len().max(other.len()) + 1);
    let mut carry = 0;
    for back in 0..one.len().max(other.len()) {
        let digit = carry + from_back(one, back) + from_back(other, back);
        sum.push(digit % 10);
        carry = digit / 10;
    }
    if carry > 0 {
        sum.push(carry);
    }
    sum.reverse();
    sum
}

/// Subtracts digits of a number that is not larger.
fn subtract_digits(more: &[u8], less: &[u8]) -> Vec<u8> {
    let mut rest = Vec::with_capacity(more.len());
    let mut borrowed = 0;
    for back in 0..more.len() {
        let digit = 10 + from_back(more, back) - from_back(less, back) - borrowed;
        rest.push(digit % 10);
        borrowed = u8::from(digit < 10);
    }
    rest.reverse();
    rest
}

fn from_back(digits: &[u8], back: usize) -> u8 {
    digits.len().checked_sub(back + 1).map_or(0, |at| digits[at])
}
