//! Media type detection by content, with the rules of upstream's libraries.
//!
//! Only images matter; of all other types, only the name is needed for the error.

use regex::bytes::Regex;
use std::sync::LazyLock;

/// Images except SVG and HEIF: the type, and the bytes at an offset that identify it.
#[rustfmt::skip]
const IMAGES: &[Row] = &[
    ("image/jpeg", 3, &[(0, b"\xff\xd8\xff")]),
    ("image/jp2", 13, &[(0, b"\0\0\0\x0cjP  \r\n\x87\n\0")]),
    ("image/png", 4, &[(0, b"\x89PNG")]),
    ("image/gif", 3, &[(0, b"GIF")]),
    ("image/webp", 12, &[(8, b"WEBP")]),
    ("image/x-canon-cr2", 11, &[(0, b"II*\0"), (8, b"CR\x02")]),
    ("image/x-canon-cr2", 11, &[(0, b"MM\0*"), (8, b"CR\x02")]),
    ("image/tiff", 11, &[(0, b"II*\0")]),
    ("image/tiff", 11, &[(0, b"MM\0*")]),
    ("image/bmp", 2, &[(0, b"BM")]),
    ("image/vnd.ms-photo", 3, &[(0, b"II\xbc")]),
    ("image/vnd.adobe.photoshop", 4, &[(0, b"8BPS")]),
    ("image/vnd.microsoft.icon", 4, &[(0, b"\0\0\x01\0")]),
    ("image/vnd.dwg", 4, &[(0, b"AC10")]),
];

/// Programs, which are tested before images.
#[rustfmt::skip]
const PROGRAMS: &[Row] = &[
    ("application/wasm", 8, &[(0, b"\0asm\x01\0\0\0")]),
    ("application/vnd.android.dex", 37, &[(0, b"dex\n"), (36, b"p")]),
    ("application/vnd.android.dey", 101, &[(0, b"dey\n"), (40, b"dex\n"), (76, b"p")]),
];

