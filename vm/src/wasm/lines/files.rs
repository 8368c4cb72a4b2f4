//! Names of source files from the headers of line programs, section 6.2.4 of DWARF 5 and of earlier versions.
//!
//! A [`FileTable`] keeps for each directory and file where its name is, in 20 bytes at most. An entry takes at least one
//! byte of the header. [`FileNames`] reads the names of the files that rows refer to, and numbers them.
//!
//! Many entries may refer to one long string, or to parts of it. So the bytes that are read, and those of the names,
//! are limited in proportion to the bytes of the sections. Files beyond the limits are unknown, as are those whose tables
//! or names cannot be read. Bytes of names that are not UTF-8 become U+FFFD.

use std::collections::HashMap;

use super::Sections;
use super::bytes::Bytes;
use super::program::Tables;

/// Bytes of the name of a source file of WebAssembly, with its directory. Files with longer names are unknown: any number
/// of them could share the bytes of one.
const SOURCE_FILE_NAME_BYTES_MAX: usize = 4_096;

/// Bytes of the names of all source files of a module of WebAssembly, in excess of one for each byte of the sections of line
/// tables. Further files are unknown. In small modules, directories may be longer than all rows of their files.
const SOURCE_FILES_BYTES_MAX: usize = 65_536;

/// Bytes that are read for each byte that the names may have: units of a program repeat the names of its headers. The units of
/// a Rust program read a tenth of the bytes of its line tables.
const READ_PER_BYTE_MAX: usize = 4;

/// Where a string is.
#[derive(Copy, Clone, Debug)]
struct Text {
    section: Section,
    offset: u32,
}

#[derive(Copy, Clone, Debug)]
enum Section {
    /// The tables of the header themselves.
    Tables,
    LineStrings,
    Strings,
}

/// A directory or a file.
#[derive(Copy, Clone, Debug, Default)]
struct Entry {
    path: Option<Text>,
    /// The number of a file's directory.
    directory: u32,
}

/// The directories and files of a line program.
#[derive(Debug)]
pub(super) struct FileTable<'b> {
    bytes: &'b [u8],
    /// Whether 0 is the number of the first directory and file, that of the unit.
    is_from_0: bool,
    directories: Vec<Entry>,
    files: Vec<Entry>,
    /// The numbers of the files in the module, as far as they are known.
    numbers: Vec<Option<u32>>,
}

impl<'b> FileTable<'b> {
    /// Reads the tables of a header. If one cannot be read, there are no files.
    pub(super) fn read(tables: Tables<'b>) -> FileTable<'b> {
        let mut reader = TableReader {
            rest: tables.bytes,
            n_bytes: tables.bytes.0.len(),
            offset_bytes: tables.offset_bytes,
        };
        let is_from_0 = tables.version >= 5;
        let read = if is_from_0 { reader.described() } else { reader.fixed() };
        let (directories, files) = read.unwrap_or_default();
        let numbers = vec![None; files.len()];
        FileTable { bytes: tables.bytes.0, is_from_0, directories, files, numbers }
    }

    /// The index of a directory or file with a number.
    fn index(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(u64::from(!self.is_from_0))?).ok()
    }

    /// Where the name of a directory is.
    fn directory(&self, number: u32) -> Option<Text> {
        self.directories.get(self.index(number.into())?)?.path
    }
}

/// Reads the tables of directories and files.
struct TableReader<'b> {
    rest: Bytes<'b>,
    /// The length of the tables with what has been read.
    n_bytes: usize,
    offset_bytes: u64,
}

/// The value of a field of an entry.
enum Value {
    Text(Text),
    Number(u64),
    Other,
}

