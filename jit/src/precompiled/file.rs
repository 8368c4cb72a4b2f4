//! The form of a file: a header, the index, its hash by a key, and what the index lists.
//!
//! | bytes | |
//! |---|---|
//! | 8 | [`MAGIC`] |
//! | 4 | [`FORMAT`] |
//! | 8 | the length of the index |
//! | | the index |
//! | 32 | the keyed BLAKE3 of all before |
//! | | the bytes of the module, if it is there |
//! | | the chunks, one after the other |
//!
//! Numbers are little-endian. The index has the lengths and the BLAKE3 of all that follows, so nothing that the key's owner
//! has not written is ever decoded or run.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use slotvm_bytecode::{FuncType, ValType};

use super::fields::{self, Fields};
use super::{Item, Key};
use crate::lower::abi::Direction;

/// The first bytes. No other format of modules starts so.
pub(crate) const MAGIC: &[u8; 8] = b"\0slotvmc";
/// The version of the form of files.
const FORMAT: u32 = 1;
const HEADER_BYTES: usize = 8 + 4 + 8;
const HASH_BYTES: usize = 32;

type Hash = [u8; HASH_BYTES];

/// The key of files that are to be trusted for other reasons than their hash, which then shows damage alone.
pub(crate) const NO_KEY: &Key = b"slotvm: not a key, for checksums";

/// The reason why a file is not used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("cannot read a precompiled module: {0}")]
    Read(#[from] io::Error),
    #[error("not a precompiled module")]
    NotPrecompiled,
    #[error("a precompiled module of format {0}, not {FORMAT}")]
    Format(u32),
    #[error("a precompiled module that is cut off")]
    CutOff,
    #[error("a precompiled module that was changed, or that has another key")]
    NotAuthentic,
    #[error("a precompiled module whose index is damaged")]
    Damaged,
    #[error("a precompiled module with bytes behind its end")]
    TooLong,
    #[error("a precompiled module for another engine: its {name} is {there}, not {here}")]
    Field { name: String, here: String, there: String },
    #[error("the code of another module")]
    OtherModule,
}

/// The contents of a file.
pub(crate) struct Contents<'a> {
    pub(crate) about: About,
    /// The bytes of the module, if they are to be there.
    pub(crate) module: Option<&'a [u8]>,
    /// The items of each chunk, and its bytes.
    pub(crate) chunks: Vec<(Vec<Item>, Vec<u8>)>,
}

/// The module and the engine that the code is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct About {
    /// The fields that the code depends on.
    pub(crate) fields: Fields,
    /// The BLAKE3 of the bytes of the module.
    pub(crate) module: Hash,
    /// Whether functions of the module can be translated when they are first asked for. They are valid.
    pub(crate) is_lazy: bool,
}

#[derive(Serialize, Deserialize)]
struct Index {
    about: About,
    module_bytes: Option<u64>,
    chunks: Vec<IndexedChunk>,
}

#[derive(Serialize, Deserialize)]
struct IndexedChunk {
    bytes: u32,
    hash: Hash,
    items: Vec<IndexedItem>,
}

/// [`Item`], with the codes of types.
#[derive(Serialize, Deserialize)]
enum IndexedItem {
    Func(u32),
    Loops(u32, Vec<u32>),
    ToHost(Vec<u8>, Vec<u8>),
    FromHost(Vec<u8>, Vec<u8>),
}

impl IndexedItem {
    fn new(item: &Item) -> IndexedItem {
        let codes = |types: &[ValType]| types.iter().map(|ty| ty.code()).collect();
        match item {
            Item::Func(func) => IndexedItem::Func(*func),
            Item::Loops { func, loops } => IndexedItem::Loops(*func, loops.clone()),
            Item::Trampoline(direction, ty) => {
                let (params, results) = (codes(&ty.params), codes(&ty.results));
                match direction {
                    Direction::ToHost => IndexedItem::ToHost(params, results),
                    Direction::FromHost => IndexedItem::FromHost(params, results),
                }
            }
        }
    }

