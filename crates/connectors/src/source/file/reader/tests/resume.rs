//! Reading on where another reader has stopped.

use super::*;

/// What a reader gives from where it is to the end, and its position before each line and at the end.
fn rest(split: &FileSplit, max_record: u64) -> (Vec<ReadLine>, Vec<Position>) {
    let mut reader = SplitReader::open(split, max_record).unwrap();
    let (mut lines, mut positions) = (Vec::new(), vec![reader.position()]);
    while let Some(line) = reader.next().unwrap() {
        lines.push(line);
        positions.push(reader.position());
    }
    // Empty lines at the end are passed over only now.
    positions.push(reader.position());
    (lines, positions)
}

fn assert_resumes(split: &FileSplit, max_record: u64, case: &str) {
    let (lines, positions) = rest(split, max_record);
    // All of few, some of many.
    let step = positions.len().div_ceil(12);
    for (read, position) in positions.iter().enumerate().rev().step_by(step) {
        let read = read.min(lines.len());
        let resumed = FileSplit { resume: Some(*position), ..split.clone() };
        let (again, then) = rest(&resumed, max_record);
        let differs = again.iter().zip(&lines[read..]).position(|(again, line)| again != line);
        let counts = (again.len(), lines.len() - read);
        assert!(again == lines[read..], "{case}: {position:?}: {counts:?} lines, {differs:?} differs");
        assert_eq!(then[0], *position, "{case}");
        // The last but one is that behind the last line. How far behind the end of the split a reader looks for the end of
        // a line that is too long depends on its blocks, and nothing on that.
        let end = if split.gzip { u64::MAX } else { split.end.unwrap() };
        let within = |at: &Position| (at.offset < end).then_some(*at);
        let then: Vec<_> = then[1..].iter().map(within).collect();
        let expected = positions[read + 1..=lines.len()].iter().chain(positions.last()).map(within);
        assert!(then.iter().copied().eq(expected), "{case}: {position:?}: {then:?}");
    }
}

/// Lines of all kinds that a file may hold.
fn content(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    if random.below(3) == 0 {
        bytes.extend_from_slice(BYTE_ORDER_MARK);
    }
    let long_lines = random.below(3);
    for number in 0..random.below(30) {
        let longest =
            if number < long_lines { 2 * BLOCK as u64 } else { [1, 10, 300][random.below(3) as usize] };
        let letter = [b'a' + random.below(26) as u8, 0xff, b'\r', 0xef][random.below(10).min(3) as usize];
        let line = std::iter::repeat_n(letter, random.below(longest) as usize);
        match random.below(8) {
            0 => bytes.extend_from_slice(BYTE_ORDER_MARK),
            1 => bytes.extend((0..random.below(500)).map(|_| random.below(256) as u8)),
            _ => bytes.extend(line),
        }
        bytes.extend_from_slice([&b"\n"[..], b"\r\n", b"\n\n", b"\n\r\n"][random.below(4) as usize]);
    }
    if random.below(2) == 0 {
        bytes.extend_from_slice(b"last\r");
    }
    bytes
}

#[test]
fn a_reader_reads_on_from_any_position_as_the_first_one_would_have() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let bytes = content(&mut random);
        let max_record = [4, 200, 1 << 20][random.below(3) as usize];
        let file = file_of(&bytes);
        assert_resumes(&whole(&file, false), max_record, &format!("plain, seed {seed}"));
        let start = random.below(bytes.len() as u64 + 1);
        let end = start + random.below(bytes.len() as u64 - start + 1);
        let split = split_of(file.path(), start, end, false);
        assert_resumes(&split, max_record, &format!("{start}..{end}, seed {seed}"));
    }
}

#[test]
fn a_reader_of_packed_data_reads_on_also_before_and_behind_damage() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let bytes = content(&mut random);
        let max_record = [4, 200, 1 << 20][random.below(3) as usize];
        let cut = random.below(bytes.len() as u64 + 1) as usize;
        let mut packed = gzip(&bytes[..cut]);
        packed.extend(gzip(&bytes[cut..]));
        let sound = file_of(&packed);
        assert_resumes(&whole(&sound, true), max_record, &format!("packed, seed {seed}"));
        let truncated = file_of(&packed[..random.below(packed.len() as u64) as usize]);
        assert_resumes(&whole(&truncated, true), max_record, &format!("truncated, seed {seed}"));
        let at = random.below(packed.len() as u64) as usize;
        packed[at] ^= 1 << random.below(8);
        let damaged = file_of(&packed);
        assert_resumes(&whole(&damaged, true), max_record, &format!("damaged at {at}, seed {seed}"));
    }
}

#[test]
fn damage_loses_the_same_lines_wherever_reading_begins() {
    let mut random = Random(11);
    let text: String = (0..40_000).map(|_| format!("{:x}\n", random.below(1 << 60))).collect();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    encoder.write_all(text.as_bytes()).unwrap();
    let mut packed = encoder.finish().unwrap();
    // Blocks of plain bytes, each behind one byte and its length, twice: the fifth is damaged, which is seen at once.
    let mut block = 10;
    for _ in 0..4 {
        block += 5 + usize::from(u16::from_le_bytes([packed[block + 1], packed[block + 2]]));
    }
    packed[block + 1] ^= 0xff;
    let file = file_of(&packed);
    let split = whole(&file, true);
    let (lines, positions) = rest(&split, MAX_RECORD);
    assert!(lines.len() > 1000, "{}", lines.len());
    for read in [1, 17, lines.len() / 2, lines.len() - 1, lines.len()] {
        let resumed = FileSplit { resume: Some(positions[read]), ..split.clone() };
        let (again, _) = rest(&resumed, MAX_RECORD);
        assert!(again == lines[read..], "{read}: {} lines of {}", again.len(), lines.len() - read);
    }
}

#[test]
fn a_file_that_ends_before_the_position_has_shrunk() {
    for packed in [false, true] {
        let bytes = if packed { gzip(b"aa\nbb\n") } else { b"aa\nbb\n".to_vec() };
        let file = file_of(&bytes);
        let resume = Some(Position { offset: 9, line: 4 });
        let split = FileSplit { resume, ..whole(&file, packed) };
        let error = SplitReader::open(&split, MAX_RECORD).err().unwrap();
        assert!(matches!(error, SourceError::Shrunk { expected: 9, found: 6, .. }), "{error}");
    }
}

#[test]
fn a_line_behind_the_end_of_its_split_is_not_read_again_when_it_was_read() {
    let file = file_of(b"aa\nbbbbbb\ncc\n");
    let split = split_of(file.path(), 0, 4, false);
    let (lines, positions) = rest(&split, MAX_RECORD);
    assert_eq!(shown(&lines), [entry("aa", 1, 0), entry("bbbbbb", 2, 3)]);
    let resumed = FileSplit { resume: positions.last().copied(), ..split };
    assert_eq!(rest(&resumed, MAX_RECORD).0, []);
}