impl TableReader<'_> {
    /// Reads the tables of versions 2 to 4, whose entries all have the same fields.
    fn fixed(&mut self) -> Option<(Vec<Entry>, Vec<Entry>)> {
        let (mut directories, mut files) = (Vec::new(), Vec::new());
        while let path @ Some(_) = self.string_or_end()? {
            directories.push(Entry { path, directory: 0 });
        }
        while let path @ Some(_) = self.string_or_end()? {
            let directory = directory_number(self.rest.unsigned()?);
            let (_time, _length) = (self.rest.unsigned()?, self.rest.unsigned()?);
            files.push(Entry { path, directory });
        }
        Some((directories, files))
    }

    /// Reads a string of a list that an empty one ends.
    fn string_or_end(&mut self) -> Option<Option<Text>> {
        let text = self.text_here()?;
        let is_end = self.rest.string()?.is_empty();
        Some((!is_end).then_some(text))
    }

    /// Reads the tables of version 5, which describe their entries.
    fn described(&mut self) -> Option<(Vec<Entry>, Vec<Entry>)> {
        Some((self.described_table()?, self.described_table()?))
    }

    fn described_table(&mut self) -> Option<Vec<Entry>> {
        let n_fields = self.rest.byte()?;
        let mut fields = Vec::with_capacity(n_fields.into());
        for _ in 0..n_fields {
            fields.push((self.rest.unsigned()?, self.rest.unsigned()?));
        }
        let mut entries = Vec::new();
        for _ in 0..self.rest.unsigned()? {
            let n_rest = self.rest.0.len();
            let mut entry = Entry::default();
            for &(content, form) in &fields {
                match (content, self.value(form)?) {
                    // DW_LNCT_path
                    (1, Value::Text(path)) => entry.path = Some(path),
                    // DW_LNCT_directory_index
                    (2, Value::Number(number)) => entry.directory = directory_number(number),
                    _ => {}
                }
            }
            // There may be any number of entries without bytes.
            if self.rest.0.len() == n_rest {
                return None;
            }
            entries.push(entry);
        }
        Some(entries)
    }

    /// Reads a value of a form that tables may have.
    fn value(&mut self, form: u64) -> Option<Value> {
        let rest = &mut self.rest;
        let n_other = match form {
            // DW_FORM_data1, data2, data4, data8 and udata
            0x0b => return Some(Value::Number(rest.number(1)?)),
            0x05 => return Some(Value::Number(rest.number(2)?)),
            0x06 => return Some(Value::Number(rest.number(4)?)),
            0x07 => return Some(Value::Number(rest.number(8)?)),
            0x0f => return Some(Value::Number(rest.unsigned()?)),
            // DW_FORM_string
            0x08 => {
                let text = self.text_here()?;
                self.rest.string()?;
                return Some(Value::Text(text));
            }
            // DW_FORM_strp and DW_FORM_line_strp
            0x0e => return self.text_in(Section::Strings),
            0x1f => return self.text_in(Section::LineStrings),
            // DW_FORM_data16, and DW_FORM_block with its sizes
            0x1e => 16,
            0x09 => rest.unsigned()?,
            0x0a => rest.number(1)?,
            0x03 => rest.number(2)?,
            0x04 => rest.number(4)?,
            _ => return None,
        };
        rest.take(n_other)?;
        Some(Value::Other)
    }

    /// The string that begins here.
    fn text_here(&self) -> Option<Text> {
        let offset = u32::try_from(self.n_bytes - self.rest.0.len()).ok()?;
        Some(Text { section: Section::Tables, offset })
    }

    /// Reads the offset of a string in a section.
    fn text_in(&mut self, section: Section) -> Option<Value> {
        let offset = u32::try_from(self.rest.number(self.offset_bytes)?);
        Some(offset.map_or(Value::Other, |offset| Value::Text(Text { section, offset })))
    }
}

/// Converts the number of a directory; no table has as many as the last one.
fn directory_number(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The names of files of a module, with their numbers.
pub(super) struct FileNames<'b> {
    sections: Sections<'b>,
    numbers: HashMap<String, u32>,
    /// The bytes that may still be read.
    n_read_max: usize,
    /// The bytes that further names may have.
    n_kept_max: usize,
}