    fn item(self) -> Option<Item> {
        let trampoline = |direction, params: Vec<u8>, results: Vec<u8>| {
            let types = |codes: Vec<u8>| -> Option<Vec<ValType>> {
                codes.into_iter().map(ValType::from_code).collect()
            };
            Some(Item::Trampoline(direction, FuncType::new(types(params)?, types(results)?)))
        };
        match self {
            IndexedItem::Func(func) => Some(Item::Func(func)),
            IndexedItem::Loops(func, loops) => Some(Item::Loops { func, loops }),
            IndexedItem::ToHost(params, results) => trampoline(Direction::ToHost, params, results),
            IndexedItem::FromHost(params, results) => {
                trampoline(Direction::FromHost, params, results)
            }
        }
    }
}

/// The hash of bytes.
pub(crate) fn hash(bytes: &[u8]) -> Hash {
    blake3::hash(bytes).into()
}

/// The name in a cache for code of the module with a hash, which depends on these texts.
pub(crate) fn name<'t>(key: &Key, module: &Hash, texts: impl Iterator<Item = &'t str>) -> String {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(module);
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    format!("{}.vmc", hasher.finalize().to_hex())
}

/// The bytes of a file.
pub(crate) fn write(key: &Key, contents: Contents<'_>) -> Vec<u8> {
    let Contents { about, module, chunks } = contents;
    let indexed = |(items, bytes): &(Vec<Item>, Vec<u8>)| IndexedChunk {
        bytes: bytes.len() as u32,
        hash: hash(bytes),
        items: items.iter().map(IndexedItem::new).collect(),
    };
    let index = Index {
        about,
        module_bytes: module.map(|module| module.len() as u64),
        chunks: chunks.iter().map(indexed).collect(),
    };
    let index = postcard::to_stdvec(&index).expect("lists of numbers and texts have a form");
    // `module_bytes` of the index tells a file without its module from one with an empty one.
    let module = module.unwrap_or_default();
    let n_code_bytes: usize = chunks.iter().map(|(_, bytes)| bytes.len()).sum();
    let n_bytes = HEADER_BYTES + index.len() + HASH_BYTES + module.len() + n_code_bytes;
    let mut file = Vec::with_capacity(n_bytes);
    file.extend(MAGIC);
    file.extend(FORMAT.to_le_bytes());
    file.extend((index.len() as u64).to_le_bytes());
    file.extend(&index);
    let tag = blake3::keyed_hash(key, &file);
    file.extend(tag.as_bytes());
    file.extend(module);
    chunks.into_iter().for_each(|(_, bytes)| file.extend(bytes));
    file
}

/// The source of the bytes of a file.
pub(crate) enum Source {
    /// An open file. Its present content counts, whatever it was when the file was opened.
    File(File),
    Bytes(Arc<[u8]>),
}

impl Source {
    fn len(&self) -> io::Result<u64> {
        match self {
            Source::File(file) => Ok(file.metadata()?.len()),
            Source::Bytes(bytes) => Ok(bytes.len() as u64),
        }
    }

    /// Copies bytes that are in the file.
    fn read(&self, start: u64, len: usize) -> io::Result<Vec<u8>> {
        match self {
            Source::File(file) => {
                let mut bytes = vec![0; len];
                file.read_exact_at(&mut bytes, start)?;
                Ok(bytes)
            }
            Source::Bytes(bytes) => {
                let bytes = bytes.get(start as usize..).and_then(|bytes| bytes.get(..len));
                Ok(bytes.ok_or(io::ErrorKind::UnexpectedEof)?.to_vec())
            }
        }
    }
}

/// A file whose index is authentic.
pub(crate) struct Image {
    source: Source,
    about: About,
    module: Option<(u64, usize)>,
    chunks: Vec<ImageChunk>,
}

struct ImageChunk {
    start: u64,
    len: usize,
    hash: Hash,
    items: Vec<Item>,
}

