//! Lines of plain and packed files, whole and cut into splits.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::NamedTempFile;

use super::*;
use crate::random::Random;
use crate::source::file::LineNumbers;

mod resume;

const MAX_RECORD: u64 = 1 << 20;

fn file_of(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn split_of(path: &Path, start: u64, end: u64, gzip: bool) -> FileSplit {
    FileSplit { id: 0, path: path.to_path_buf(), start, end: Some(end), gzip, resume: None }
}

fn whole(file: &NamedTempFile, gzip: bool) -> FileSplit {
    split_of(file.path(), 0, fs::metadata(file.path()).unwrap().len(), gzip)
}

fn read(split: &FileSplit, max_record: u64) -> Vec<ReadLine> {
    let mut reader = SplitReader::open(split, max_record).unwrap();
    let mut lines = Vec::new();
    while let Some(line) = reader.next().unwrap() {
        lines.push(line);
    }
    assert_eq!(reader.next().unwrap(), None, "the end is the end");
    lines
}

/// Text, line and offset; a malformed line's text in angle brackets.
fn shown(lines: &[ReadLine]) -> Vec<(String, u64, u64)> {
    let show = |line: &ReadLine| match line {
        ReadLine::Line { bytes, origin } => {
            (String::from_utf8_lossy(bytes).into_owned(), origin.line, origin.offset)
        }
        ReadLine::Malformed { text, origin, .. } => (format!("<{text}>"), origin.line, origin.offset),
    };
    lines.iter().map(show).collect()
}

fn lines_of(bytes: &[u8]) -> Vec<(String, u64, u64)> {
    let file = file_of(bytes);
    shown(&read(&whole(&file, false), MAX_RECORD))
}

fn entry(text: &str, line: u64, offset: u64) -> (String, u64, u64) {
    (text.to_owned(), line, offset)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn lines_end_with_lf_or_crlf_and_the_last_one_need_not() {
    assert_eq!(lines_of(b"a\r\nb\nc"), [entry("a", 1, 0), entry("b", 2, 3), entry("c", 3, 5)]);
    assert_eq!(lines_of(b"a\n"), [entry("a", 1, 0)]);
    assert_eq!(lines_of(b"a\r\rb\n"), [entry("a\r\rb", 1, 0)]);
    assert_eq!(lines_of(b""), []);
}

#[test]
fn empty_lines_are_no_records_but_count() {
    assert_eq!(lines_of(b"\n\r\na\n\n\nb\n\r"), [entry("a", 3, 3), entry("b", 6, 7)]);
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_record_and_nothing_special_elsewhere() {
    assert_eq!(lines_of(b"\xef\xbb\xbfa\n"), [entry("a", 1, 3)]);
    assert_eq!(lines_of(b"\xef\xbb\xbf"), []);
    assert_eq!(lines_of(b"a\n\xef\xbb\xbfb"), [entry("a", 1, 0), entry("\u{feff}b", 2, 2)]);
}

#[test]
fn ten_megabytes_on_one_line_are_one_malformed_line_and_reading_goes_on() {
    let mut bytes = b"a\n".to_vec();
    bytes.extend(std::iter::repeat_n(b'x', 10 << 20));
    bytes.extend(b"\nb\n");
    let file = file_of(&bytes);
    let mut reader = SplitReader::open(&whole(&file, false), MAX_RECORD).unwrap();
    let mut lines = Vec::new();
    while let Some(line) = reader.next().unwrap() {
        assert!(reader.block.len() as u64 <= 3 * MAX_RECORD, "{}", reader.block.len());
        lines.push(line);
    }
    let ReadLine::Malformed { text, reason, origin } = &lines[1] else { panic!("{:?}", lines[1]) };
    assert_eq!((text.len(), origin.line, origin.offset), (MALFORMED_TEXT_LIMIT, 2, 2));
    assert!(reason.contains("1048576"), "{reason}");
    assert_eq!(shown(&lines[2..]), [entry("b", 3, 3 + (10 << 20))]);
}

#[test]
fn the_longest_line_is_as_long_as_the_limit_without_its_end() {
    let file = file_of(b"12345\r\n123456\n12345");
    let lines = shown(&read(&whole(&file, false), 5));
    assert_eq!(lines, [entry("12345", 1, 0), entry("<123456>", 2, 7), entry("12345", 3, 14)]);
    let file = file_of(b"123456");
    assert_eq!(shown(&read(&whole(&file, false), 5)), [entry("<123456>", 1, 0)]);
}

#[test]
fn a_line_longer_than_a_block_is_read_whole() {
    let long = "y".repeat(3 * BLOCK + 17);
    assert_eq!(
        lines_of(format!("{long}\nz").as_bytes()),
        [entry(&long, 1, 0), entry("z", 2, long.len() as u64 + 1)]
    );
}

#[test]
fn a_line_belongs_to_the_split_in_which_its_first_byte_lies() {
    let file = file_of(b"aa\nbb\ncc\n");
    for (start, end, expected) in [
        (0, 3, vec!["aa"]),
        (0, 4, vec!["aa", "bb"]),
        (3, 6, vec!["bb"]),
        (1, 3, vec![]),
        (2, 4, vec!["bb"]),
        (7, 9, vec![]),
        (6, 9, vec!["cc"]),
    ] {
        let lines = shown(&read(&split_of(file.path(), start, end, false), MAX_RECORD));
        let texts: Vec<_> = lines.iter().map(|(text, ..)| text.as_str()).collect();
        assert_eq!(texts, expected, "{start}..{end}");
    }
}

#[test]
fn all_splits_together_give_every_line_once_with_its_place() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut bytes = Vec::new();
        let (longest, lines) = ([3, 60, 2_000, 50_000][random.below(4) as usize], 1 + random.below(60));
        for _ in 0..lines {
            bytes.extend(std::iter::repeat_n(b'a' + random.below(26) as u8, random.below(longest) as usize));
            bytes.extend_from_slice([&b"\n"[..], b"\r\n"][random.below(2) as usize]);
        }
        if random.below(2) == 0 {
            bytes.extend_from_slice(b"last");
        }
        let file = file_of(&bytes);
        let length = bytes.len() as u64;
        let expected = shown(&read(&split_of(file.path(), 0, length, false), MAX_RECORD));
        let (mut found, mut start, mut numbers) = (Vec::new(), 0, LineNumbers::default());
        while start < length {
            let longest = 1 + length / (1 + random.below(20));
            let end = (start + 1 + random.below(longest)).min(length);
            for line in read(&split_of(file.path(), start, end, false), MAX_RECORD) {
                let ReadLine::Line { bytes, origin } = line else { panic!("seed {seed}: {line:?}") };
                assert!((start..end).contains(&origin.offset), "seed {seed}");
                let text = String::from_utf8(bytes.to_vec()).unwrap();
                found.push((text, numbers.resolve(&origin).unwrap(), origin.offset));
            }
            start = end;
        }
        assert!(found == expected, "seed {seed}: {} lines of {}", found.len(), expected.len());
        let plain = String::from_utf8(bytes).unwrap();
        let model: Vec<_> = plain.lines().filter(|line| !line.is_empty()).collect();
        assert!(model.iter().eq(found.iter().map(|(text, ..)| text)), "seed {seed}");
    }
}

#[test]
fn the_position_is_where_the_next_line_begins() {
    let file = file_of(b"aa\n\nbb\n");
    let mut reader = SplitReader::open(&whole(&file, false), MAX_RECORD).unwrap();
    assert_eq!(reader.position(), Position { offset: 0, line: 1 });
    reader.next().unwrap();
    assert_eq!(reader.position(), Position { offset: 3, line: 2 });
    reader.next().unwrap();
    assert_eq!(reader.position(), Position { offset: 7, line: 4 });
}

#[test]
fn a_packed_file_of_several_members_is_read_to_the_end_with_offsets_unpacked() {
    let mut bytes = gzip(b"\xef\xbb\xbfa\nb");
    bytes.extend(gzip(b"b\nc\n"));
    let file = file_of(&bytes);
    let lines = shown(&read(&whole(&file, true), MAX_RECORD));
    assert_eq!(lines, [entry("a", 1, 3), entry("bb", 2, 5), entry("c", 3, 8)]);
}

#[test]
fn a_truncated_gzip_gives_what_is_whole_and_then_one_malformed_line_wherever_it_breaks_off() {
    let mut random = Random(7);
    let line = |random: &mut Random| format!("{:016x}", random.below(u64::MAX));
    let text: Vec<_> = (0..200).map(|_| line(&mut random)).collect();
    let packed = gzip((text.join("\n") + "\n").as_bytes());
    for length in (0..packed.len()).step_by(13) {
        let file = file_of(&packed[..length]);
        let lines = read(&whole(&file, true), MAX_RECORD);
        let (last, whole_lines) = lines.split_last().unwrap();
        let ReadLine::Malformed { text: rest, reason, origin } = last else {
            panic!("at {length}: {last:?}")
        };
        assert!(reason.contains("truncated gzip"), "at {length}: {reason}");
        assert_eq!(
            (origin.line, origin.offset),
            (whole_lines.len() as u64 + 1, whole_lines.len() as u64 * 17)
        );
        assert!(text.get(whole_lines.len()).map_or("", String::as_str).starts_with(rest.as_str()));
        for (expected, (found, ..)) in text.iter().zip(shown(whole_lines)) {
            assert_eq!(*expected, found, "at {length}");
        }
    }
}

#[test]
fn a_gzip_that_is_none_or_is_damaged_ends_with_a_malformed_line() {
    let mut damaged = gzip("0123456789\n".repeat(1000).as_bytes());
    let checksum = damaged.len() - 6;
    damaged[checksum] ^= 0xff;
    let mut trailing = gzip(b"a\n");
    trailing.extend_from_slice(b"this is no gzip member");
    for (bytes, whole_lines) in [(b"{\"a\":1}\n{\"a\":2}\n".to_vec(), 0), (damaged, 1000), (trailing, 1)] {
        let file = file_of(&bytes);
        let lines = read(&whole(&file, true), MAX_RECORD);
        assert_eq!(lines.len(), whole_lines + 1);
        let ReadLine::Malformed { reason, .. } = &lines[whole_lines] else { panic!("{lines:?}") };
        assert!(reason.contains("damaged gzip"), "{reason}");
    }
}

#[test]
fn a_file_that_is_shorter_than_it_was_listed_is_an_error() {
    for packed in [false, true] {
        let bytes = if packed { gzip(b"a\nb\n") } else { b"a\nb\n".to_vec() };
        let file = file_of(&bytes);
        let split = split_of(file.path(), 0, bytes.len() as u64 + 1, packed);
        let error = SplitReader::open(&split, MAX_RECORD).err().unwrap();
        assert!(matches!(error, SourceError::Shrunk { .. }), "{error}");
        assert!(error.to_string().contains(file.path().to_str().unwrap()), "{error}");
    }
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_an_error_and_no_shorter_input() {
    let mut random = Random(3);
    let text: String = (0..200_000).map(|_| format!("{:x}\n", random.below(1 << 60))).collect();
    for packed in [false, true] {
        let file = file_of(&if packed { gzip(text.as_bytes()) } else { text.clone().into_bytes() });
        let mut reader = SplitReader::open(&whole(&file, packed), MAX_RECORD).unwrap();
        OpenOptions::new().write(true).open(file.path()).unwrap().set_len(1 << 20).unwrap();
        let error = loop {
            match reader.next() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the input ended early and nobody noticed"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, SourceError::Shrunk { .. }), "{error}");
    }
}

#[test]
fn what_is_appended_after_the_listing_is_not_read_but_a_line_is_read_whole() {
    let mut file = file_of(b"a\nb");
    let split = whole(&file, false);
    file.write_all(b"b\nc\n").unwrap();
    assert_eq!(shown(&read(&split, MAX_RECORD)), [entry("a", 1, 0), entry("bb", 2, 2)]);
}

#[test]
fn a_file_that_is_gone_is_an_error_that_names_it() {
    let file = file_of(b"a\n");
    let split = whole(&file, false);
    let path = file.path().to_str().unwrap().to_owned();
    drop(file);
    let error = SplitReader::open(&split, MAX_RECORD).err().unwrap();
    assert!(matches!(error, SourceError::Open { .. }) && error.to_string().contains(&path), "{error}");
}