impl<'b> FileNames<'b> {
    pub(super) fn new(sections: Sections<'b>) -> FileNames<'b> {
        let Sections { lines, line_strings, strings } = sections;
        let n_bytes = lines.len() + line_strings.len() + strings.len();
        let n_kept_max = SOURCE_FILES_BYTES_MAX + n_bytes;
        let n_read_max = n_kept_max * READ_PER_BYTE_MAX;
        FileNames { sections, numbers: HashMap::new(), n_read_max, n_kept_max }
    }

    /// The numbers and names, in ascending order.
    pub(super) fn into_list(self) -> Vec<(u32, String)> {
        let mut list: Vec<_> =
            self.numbers.into_iter().map(|(name, number)| (number, name)).collect();
        list.sort_unstable_by_key(|&(number, _)| number);
        list
    }

    /// Returns the number in the module of a file of a table, or 0 if it is unknown.
    pub(super) fn number(&mut self, table: &mut FileTable<'b>, file: u64) -> u32 {
        let Some(index) = table.index(file).filter(|&index| index < table.files.len()) else {
            return 0;
        };
        if let Some(number) = table.numbers[index] {
            return number;
        }
        let name = self.name(table, table.files[index]);
        let number = name.map_or(0, |name| self.number_of(name));
        table.numbers[index] = Some(number);
        number
    }

    /// Returns the number of a name. Equal ones share one.
    fn number_of(&mut self, name: String) -> u32 {
        if let Some(&number) = self.numbers.get(&name) {
            return number;
        }
        let Some(n_kept_max) = self.n_kept_max.checked_sub(name.len()) else { return 0 };
        self.n_kept_max = n_kept_max;
        let number = self.numbers.len() as u32 + 1;
        self.numbers.insert(name, number);
        number
    }

    /// Returns the name of a file: joined to its directory, and that to the directory of the unit, unless one of them is
    /// absolute. The directory of the unit is unknown before version 5.
    fn name(&mut self, table: &FileTable<'b>, file: Entry) -> Option<String> {
        let mut name = self.text(table, file.path?).filter(|path| !path.is_empty())?.to_vec();
        for directory in [file.directory, 0] {
            if is_absolute(&name) {
                break;
            }
            let text = table.directory(directory).and_then(|text| self.text(table, text));
            let Some(text) = text else { break };
            name = joined(text, &name);
            if directory == 0 {
                break;
            }
        }
        let is_short = name.len() <= SOURCE_FILE_NAME_BYTES_MAX;
        is_short.then(|| String::from_utf8_lossy(&name).into_owned())
    }

    /// Reads a string. Returns `None` if it has no end, is too long, or too much has been read.
    fn text(&mut self, table: &FileTable<'b>, text: Text) -> Option<&'b [u8]> {
        let section = match text.section {
            Section::Tables => table.bytes,
            Section::LineStrings => self.sections.line_strings,
            Section::Strings => self.sections.strings,
        };
        let rest = section.get(text.offset as usize..)?;
        let within = &rest[..rest.len().min(SOURCE_FILE_NAME_BYTES_MAX + 1)];
        self.n_read_max = self.n_read_max.checked_sub(within.len())?;
        let string = Bytes(within).string()?;
        self.n_read_max += within.len() - (string.len() + 1);
        Some(string)
    }
}

/// Whether a path has no need of a directory, on Unix or on Windows.
fn is_absolute(path: &[u8]) -> bool {
    matches!(path, [b'/' | b'\\', ..] | [b'A'..=b'Z' | b'a'..=b'z', b':', b'/' | b'\\', ..])
}

fn joined(directory: &[u8], path: &[u8]) -> Vec<u8> {
    let separator: &[u8] = match directory.last() {
        None | Some(b'/' | b'\\') => b"",
        Some(_) => b"/",
    };
    [directory, separator, path].concat()
}

#[cfg(test)]
mod tests;
