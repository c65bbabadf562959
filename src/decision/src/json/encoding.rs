//! From the bytes of a body to generalised UTF-8: which encoding it is, and its strict decoding (wire.md 4.1).

use std::borrow::Cow;

use super::text::push_code_point;

/// A Unicode encoding with its byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Utf16 { big_endian: bool },
    Utf32 { big_endian: bool },
}

/// A malformed sequence: the offset of its first byte in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed {
    pub(super) offset: usize,
}

/// Decodes a body to generalised UTF-8. Encoded surrogates pass as lone surrogates; anything else malformed is refused.
pub(super) fn decode(bytes: &[u8]) -> Result<Cow<'_, [u8]>, Malformed> {
    let (encoding, mark) = detect(bytes);
    let body = &bytes[mark..];
    match encoding {
        Encoding::Utf8 => check_utf8(body).map(|()| Cow::Borrowed(body)),
        Encoding::Utf16 { big_endian } => decode_utf16(body, big_endian).map(Cow::Owned),
        Encoding::Utf32 { big_endian } => decode_utf32(body, big_endian).map(Cow::Owned),
    }
    .map_err(|malformed| Malformed {
        offset: malformed.offset + mark,
    })
}

/// The encoding and the length of its byte order mark. Marks decide; without one, zero bytes among the first four do.
fn detect(bytes: &[u8]) -> (Encoding, usize) {
    const MARKS: [(&[u8], Encoding); 5] = [
        // The UTF-32-LE mark begins with the UTF-16-LE one: longest first.
        (
            &[0x00, 0x00, 0xFE, 0xFF],
            Encoding::Utf32 { big_endian: true },
        ),
        (
            &[0xFF, 0xFE, 0x00, 0x00],
            Encoding::Utf32 { big_endian: false },
        ),
        (&[0xFE, 0xFF], Encoding::Utf16 { big_endian: true }),
        (&[0xFF, 0xFE], Encoding::Utf16 { big_endian: false }),
        (&[0xEF, 0xBB, 0xBF], Encoding::Utf8),
    ];
    if let Some((mark, encoding)) = MARKS.iter().find(|(mark, _)| bytes.starts_with(mark)) {
        return (*encoding, mark.len());
    }
    let encoding = match bytes {
        [0, 0, _, _, ..] => Encoding::Utf32 { big_endian: true },
        [0, _, _, _, ..] | [0, _] => Encoding::Utf16 { big_endian: true },
        [_, 0, 0, 0, ..] => Encoding::Utf32 { big_endian: false },
        [_, 0, _, _, ..] | [_, 0] => Encoding::Utf16 { big_endian: false },
        _ => Encoding::Utf8,
    };
    (encoding, 0)
}

/// Accepts UTF-8 whose only fault is encoded surrogates (`ED A0..BF xx`).
fn check_utf8(bytes: &[u8]) -> Result<(), Malformed> {
    let mut offset = 0;
    while let Err(error) = std::str::from_utf8(&bytes[offset..]) {
        offset += error.valid_up_to();
        match &bytes[offset..] {
            [0xED, 0xA0..=0xBF, 0x80..=0xBF, ..] => offset += 3,
            _ => return Err(Malformed { offset }),
        }
    }
    Ok(())
}

fn decode_utf16(bytes: &[u8], big_endian: bool) -> Result<Vec<u8>, Malformed> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(Malformed {
            offset: bytes.len() - rest.len(),
        });
    }
    let unit = if big_endian {
        u16::from_be_bytes
    } else {
        u16::from_le_bytes
    };
    let mut decoded = Vec::with_capacity(bytes.len());
    for code in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        let code = code.map_or_else(|lone| u32::from(lone.unpaired_surrogate()), u32::from);
        push_code_point(&mut decoded, code);
    }
    Ok(decoded)
}

fn decode_utf32(bytes: &[u8], big_endian: bool) -> Result<Vec<u8>, Malformed> {
    let (units, rest) = bytes.as_chunks::<4>();
    let unit = if big_endian {
        u32::from_be_bytes
    } else {
        u32::from_le_bytes
    };
    let mut decoded = Vec::with_capacity(bytes.len() / 2);
    for (index, bytes) in units.iter().enumerate() {
        let code = unit(*bytes);
        if code > u32::from(char::MAX) {
            return Err(Malformed { offset: index * 4 });
        }
        push_code_point(&mut decoded, code);
    }
    if rest.is_empty() {
        Ok(decoded)
    } else {
        Err(Malformed {
            offset: bytes.len() - rest.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_and_decodes() {
        type Row = (&'static str, &'static [u8], Option<&'static [u8]>);
        let rows: [Row; 22] = [
            ("empty", b"", Some(b"")),
            ("plain", b"{}", Some(b"{}")),
            ("utf-8 mark", b"\xEF\xBB\xBF{}", Some(b"{}")),
            (
                "utf-8 mark twice keeps the second",
                b"\xEF\xBB\xBF\xEF\xBB\xBF1",
                Some(b"\xEF\xBB\xBF1"),
            ),
            ("utf-16-le mark", b"\xFF\xFE{\0}\0", Some(b"{}")),
            ("utf-16-be mark", b"\xFE\xFF\0{\0}", Some(b"{}")),
            ("utf-32-le mark", b"\xFF\xFE\0\0{\0\0\0", Some(b"{")),
            ("utf-32-be mark", b"\0\0\xFE\xFF\0\0\0{", Some(b"{")),
            ("utf-16-le without mark", b"{\0}\0", Some(b"{}")),
            ("utf-16-be without mark", b"\0{\0}", Some(b"{}")),
            ("utf-32-le without mark", b"1\0\0\0", Some(b"1")),
            ("utf-32-be without mark", b"\0\0\0\x31", Some(b"1")),
            ("two bytes, second zero", b"1\0", Some(b"1")),
            ("two bytes, first zero", b"\x001", Some(b"1")),
            ("three bytes are utf-8", b"1\0\0", Some(b"1\0\0")),
            ("odd utf-16", b"{\0}\0\x31", None),
            ("short utf-32", b"1\0\0\0\0", None),
            ("utf-32 beyond unicode", b"\xFF\xFE\0\0\0\0\x11\0", None),
            (
                "utf-16 lone surrogate",
                b"\xFF\xFE\x3D\xD8",
                Some(b"\xED\xA0\xBD"),
            ),
            (
                "utf-16 pair joins",
                b"\xFF\xFE\x3D\xD8\x00\xDE",
                Some("😀".as_bytes()),
            ),
            (
                "utf-8 surrogates stay apart",
                b"\xED\xA0\xBD\xED\xB8\x80",
                Some(b"\xED\xA0\xBD\xED\xB8\x80"),
            ),
            ("utf-8 cut surrogate", b"\xED\xA0", None),
        ];
        for (name, bytes, expected) in rows {
            assert_eq!(decode(bytes).ok().as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn refuses_malformed_utf8_with_its_offset() {
        for (name, bytes, offset) in [
            ("stray continuation", &b"ab\x80"[..], 2),
            ("overlong", b"\xC0\xAF", 0),
            ("cut", b"a\xE2\x82", 1),
            ("after a surrogate", b"\xED\xA0\x80\xFF", 3),
            ("beyond unicode", b"\xF4\x90\x80\x80", 0),
            ("after a mark", b"\xEF\xBB\xBF\xFF", 3),
        ] {
            assert_eq!(decode(bytes), Err(Malformed { offset }), "{name}");
        }
    }
}