/// All other types, in the order of the tests.
#[rustfmt::skip]
const OTHERS: &[Row] = &[
    ("video/x-m4v", 11, &[(4, b"ftypM4V")]),
    ("video/quicktime", 16, &[(0, b"\0\0\0\x14ftyp")]),
    ("video/quicktime", 16, &[(4, b"moov")]),
    ("video/quicktime", 16, &[(4, b"mdat")]),
    ("video/quicktime", 16, &[(12, b"mdat")]),
    ("video/x-msvideo", 11, &[(0, b"RIFF"), (8, b"AVI")]),
    ("video/x-ms-wmv", 10, &[(0, b"0&\xb2u\x8ef\xcf\x11\xa6\xd9")]),
    ("video/x-flv", 4, &[(0, b"FLV\x01")]),
    ("video/3gpp", 11, &[(4, b"ftyp3gp")]),
    ("audio/midi", 4, &[(0, b"MThd")]),
    ("audio/mpeg", 3, &[(0, b"ID3")]),
    ("audio/mpeg", 3, &[(0, b"\xff\xfb")]),
    ("audio/m4a", 11, &[(4, b"ftypM4A")]),
    ("audio/m4a", 11, &[(0, b"M4A ")]),
    ("audio/ogg", 4, &[(0, b"OggS")]),
    ("audio/x-flac", 4, &[(0, b"fLaC")]),
    ("audio/x-wav", 12, &[(0, b"RIFF"), (8, b"WAVE")]),
    ("audio/amr", 12, &[(0, b"#!AMR\n")]),
    ("audio/aac", 2, &[(0, b"\xff\xf1")]),
    ("audio/aac", 2, &[(0, b"\xff\xf9")]),
    ("audio/x-aiff", 12, &[(0, b"FORM"), (8, b"AIFF")]),
    ("application/font-woff", 8, &[(0, b"wOFF\0\x01\0\0")]),
    ("application/font-woff", 8, &[(0, b"wOF2\0\x01\0\0")]),
    ("application/font-sfnt", 5, &[(0, b"\0\x01\0\0\0")]),
    ("application/font-sfnt", 5, &[(0, b"OTTO\0")]),
    ("application/msword", 514, &[(0, b"\xd0\xcf\x11\xe0"), (512, b"\xec\xa5")]),
    ("application/vnd.ms-excel", 514, &[(0, b"\xd0\xcf\x11\xe0"), (512, b"\x09\x08")]),
    ("application/vnd.ms-powerpoint", 514, &[(0, b"\xd0\xcf\x11\xe0"), (512, b"\xa0\x46")]),
    ("application/epub+zip", 58, &[(0, b"PK\x03\x04mimetypeapplication/epub+zip")]),
    ("application/x-tar", 262, &[(257, b"ustar")]),
    ("application/vnd.rar", 7, &[(0, b"Rar!\x1a\x07\0")]),
    ("application/vnd.rar", 7, &[(0, b"Rar!\x1a\x07\x01")]),
    ("application/gzip", 3, &[(0, b"\x1f\x8b\x08")]),
    ("application/x-bzip2", 3, &[(0, b"BZh")]),
    ("application/x-7z-compressed", 6, &[(0, b"7z\xbc\xaf'\x1c")]),
    ("application/x-xz", 6, &[(0, b"\xfd7zXZ\0")]),
    ("application/zstd", 4, &[(0, b"\x28\xb5\x2f\xfd")]),
    ("application/pdf", 4, &[(0, b"%PDF")]),
    ("application/vnd.microsoft.portable-executable", 2, &[(0, b"MZ")]),
    ("application/x-shockwave-flash", 3, &[(0, b"CWS")]),
    ("application/x-shockwave-flash", 3, &[(0, b"FWS")]),
    ("application/rtf", 5, &[(0, b"{\\rtf")]),
    ("application/octet-stream", 36, &[(34, b"LP"), (8, b"\x02\0\x01")]),
    ("application/octet-stream", 36, &[(34, b"LP"), (8, b"\x01\0\0")]),
    ("application/octet-stream", 36, &[(34, b"LP"), (8, b"\x02\0\x02")]),
    ("application/postscript", 2, &[(0, b"%!")]),
    ("application/vnd.sqlite3", 4, &[(0, b"SQLi")]),
    ("application/x-nintendo-nes-rom", 4, &[(0, b"NES\x1a")]),
    ("application/x-google-chrome-extension", 4, &[(0, b"Cr24")]),
    ("application/vnd.ms-cab-compressed", 4, &[(0, b"MSCF")]),
    ("application/vnd.ms-cab-compressed", 4, &[(0, b"ISc(")]),
    ("application/vnd.debian.binary-package", 21, &[(0, b"!<arch>\ndebian-binary")]),
    ("application/x-unix-archive", 7, &[(0, b"!<arch>")]),
    ("application/x-compress", 2, &[(0, b"\x1f\xa0")]),
    ("application/x-compress", 2, &[(0, b"\x1f\x9d")]),
    ("application/x-lzip", 4, &[(0, b"LZIP")]),
    ("application/x-rpm", 97, &[(0, b"\xed\xab\xee\xdb")]),
    ("application/x-executable", 53, &[(0, b"\x7fELF")]),
    ("application/dicom", 132, &[(128, b"DICM")]),
    ("application/x-iso9660-image", 32774, &[(32769, b"CD001")]),
    ("application/x-mach-binary", 4, &[(0, b"\xfe\xed\xfa\xcf")]),
    ("application/x-mach-binary", 4, &[(0, b"\xfe\xed\xfa\xce")]),
    ("application/x-mach-binary", 4, &[(0, b"\xbe\xba\xfe\xca")]),
    ("application/x-mach-binary", 4, &[(0, b"\xcf\xfa\xed\xfe")]),
    ("application/x-mach-binary", 4, &[(0, b"\xce\xfa\xed\xfe")]),
    ("application/x-mach-binary", 4, &[(0, b"\xca\xfe\xba\xbe")]),
];