impl Image {
    /// Reads and checks the index.
    ///
    /// # Errors
    /// Fails if it has not the hash by this key, does not fit the file, or is for code of other fields.
    pub(crate) fn open(source: Source, key: &Key, fields: &Fields) -> Result<Image, Refusal> {
        let len = source.len()?;
        let header = source.read(0, HEADER_BYTES.min(len.try_into().unwrap_or(usize::MAX)))?;
        if !header.starts_with(MAGIC) {
            return Err(Refusal::NotPrecompiled);
        }
        let header: [u8; HEADER_BYTES] = header.try_into().map_err(|_| Refusal::CutOff)?;
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte));
        let (format, index_bytes) = (number(&header[8..12]), number(&header[12..]));
        if format != u64::from(FORMAT) {
            return Err(Refusal::Format(format as u32));
        }
        let body_at = (HEADER_BYTES as u64 + HASH_BYTES as u64).checked_add(index_bytes);
        let body_at = body_at.filter(|&at| at <= len).ok_or(Refusal::CutOff)?;
        let authenticated = source.read(0, body_at as usize - HASH_BYTES)?;
        let tag: Hash = source
            .read(authenticated.len() as u64, HASH_BYTES)?
            .try_into()
            .map_err(|_| Refusal::CutOff)?;
        if blake3::keyed_hash(key, &authenticated) != tag {
            return Err(Refusal::NotAuthentic);
        }
        let index = postcard::from_bytes(&authenticated[HEADER_BYTES..]);
        let Index { about, module_bytes, chunks } = index.map_err(|_| Refusal::Damaged)?;
        if let Some((name, here, there)) = fields::difference(fields, &about.fields) {
            let [name, here, there] = [name, here, there].map(str::to_owned);
            return Err(Refusal::Field { name, here, there });
        }
        let mut end = body_at;
        let mut place = |bytes: u64| {
            let start = end;
            end = end.checked_add(bytes).filter(|&end| end <= len).ok_or(Refusal::CutOff)?;
            Ok::<_, Refusal>((start, bytes as usize))
        };
        let module = module_bytes.map(&mut place).transpose()?;
        let chunk = |chunk: IndexedChunk| {
            let (start, len) = place(chunk.bytes.into())?;
            let items = chunk.items.into_iter().map(IndexedItem::item).collect::<Option<_>>();
            let items = items.ok_or(Refusal::Damaged)?;
            Ok(ImageChunk { start, len, hash: chunk.hash, items })
        };
        let chunks: Vec<ImageChunk> =
            chunks.into_iter().map(chunk).collect::<Result<_, Refusal>>()?;
        if end != len {
            return Err(Refusal::TooLong);
        }
        Ok(Image { source, about, module, chunks })
    }

    pub(crate) fn about(&self) -> &About {
        &self.about
    }

    /// The bytes of the module.
    ///
    /// # Errors
    /// Fails if they are not there any more, or were never.
    pub(crate) fn module(&self) -> Result<Vec<u8>, Refusal> {
        let (start, len) = self.module.ok_or(Refusal::OtherModule)?;
        let module = self.source.read(start, len)?;
        if hash(&module) != self.about.module {
            return Err(Refusal::NotAuthentic);
        }
        Ok(module)
    }

    /// The items of each chunk.
    pub(crate) fn items(&self) -> impl ExactSizeIterator<Item = &[Item]> {
        self.chunks.iter().map(|chunk| &*chunk.items)
    }

    /// The bytes of a chunk.
    ///
    /// # Errors
    /// Fails if they are not there any more.
    pub(crate) fn chunk(&self, index: usize) -> Result<Vec<u8>, Refusal> {
        let ImageChunk { start, len, hash: expected, .. } = &self.chunks[index];
        let bytes = self.source.read(*start, *len)?;
        if hash(&bytes) != *expected {
            return Err(Refusal::NotAuthentic);
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::config::Config;
    use crate::native::ownership::engine::NativeEngine;

    const KEY: &Key = &[3; 32];

    fn about(fields: &Fields) -> About {
        About { fields: fields.clone(), module: hash(b"module"), is_lazy: false }
    }

    fn file(fields: &Fields) -> Vec<u8> {
        let items = vec![Item::Func(3), Item::Loops { func: 4, loops: vec![2, 1] }];
        let ty = FuncType::new([ValType::I32, ValType::V128], [ValType::F64]);
        let trampoline = vec![Item::Trampoline(Direction::FromHost, ty)];
        let chunks = vec![(items, b"chunk".to_vec()), (trampoline, b"another".to_vec())];
        write(KEY, Contents { about: about(fields), module: Some(b"module"), chunks })
    }

    fn open(bytes: &[u8], fields: &Fields) -> Result<Image, Refusal> {
        Image::open(Source::Bytes(bytes.into()), KEY, fields)
    }

    #[test]
    fn files_have_what_was_written() {
        let fields = vec![("name".to_owned(), "value".to_owned())];
        let image = open(&file(&fields), &fields).unwrap();
        assert_eq!(image.about(), &about(&fields));
        assert_eq!(image.module().unwrap(), b"module");
        let items: Vec<&[Item]> = image.items().collect();
        assert_eq!(items.len(), 2);
        assert_eq!(items[0], [Item::Func(3), Item::Loops { func: 4, loops: vec![2, 1] }]);
        assert!(
            matches!(&items[1], [Item::Trampoline(Direction::FromHost, ty)] if ty.params.len() == 2)
        );
        assert_eq!(image.chunk(0).unwrap(), b"chunk");
        assert_eq!(image.chunk(1).unwrap(), b"another");
    }

    #[test]
    fn no_byte_is_without_effect() {
        let fields = vec![("name".to_owned(), "value".to_owned())];
        let good = file(&fields);
        let read = |bytes: &[u8]| {
            let image = open(bytes, &fields)?;
            image.module()?;
            (0..image.items().len()).try_for_each(|chunk| image.chunk(chunk).map(drop))
        };
        read(&good).unwrap();
        for (at, bit) in (0..good.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut changed = good.clone();
            changed[at] ^= 1 << bit;
            assert!(read(&changed).is_err(), "bit {bit} of byte {at}");
        }
        for len in 0..good.len() {
            assert!(read(&good[..len]).is_err(), "{len} bytes");
        }
        assert!(matches!(read(&[&good[..], b"x"].concat()), Err(Refusal::TooLong)));
    }

    #[test]
    fn each_field_of_an_engine_decides() {
        let engine = NativeEngine::new(&Config::default()).unwrap();
        let fields = engine.fields();
        let named = |name| fields.iter().any(|(known, _)| known == name);
        for name in ["version", "sources", "Cranelift", "target", "slots", "fuel", "opt_level"] {
            assert!(named(name), "{name}");
        }
        let has_features = fields.iter().filter(|(name, _)| name.starts_with("has_")).count();
        assert!(has_features > 3);
        open(&file(fields), fields).unwrap();
        let module = hash(b"module");
        let name_of = |fields: &Fields, module: &Hash, extension: Option<&str>| {
            let texts = fields.iter().flat_map(|(name, value)| [name.as_str(), value]);
            name(KEY, module, texts.chain(extension))
        };
        let mut names = HashSet::new();
        assert!(names.insert(name_of(fields, &module, None)));
        assert!(names.insert(name_of(fields, &module, Some("bc"))));
        assert!(names.insert(name_of(fields, &hash(b"other"), None)));
        for i in 0..fields.len() {
            let mut other = fields.clone();
            other[i].1.push('x');
            assert!(names.insert(name_of(&other, &module, None)));
            let Err(Refusal::Field { name, here, there }) = open(&file(&other), fields) else {
                panic!("{:?} does not matter", fields[i]);
            };
            assert_eq!((&name, &here, &there), (&fields[i].0, &fields[i].1, &other[i].1));
            let mut fewer = fields.clone();
            fewer.remove(i);
            assert!(matches!(open(&file(&fewer), fields), Err(Refusal::Field { .. })));
            assert!(matches!(open(&file(fields), &fewer), Err(Refusal::Field { .. })));
        }
    }
}
