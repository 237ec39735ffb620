//! FNV hashes and the alphabet of generated names.
//!
//! Clients find several objects by a hash in their name: ReplicaSets, RBAC of OLM, annotation keys
//! on CRDs. All of these hashes are Go's `hash/fnv`.

/// 32-bit FNV-1a.
pub const fn fnv32a(data: &[u8]) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    let mut at = 0;
    while at < data.len() {
        hash ^= data[at] as u32;
        hash = hash.wrapping_mul(0x0100_0193);
        at += 1;
    }
    hash
}

/// 64-bit FNV-1a.
pub const fn fnv64a(data: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut at = 0;
    while at < data.len() {
        hash ^= data[at] as u64;
        hash = hash.wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}

/// Letters of generated names, without vowels and look-alikes (`k8s.io/apimachinery/pkg/util/rand`).
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Encodes a text with the letters of generated names, as `rand.SafeEncodeString` does: one letter
/// for each byte.
pub fn safe_encode(text: &str) -> String {
    text.bytes().map(|byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()])).collect()
}

/// `count` random letters for a generated name.
///
/// # Panics
/// If the operating system provides no random bytes.
pub fn random_suffix(count: usize) -> String {
    let mut bytes = vec![0; count];
    #[expect(clippy::expect_used, reason = "a system without randomness cannot run TLS either")]
    getrandom::fill(&mut bytes).expect("the operating system gives randomness");
    bytes.iter().map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect()
}

/// A random (version 4) UUID in the usual text form.
///
/// # Panics
/// As [`random_suffix`].
pub fn random_uid() -> String {
    let mut b = [0_u8; 16];
    #[expect(clippy::expect_used, reason = "a system without randomness cannot run TLS either")]
    getrandom::fill(&mut b).expect("the operating system gives randomness");
    b[6] = (b[6] & 0x0f) | 0x40;
    b[8] = (b[8] & 0x3f) | 0x80;
    let number = u128::from_be_bytes(b);
    let hex = format!("{number:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_match_the_fnv_reference_values() {
        assert_eq!(fnv32a(b""), 0x811c_9dc5);
        assert_eq!(fnv32a(b"a"), 0xe40c_292c);
        assert_eq!(fnv64a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv64a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn uids_are_version_four() {
        let uid = random_uid();
        assert_eq!(uid.len(), 36);
        assert_eq!(&uid[14..15], "4");
        assert!(matches!(&uid[19..20], "8" | "9" | "a" | "b"));
    }

    #[test]
    fn safe_encode_keeps_the_length_and_uses_the_alphabet() {
        assert_eq!(safe_encode("0"), "4");
        assert_eq!(safe_encode("12345").len(), 5);
        assert!(random_suffix(40).bytes().all(|b| ALPHABET.contains(&b)));
    }
}