/// Brands of MP4.
const MP4: [&[u8; 4]; 28] = [
    b"avc1", b"dash", b"iso2", b"iso3", b"iso4", b"iso5", b"iso6", b"isom", b"mmp4", b"mp41",
    b"mp42", b"mp4v", b"mp71", b"MSNV", b"NDAS", b"NDSC", b"NSDC", b"NDSH", b"NDSM", b"NDSP",
    b"NDSS", b"NDXC", b"NDXH", b"NDXM", b"NDXP", b"NDXS", b"F4V ", b"F4P ",
];

/// A type, the minimum length, and the bytes at their offsets.
type Row = (&'static str, usize, &'static [(usize, &'static [u8])]);

/// The number of bytes of a file that detection reads.
pub(super) const MAX_PREFIX: u64 = 8192;

/// File name extensions that are not the second part of the media type.
#[rustfmt::skip]
const EXTENSIONS: &[(&str, &str)] = &[
    ("image/svg+xml", "svg"), ("image/jpeg", "jpg"), ("image/x-canon-cr2", "cr2"),
    ("image/tiff", "tif"), ("image/vnd.ms-photo", "jxr"), ("image/vnd.adobe.photoshop", "psd"),
    ("image/vnd.microsoft.icon", "ico"), ("image/vnd.dwg", "dwg"),
    ("application/vnd.android.dex", "dex"), ("application/vnd.android.dey", "dey"),
    ("application/epub+zip", "epub"), ("application/x-tar", "tar"), ("application/vnd.rar", "rar"),
    ("application/gzip", "gz"), ("application/x-bzip2", "bz2"), ("application/x-7z-compressed", "7z"),
    ("application/x-xz", "xz"), ("application/zstd", "zst"),
    ("application/vnd.microsoft.portable-executable", "exe"),
    ("application/x-shockwave-flash", "swf"), ("application/octet-stream", "eot"),
    ("application/postscript", "ps"), ("application/vnd.sqlite3", "sqlite"),
    ("application/x-nintendo-nes-rom", "nes"), ("application/x-google-chrome-extension", "crx"),
    ("application/vnd.ms-cab-compressed", "cab"), ("application/vnd.debian.binary-package", "deb"),
    ("application/x-unix-archive", "ar"), ("application/x-compress", "Z"),
    ("application/x-lzip", "lz"), ("application/x-rpm", "rpm"), ("application/x-executable", "elf"),
    ("application/dicom", "dcm"), ("application/x-iso9660-image", "iso"),
    ("application/x-mach-binary", "macho"), ("application/msword", "doc"),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
    ("application/vnd.ms-excel", "xls"),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
    ("application/vnd.ms-powerpoint", "ppt"),
    ("application/vnd.openxmlformats-officedocument.presentationml.presentation", "pptx"),
    ("audio/midi", "mid"), ("audio/mpeg", "mp3"), ("audio/x-flac", "flac"), ("audio/x-wav", "wav"),
    ("audio/x-aiff", "aiff"), ("video/x-m4v", "m4v"), ("video/x-matroska", "mkv"),
    ("video/quicktime", "mov"), ("video/x-msvideo", "avi"), ("video/x-ms-wmv", "wmv"),
    ("video/mpeg", "mpg"), ("video/x-flv", "flv"), ("video/3gpp", "3gp"),
];

/// The media type of a file that begins with these bytes, and its file name extension. Like upstream,
/// the bytes are padded with zeros.
pub(super) fn detect_with_extension(mut start: Vec<u8>) -> Option<(&'static str, &'static str)> {
    start.resize(start.len().max(usize::try_from(MAX_PREFIX).unwrap_or(0)), 0);
    let kind = detect(&start);
    let extension = match (kind, &start[..4]) {
        ("", _) => return None,
        ("application/font-woff", b"wOFF") => "woff",
        ("application/font-woff", _) => "woff2",
        ("application/font-sfnt", b"OTTO") => "otf",
        ("application/font-sfnt", _) => "ttf",
        _ => match EXTENSIONS.iter().find(|(known, _)| *known == kind) {
            Some((_, extension)) => extension,
            None => kind.split_once('/').map_or("", |(_, second)| second),
        },
    };
    Some((kind, extension))
}

/// The media type of some bytes; empty if unknown.
pub(super) fn detect(bytes: &[u8]) -> &'static str {
    if is_svg(bytes) {
        return "image/svg+xml";
    }
    find_in_table(PROGRAMS, bytes)
        .or_else(|| is_heif(bytes).then_some("image/heif"))
        .or_else(|| find_in_table(IMAGES, bytes))
        .or_else(|| detect_by_structure(bytes))
        .or_else(|| find_in_table(OTHERS, bytes))
        .or_else(|| fallback(bytes))
        .unwrap_or_default()
}

fn find_in_table(table: &[Row], bytes: &[u8]) -> Option<&'static str> {
    let matches = |(_, least, parts): &&Row| {
        let part = |&(at, part): &(usize, &[u8])| {
            bytes.get(at..).is_some_and(|rest| rest.starts_with(part))
        };
        bytes.len() >= *least && parts.iter().all(part)
    };
    table.iter().find(matches).map(|(kind, ..)| *kind)
}

/// Whether the text is one `svg` element after an optional declaration and document type, with any
/// comments.
fn is_svg(bytes: &[u8]) -> bool {
    const COMMENT: &str = r"(?i)<!--([\s\S]*?)-->";
    const ELEMENT: &str = concat!(
        r"(?i)^[\t\n\f\r ]*(?:<\?xml[^>]*>[\t\n\f\r ]*)?(?:<!doctype svg[^>]*>[\t\n\f\r ]*)?",
        r"<svg[^>]*>[^*]*</svg>[\t\n\f\r ]*$"
    );
    static PATTERNS: LazyLock<Option<(Regex, Regex)>> = LazyLock::new(|| {
        let build = |pattern| regex::bytes::RegexBuilder::new(pattern).unicode(false).build();
        Some((build(COMMENT).ok()?, build(ELEMENT).ok()?))
    });
    // Control characters at the start mean binary content.
    let binary = |&byte: &u8| byte <= 8;
    if bytes.len() >= 24 && bytes[..24].iter().any(binary) {
        return false;
    }
    PATTERNS
        .as_ref()
        .is_some_and(|(comment, element)| element.is_match(&comment.replace_all(bytes, &b""[..])))
}

fn is_heif(bytes: &[u8]) -> bool {
    let Some(length) = box_length(bytes) else { return false };
    match bytes.get(8..12) {
        Some(b"heic") => bytes.len() > 16,
        Some(b"mif1" | b"msf1") => {
            bytes[16..length.max(16)].chunks_exact(4).any(|brand| brand == b"heic")
        }
        _ => false,
    }
}

/// The length of the first box of a media file, which must be complete.
fn box_length(bytes: &[u8]) -> Option<usize> {
    if bytes.len() < 16 || &bytes[4..8] != b"ftyp" {
        return None;
    }
    let length = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
    (length <= bytes.len()).then_some(length)
}

/// Videos whose magic number has several offsets, and office documents.
fn detect_by_structure(bytes: &[u8]) -> Option<&'static str> {
    let brand = bytes.get(8..12).filter(|_| &bytes[4..8] == b"ftyp");
    if brand.is_some_and(|brand| MP4.iter().any(|known| *known == brand)) {
        return Some("video/mp4");
    }
    if bytes.starts_with(b"\x1aE\xdf\xa3") {
        let start = &bytes[..bytes.len().min(4096)];
        for (name, kind) in [(&b"matroska"[..], "video/x-matroska"), (b"webm", "video/webm")] {
            let at = start.windows(name.len()).position(|part| part == name);
            if at.is_some_and(|at| at >= 3 && start[at - 3..at - 1] == *b"\x42\x82") {
                return Some(kind);
            }
        }
    }
    if bytes.starts_with(b"\0\0\x01")
        && bytes.get(3).is_some_and(|byte| (0xb0..=0xbf).contains(byte))
    {
        return Some("video/mpeg");
    }
    if bytes.len() <= 513 && bytes.starts_with(b"\xd0\xcf\x11\xe0") {
        return Some("application/msword");
    }
    office(bytes)
}

