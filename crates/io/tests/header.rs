//! The files of the format's fault table: what is refused, with which words, and what is read.

use proptest::prelude::*;
use stridegrad_core::ErrorKind;
use stridegrad_io::safetensors::{FileDType, Header, SafeTensors, parse};

fn file(header: &[u8], data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header, data].concat()
}

fn text(header: &str, data: usize) -> Vec<u8> {
    file(header.as_bytes(), &vec![0; data])
}

/// An entry of dtype F32.
fn entry(name: &str, shape: &str, offsets: &str) -> String {
    format!(r#""{name}":{{"dtype":"F32","shape":{shape},"data_offsets":{offsets}}}"#)
}

fn object(entries: &[String]) -> String {
    format!("{{{}}}", entries.join(","))
}

#[track_caller]
fn refused(bytes: &[u8], says: &str) {
    let e = parse(bytes).expect_err(says);
    assert_eq!(e.kind(), ErrorKind::Format, "{e}");
    assert!(e.to_string().contains(says), "{e}\ndoes not say {says:?}");
    // Through a map the verdict and the reason are the same.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.safetensors");
    std::fs::write(&path, bytes).unwrap();
    let e = SafeTensors::open(&path).expect_err(says);
    assert_eq!(e.kind(), ErrorKind::Format, "{e}");
    assert!(e.to_string().contains(says) && e.to_string().contains("f.safetensors"), "{e}");
}

#[track_caller]
fn accepted(bytes: &[u8]) -> Header {
    parse(bytes).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn length_field() {
    refused(&[], "header too small");
    refused(&[0; 7], "header too small");
    refused(&[0; 8], "does not begin with '{'"); // N = 0
    refused(&[&100_000_001u64.to_le_bytes()[..], b"{}"].concat(), "header too large");
    refused(&[&[0xff; 8][..], b"{}"].concat(), "header too large");
    refused(&[&100_000_000u64.to_le_bytes()[..], b"{}"].concat(), "invalid header length");
    refused(&[&3u64.to_le_bytes()[..], b"{}"].concat(), "invalid header length");
    let whole = text(&object(&[entry("a", "[1]", "[0,4]")]), 4);
    for cut in 8..whole.len() - 4 {
        refused(&whole[..cut], "invalid header length");
    }
}

#[test]
fn json() {
    refused(&file(b"{\"\xff\":1}", &[]), "not UTF-8");
    refused(&text("{not json}", 0), "malformed");
    refused(&text("{", 0), "does not end");
    refused(&text("[]", 0), "does not begin");
    refused(&text("", 0), "does not begin");
    refused(&text(" {}", 0), "does not begin");
    refused(&text("\u{feff}{}", 0), "does not begin");
    refused(&text("{}\n", 0), "does not end");
    refused(&text("{}\0\0", 0), "does not end");
    refused(&text("{} {}", 0), "malformed");
    assert!(accepted(&text("{}", 0)).entries.is_empty());
    assert!(accepted(&text("{}      ", 0)).entries.is_empty());
    accepted(&text("{\n}", 0));
}

#[test]
fn nesting_does_not_overflow_the_stack() {
    let deep = |n: usize| {
        let (open, close) = ("[".repeat(n), "]".repeat(n));
        format!(r#"{{"a":{{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":{open}{close}}}}}"#)
    };
    accepted(&text(&deep(100), 0));
    // Whatever the verdict, the process survives it.
    let _ = parse(&text(&deep(1_000_000), 0));
    refused(&text(&format!(r#"{{"a":{}}}"#, "[".repeat(1_000_000)), 0), "malformed");
    refused(&text(&format!("{}}}", r#"{"a":"#.repeat(1_000_000)), 0), "malformed");
}

#[test]
fn duplicate_keys() {
    let two = |a: &str, b: &str| object(&[entry(a, "[1]", "[0,4]"), entry(b, "[1]", "[4,8]")]);
    refused(
        &text(&object(&[entry("a", "[1]", "[0,4]"), entry("a", "[1]", "[0,4]")]), 4),
        "duplicate key \"a\"",
    );
    refused(&text(&two("a", "a"), 8), "duplicate key \"a\"");
    refused(&text(&two("a", "\\u0061"), 8), "duplicate key \"a\""); // the same key spelt differently
    refused(&text(r#"{"__metadata__":{},"__metadata__":{}}"#, 0), "duplicate key");
    refused(&text(r#"{"__metadata__":{"k":"1","k":"2"}}"#, 0), "duplicate metadata key \"k\"");
    refused(
        &text(r#"{"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}}"#, 1),
        "duplicate field \"dtype\"",
    );
}

#[test]
fn offsets_tile_the_data() {
    let two = |a: &str, b: &str, data| text(&object(&[entry("a", "[1]", a), entry("b", "[1]", b)]), data);
    accepted(&two("[0,4]", "[4,8]", 8));
    refused(&text(&object(&[entry("a", "[1]", "[4,8]")]), 8), "a hole before");
    refused(&two("[0,4]", "[8,12]", 12), "a hole before");
    refused(&two("[0,4]", "[2,6]", 8), "an overlap");
    refused(&two("[0,4]", "[0,4]", 4), "an overlap");
    refused(&two("[0,4]", "[4,8]", 9), "1 trailing bytes");
    refused(&text("{}", 1), "1 trailing bytes");
    refused(&two("[0,4]", "[4,8]", 7), "data short");
    refused(&text(&object(&[entry("a", "[1]", "[0,4]")]), 0), "data short");
    // Order in the header is free, and comes out by offset.
    let h = accepted(&two("[4,8]", "[0,4]", 8));
    assert_eq!(h.entries.iter().map(|e| e.name.as_str()).collect::<Vec<_>>(), ["b", "a"]);
    assert_eq!(h.get("a").unwrap().range.len(), 4);
}

#[test]
fn offsets_are_two_ordered_integers() {
    for offsets in ["[4,0]", "[0,3]", "[0,5]", "[0,18446744073709551615]"] {
        refused(&text(&object(&[entry("a", "[1]", offsets)]), 4), "\"a\"");
    }
    for offsets in
        ["[-4,0]", "[0,4.0]", "[0,18446744073709551616]", "[0,2,4]", "[4]", "[]", "4", "[\"0\",4]", "null"]
    {
        refused(&text(&object(&[entry("a", "[1]", offsets)]), 4), "\"a\"");
    }
}

#[test]
fn shapes_and_sizes() {
    for shape in ["[1.0]", "[-1]", "[1e0]", "[\"1\"]", "1", "null", "[18446744073709551616]", "[[1]]"] {
        refused(&text(&object(&[entry("a", shape, "[0,4]")]), 4), "\"a\"");
    }
    refused(&text(&object(&[entry("a", "[2]", "[0,4]")]), 4), "takes 8");
    refused(&text(&object(&[entry("a", "[4611686018427387904]", "[0,0]")]), 0), "overflows"); // 2^62 x 4
    refused(&text(&object(&[entry("a", "[4294967296,4294967296]", "[0,0]")]), 0), "overflows");
    let scalar = accepted(&text(&object(&[entry("a", "[]", "[0,4]")]), 4));
    assert!(scalar.entries[0].shape.is_empty());
    accepted(&text(&object(&[entry("a", "[0]", "[0,0]")]), 0));
    accepted(&text(&object(&[entry("a", "[1]", "[0,4]"), entry("z", "[3,0]", "[4,4]")]), 4));
    accepted(&text(&object(&[entry("a", "[1]", "[0,4]"), entry("z", "[0]", "[0,0]")]), 4));
    refused(&text(&object(&[entry("a", "[1]", "[0,4]"), entry("z", "[0]", "[2,2]")]), 4), "invalid offset 2");
    refused(&text(&object(&[entry("z", "[0]", "[2,2]")]), 0), "invalid offset 2");
}

#[test]
fn dtypes() {
    for name in ["f32", "F32 ", "FLOAT", "", "F8"] {
        let h = format!(r#"{{"a":{{"dtype":"{name}","shape":[1],"data_offsets":[0,4]}}}}"#);
        refused(&text(&h, 4), "unknown dtype");
    }
    for &d in FileDType::ALL {
        let bytes = d.bytes(&[8]).unwrap();
        let h = format!(r#"{{"a":{{"dtype":"{d}","shape":[8],"data_offsets":[0,{bytes}]}}}}"#);
        assert_eq!(accepted(&text(&h, bytes)).entries[0].dtype, d);
        assert!(
            safetensors::SafeTensors::deserialize(&text(&h, bytes)).is_ok(),
            "{d} is not the format's name"
        );
    }
    let f4 = |n: usize, bytes: usize| {
        text(&format!(r#"{{"a":{{"dtype":"F4","shape":[{n}],"data_offsets":[0,{bytes}]}}}}"#), bytes)
    };
    accepted(&f4(4, 2));
    refused(&f4(3, 1), "no whole number of bytes");
    refused(&f4(3, 2), "no whole number of bytes");
}

#[test]
fn fields() {
    for (entry, says) in [
        (r#"{"shape":[1],"data_offsets":[0,4]}"#, "dtype"),
        (r#"{"dtype":"F32","data_offsets":[0,4]}"#, "shape"),
        (r#"{"dtype":"F32","shape":[1]}"#, "data_offsets"),
        ("{}", "missing field"),
        ("[]", "\"a\""),
        ("7", "\"a\""),
        (r#"{"dtype":7,"shape":[1],"data_offsets":[0,4]}"#, "\"a\""),
    ] {
        refused(&text(&format!(r#"{{"a":{entry}}}"#), 4), says);
    }
    accepted(&text(r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":{"x":[1,null]}}}"#, 4));
    assert_eq!(accepted(&text(&object(&[entry("", "[1]", "[0,4]")]), 4)).entries[0].name, "");
}

#[test]
fn metadata() {
    for value in ["1", "[]", r#"{"k":1}"#, r#"{"k":["v"]}"#, r#"{"k":{}}"#, r#"{"k":null}"#, "\"text\""] {
        refused(&text(&format!(r#"{{"__metadata__":{value}}}"#), 0), "malformed");
    }
    assert!(accepted(&text(r#"{"__metadata__":null}"#, 0)).metadata.is_empty());
    let h = format!(r#"{{"__metadata__":{{}},{}}}"#, entry("a", "[1]", "[0,4]"));
    assert_eq!(accepted(&text(&h, 4)).entries.len(), 1);
    let h = accepted(&text(r#"{"__metadata__":{"format":"pt"}}"#, 0));
    assert_eq!(h.metadata["format"], "pt");
}

#[test]
fn unaligned_data_read_right() {
    // A header whose length is no multiple of 8, and a U8 before the F32.
    let h = r#"{"u":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"f":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}}"#;
    let data = [&[9u8][..], &1.5f32.to_le_bytes(), &(-2f32).to_le_bytes()].concat();
    for spaces in 0..8 {
        let bytes = file(format!("{h}{}", " ".repeat(spaces)).as_bytes(), &data);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, &bytes).unwrap();
        for f in [SafeTensors::from_bytes(bytes).unwrap(), SafeTensors::open(&path).unwrap()] {
            assert_eq!(f.bytes("u").unwrap(), [9]);
            assert_eq!(f.bytes("f").unwrap(), [1.5f32.to_le_bytes(), (-2f32).to_le_bytes()].concat());
            assert_eq!(f.bytes("g").unwrap_err().kind(), ErrorKind::StateDict);
        }
    }
}

#[test]
fn bool_bytes_are_0_or_1() {
    let h = br#"{"b":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}}"#;
    assert_eq!(SafeTensors::from_bytes(file(h, &[0, 1, 1])).unwrap().bytes("b").unwrap(), [0, 1, 1]);
    let e = SafeTensors::from_bytes(file(h, &[0, 1, 2])).unwrap().bytes("b").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Format);
    assert!(e.to_string().contains("BOOL byte 2 at 2"), "{e}");
}

proptest! {
    // What we accept, the reference reader accepts too; where the text of the format is silent, the other way round.
    #[test]
    fn as_the_reference(
        a in 0u64..6, b in 0u64..6, c in 0u64..6, d in 0u64..6,
        n in 0usize..3, m in 0usize..3, data in 0usize..6, head in "[ ]{0,1}", tail in "[ \n\0]{0,2}",
    ) {
        let h = format!(
            r#"{head}{{"a":{{"dtype":"I16","shape":[{n}],"data_offsets":[{a},{b}]}},"b":{{"dtype":"U8","shape":[{m}],"data_offsets":[{c},{d}]}}}}{tail}"#
        );
        let bytes = text(&h, data);
        let reference = safetensors::SafeTensors::deserialize(&bytes).is_ok();
        if parse(&bytes).is_ok() {
            prop_assert!(reference);
        } else if head.is_empty() && tail.trim_matches(' ').is_empty() {
            prop_assert!(!reference);
        }
    }

    // No input panics.
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200), json in "[{}\\[\\]\",:a-f0-9 ]{0,60}") {
        let _ = parse(&bytes);
        let _ = parse(&text(&json, 3));
    }
}
