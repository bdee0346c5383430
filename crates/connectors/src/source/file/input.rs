//! The bytes of a split, unpacked, block by block.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Take};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use super::{FileSplit, SourceError};

/// How much packed data is read at a time.
const PACKED_BLOCK: usize = 256 << 10;

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
    Packed(Box<MultiGzDecoder<BufReader<Take<File>>>>),
}

impl Input {
    /// Opens the file of `split` at byte `from` of the unpacked file, which is 0 for a packed one.
    pub(super) fn open(split: &FileSplit, from: u64) -> Result<Self, SourceError> {
        let cannot_open = |source| SourceError::Open { path: split.path.clone(), source };
        let mut file = File::open(&split.path).map_err(cannot_open)?;
        let expected = split.end.unwrap_or(0);
        require_length(&file, &split.path, expected)?;
        let bytes = if split.gzip {
            // As with plain files, what was appended since the listing is not read.
            let listed = file.take(split.end.unwrap_or(u64::MAX));
            Source::Packed(Box::new(MultiGzDecoder::new(BufReader::with_capacity(PACKED_BLOCK, listed))))
        } else {
            file.seek(SeekFrom::Start(from)).map_err(cannot_open)?;
            Source::Plain(file)
        };
        Ok(Self { path: split.path.clone(), expected, position: from, bytes })
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
                Source::Packed(decoder) => decoder.read(room),
            };
            match read {
                Ok(0) => break Ok(Filled::End),
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break self.broken(error),
            }
        };
        buffer.truncate(filled);
        self.position += (filled - before) as u64;
        let outcome = outcome.map_err(|source| SourceError::Read {
            path: self.path.clone(),
            offset: self.position,
            source,
        })?;
        if outcome != Filled::More {
            self.require_all()?;
        }
        Ok(outcome)
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
            Source::Packed(decoder) => {
                require_length(decoder.get_ref().get_ref().get_ref(), &self.path, self.expected)
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