/// Office documents: archives; the folder of one of the first files gives the kind.
fn office(bytes: &[u8]) -> Option<&'static str> {
    const MARK: &[u8] = b"PK\x03\x04";
    let kind = |at: usize| {
        let rest = bytes.get(at..)?;
        let kinds: [(&[u8], _); 3] = [
            (b"word/", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
            (b"ppt/", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
            (b"xl/", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ];
        kinds.iter().find(|(folder, _)| rest.starts_with(folder)).map(|&(_, kind)| kind)
    };
    let next = |start: usize| {
        let part = bytes.get(start..bytes.len().min(start.saturating_add(6000)))?;
        Some(start + part.windows(MARK.len()).position(|part| part == MARK)? + 30)
    };
    if !bytes.starts_with(MARK) {
        return None;
    }
    if let Some(kind) = kind(30) {
        return Some(kind);
    }
    let first = bytes.get(30..)?;
    let firsts: [&[u8]; 3] = [b"[Content_Types].xml", b"_rels/.rels", b"docProps"];
    if !firsts.iter().any(|name| first.starts_with(name)) {
        return None;
    }
    let packed = bytes.get(18..22)?;
    let packed = u32::from_le_bytes([packed[0], packed[1], packed[2], packed[3]]) as usize;
    let third = next(next(packed.saturating_add(49))?)?;
    kind(third).or_else(|| kind(next(third + 26)?))
}

/// The tests when no other type fits.
fn fallback(bytes: &[u8]) -> Option<&'static str> {
    if let [b'P', b'K', 3 | 5 | 7, 4 | 6 | 8, ..] = bytes {
        return Some("application/zip");
    }
    // Skippable frames may precede the first frame of an archive.
    let mut rest = bytes;
    while let [a, b, c, d, e, f, g, h, after @ ..] = rest {
        if u32::from_le_bytes([*a, *b, *c, *d]) & 0xffff_fff0 != 0x184d_2a50 {
            break;
        }
        rest = after.get(u32::from_le_bytes([*e, *f, *g, *h]) as usize..)?;
        if rest.starts_with(b"\x28\xb5\x2f\xfd") {
            return Some("application/zstd");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::detect;

    #[test]
    fn media_types_are_detected_by_content() {
        let long = |start: &[u8]| [start, &[0; 600]].concat();
        for (bytes, kind) in [
            (long(b"\x89PNG"), "image/png"),
            (b"BM".to_vec(), "image/bmp"),
            (long(b"II*\0"), "image/tiff"),
            (long(b"II*\0abcdCR\x02"), "image/x-canon-cr2"),
            (long(b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic"), "image/heif"),
            (long(b"\0\0\0\x18ftypavif\0\0\0\0mif1miaf"), ""),
            (long(b"\0\0\0\x18ftypisom\0\0\0\0"), "video/mp4"),
            (long(b"\x1aE\xdf\xa3\x42\x82\x88matroska"), "video/x-matroska"),
            (long(b"%PDF"), "application/pdf"),
            (long(b"PK\x03\x04"), "application/zip"),
            (
                [&long(b"PK\x03\x04")[..30], b"word/x"].concat(),
                "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            ),
            (b"\x50\x2a\x4d\x18\x01\0\0\0x\x28\xb5\x2f\xfd".to_vec(), "application/zstd"),
            (b"<html></html>".to_vec(), ""),
        ] {
            assert_eq!(detect(&bytes), kind, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn an_svg_is_one_closed_element() {
        for (text, is) in [
            ("<svg></svg>", true),
            (" \n<?xml version='1.0'?><!-- c --><!DOCTYPE svg x><SVG a='1'>é</SVG>\n", true),
            ("<svg/>", false),
            ("<svg>", false),
            ("\u{feff}<svg></svg>", false),
            ("<svg>a*b</svg>", false),
            ("<svg></svg>x", false),
            ("x<svg></svg>", false),
        ] {
            assert_eq!(detect(text.as_bytes()) == "image/svg+xml", is, "{text}");
        }
    }
}
