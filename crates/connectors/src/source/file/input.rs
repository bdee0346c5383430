//! The bytes of a split, unpacked, block by block.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Take};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use super::{FileSplit, SourceError};

/// How much packed data is read at a time.
const PACKED_BLOCK: usize = 256 << 10;

/// How much is unpacked at a time. The decoder drops what it has unpacked when it meets damage, back to where it was last
/// asked; always asked for the same, it drops the same, however much a reader wants and wherever it reads on.
const UNPACKED_BLOCK: usize = 64 << 10;

/// What [`Input::fill`] came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Filled {
    /// There may be more.
    More,
    /// The end of the file.
    End,
    /// Packed data that cannot be unpacked; nothing behind it can be read.
    Broken(String),
}

/// An open file, positioned where the split wants it.
pub(super) struct Input {
    path: PathBuf,
    /// How long the file, as it lies on the disk, must be at least.
    expected: u64,
    /// How far the unpacked file was read.
    position: u64,
    bytes: Source,
}

enum Source {
    Plain(File),
    Packed(Box<BufReader<MultiGzDecoder<BufReader<Take<File>>>>>),
}

impl Input {
    /// Opens the file of `split` at byte `from` of the unpacked file. Of a packed one all before that is unpacked again.
    pub(super) fn open(split: &FileSplit, from: u64) -> Result<Self, SourceError> {
        let cannot_open = |source| SourceError::Open { path: split.path.clone(), source };
        let mut file = File::open(&split.path).map_err(cannot_open)?;
        let listed = split.end.unwrap_or(0);
        let expected = if split.gzip { listed } else { listed.max(from) };
        require_length(&file, &split.path, expected)?;
        let bytes = if split.gzip {
            // As with plain files, what was appended since the listing is not read.
            let listed = file.take(split.end.unwrap_or(u64::MAX));
            let decoder = MultiGzDecoder::new(BufReader::with_capacity(PACKED_BLOCK, listed));
            Source::Packed(Box::new(BufReader::with_capacity(UNPACKED_BLOCK, decoder)))
        } else {
            file.seek(SeekFrom::Start(from)).map_err(cannot_open)?;
            Source::Plain(file)
        };
        let position = if split.gzip { 0 } else { from };
        let mut input = Self { path: split.path.clone(), expected, position, bytes };
        input.skip_to(from)?;
        Ok(input)
    }

    /// Unpacks what lies before `offset` of the unpacked file. It was unpacked before, so that all of it must be there.
    fn skip_to(&mut self, offset: u64) -> Result<(), SourceError> {
        while self.position < offset {
            let wanted = usize::try_from(offset - self.position).unwrap_or(usize::MAX);
            let skipped = match &mut self.bytes {
                Source::Plain(_) => break,
                Source::Packed(unpacked) => unpacked.fill_buf().map(|bytes| bytes.len().min(wanted)),
            };
            let skipped = match skipped {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => self.broken(error).map(|_| 0).map_err(|source| self.cannot_read(source))?,
                Ok(skipped) => skipped,
            };
            if skipped == 0 {
                let (path, found) = (self.path.clone(), self.position);
                return Err(SourceError::Shrunk { path, expected: offset, found });
            }
            if let Source::Packed(unpacked) = &mut self.bytes {
                unpacked.consume(skipped);
            }
            self.position += skipped as u64;
        }
        Ok(())
    }

    /// Fills `buffer` from byte `before` on. Only at the end, or where unpacking fails, it is not filled whole but cut.
    pub(super) fn fill(&mut self, buffer: &mut Vec<u8>, before: usize) -> Result<Filled, SourceError> {
        let mut filled = before;
        let outcome = loop {
            let room = buffer.get_mut(filled..).unwrap_or_default();
            if room.is_empty() {
                break Ok(Filled::More);
            }
            let read = match &mut self.bytes {
                Source::Plain(file) => file.read(room),
                Source::Packed(unpacked) => unpacked.fill_buf().and_then(|mut bytes| bytes.read(room)),
            };
            match read {
                Ok(0) => break Ok(Filled::End),
                Ok(read) => {
                    filled += read;
                    if let Source::Packed(unpacked) = &mut self.bytes {
                        unpacked.consume(read);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break self.broken(error),
            }
        };
        buffer.truncate(filled);
        self.position += (filled - before) as u64;
        let outcome = outcome.map_err(|source| self.cannot_read(source))?;
        if outcome != Filled::More {
            self.require_all()?;
        }
        Ok(outcome)
    }

    fn cannot_read(&self, source: io::Error) -> SourceError {
        SourceError::Read { path: self.path.clone(), offset: self.position, source }
    }

    /// What the decoder says of the data, told apart from what the disk says of itself.
    fn broken(&self, error: io::Error) -> io::Result<Filled> {
        let packed = matches!(self.bytes, Source::Packed(_)) && error.raw_os_error().is_none();
        match error.kind() {
            ErrorKind::UnexpectedEof if packed => {
                Ok(Filled::Broken("truncated gzip: the file ends too early, what follows is lost".to_owned()))
            }
            ErrorKind::InvalidInput | ErrorKind::InvalidData if packed => {
                Ok(Filled::Broken(format!("damaged gzip: {error}; what follows is lost")))
            }
            _ => Err(error),
        }
    }

    fn require_all(&self) -> Result<(), SourceError> {
        match &self.bytes {
            Source::Plain(_) if self.position < self.expected => Err(SourceError::Shrunk {
                path: self.path.clone(),
                expected: self.expected,
                found: self.position,
            }),
            Source::Plain(_) => Ok(()),
            Source::Packed(unpacked) => {
                let file = unpacked.get_ref().get_ref().get_ref().get_ref();
                require_length(file, &self.path, self.expected)
            }
        }
    }
}

fn require_length(file: &File, path: &Path, expected: u64) -> Result<(), SourceError> {
    let metadata =
        file.metadata().map_err(|source| SourceError::Open { path: path.to_path_buf(), source })?;
    if metadata.len() < expected {
        return Err(SourceError::Shrunk { path: path.to_path_buf(), expected, found: metadata.len() });
    }
    Ok(())
}
