//! Faults planted in a copy of the sources, to prove that tests find such faults.
//!
//! The sources themselves know nothing of faults. [`FAULTS`] lists places in them with a faulty text each, in which
//! `PLANTED` stands for the question whether this fault is switched on. [`plant`] copies the workspace and applies the
//! list, so one build has all faults, and a test switches them on one at a time. The copy also has a pass of each
//! form that a test chooses: `planted_slots` before `pressure`, and `planted` before `destruct`.
//!
//! `examples/plant.rs` makes the copy; there, `tests/planted_faults.rs`, `tests/planted_configurations.rs` and
//! vmrun's `tests/planted_row.rs`, `tests/planted_crosscheck.rs` and `tests/planted_panic.rs` can be built with the feature `planted`.

mod faults;

use std::fs;
use std::io::{self, Error};
use std::path::Path;

pub use faults::FAULTS;

/// A fault that can be switched on in the copy.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The fault, in a sentence.
    pub description: &'static str,
    /// The check that finds it.
    pub found_by: FoundBy,
    /// The place of the fault.
    edit: Edit,
}

/// A check that finds a fault.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// The comparison of engines.
    Engines,
    /// The comparison of engines in configurations of users, in a release build.
    Configurations,
    /// Verification after this row of the pipeline.
    Row(&'static str),
    /// `vmrun crosscheck`.
    Crosscheck {
        /// The pass that it names.
        pass: &'static str,
        /// The program, and options.
        args: &'static [&'static str],
    },
}

/// A text in place of another.
#[derive(Clone, Debug)]
struct Edit {
    /// The file, from the root of the workspace.
    file: &'static str,
    /// A text that stands in the file once.
    sound: &'static str,
    /// The text in its place.
    faulty: &'static str,
}

/// The switches of faults, a module of the crate `slotvm-ssa` in the copy.
const SWITCHES: &str = include_str!("planted/switches.rs");

/// Other changes of the copy: its version, the switches, and a pass that a test chooses.
const SEAMS: [Edit; 4] = [
    // Cargo tells packages apart by version and not by folder, so that otherwise a copy which is built into the same
    // target folder would be taken for the original.
    Edit {
        file: "Cargo.toml",
        sound: "[workspace.package]\nversion = \"0.1.0\"\n",
        faulty: "[workspace.package]\nversion = \"0.1.1\"\n",
    },
    Edit {
        file: "ssa/src/lib.rs",
        sound: "pub mod tools;\n",
        faulty: "pub mod tools;\nextern crate self as slotvm_ssa;\npub mod switches;\n",
    },
    Edit {
        file: "ssa/src/pipeline/rows.rs",
        sound: "    row!(\"destruct\"",
        faulty: "    row!(optional \"planted\": Ssa -> Ssa, [Jit, Opt], Run::Pass(|f, _| edited(f, crate::switches::pass)), trace_span, \
                 \"A pass that a test chooses\"),\n    row!(\"destruct\"",
    },
    Edit {
        file: "ssa/src/pipeline/rows.rs",
        sound: "    row!(optional promoted \"pressure\"",
        faulty: "    row!(optional \"planted_slots\": Slots -> Slots, [Jit], Run::Pass(|f, _| changed(crate::switches::slot_pass(f))), trace_span, \
                 \"A pass in slot form that a test chooses\"),\n    row!(optional promoted \"pressure\"",
    },
];

/// Copies a workspace, without what was built in it, and plants all faults in the copy, which replaces an earlier one.
///
/// # Errors
/// Fails if a file cannot be read or written, or if a place is not found exactly once.
pub fn plant(workspace: &Path, copy: &Path) -> io::Result<()> {
    if copy.exists() {
        fs::remove_dir_all(copy)?;
    }
    copy_folder(workspace, copy)?;
    fs::write(copy.join("ssa/src/switches.rs"), SWITCHES)?;
    for (file, text) in edited(workspace)? {
        fs::write(copy.join(file), text)?;
    }
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        if kind.is_dir() && name != "target" && name != ".git" {
            copy_folder(&entry.path(), &to.join(name))?;
        } else if kind.is_file() {
            fs::copy(entry.path(), to.join(name))?;
        }
    }
    Ok(())
}

/// The files with faults, and their texts.
fn edited(workspace: &Path) -> io::Result<Vec<(&'static str, String)>> {
    let switch = |i: usize| format!("::slotvm_ssa::switches::is_on({i})");
    let faults = FAULTS.iter().enumerate();
    let faults =
        faults.map(|(i, fault)| (&fault.edit, fault.edit.faulty.replace("PLANTED", &switch(i))));
    let edits = SEAMS.iter().map(|edit| (edit, edit.faulty.to_owned())).chain(faults);
    let mut files: Vec<(&'static str, String)> = Vec::new();
    for (edit, faulty) in edits {
        let known = files.iter().position(|(file, _)| *file == edit.file);
        let place = match known {
            Some(place) => place,
            None => {
                files.push((edit.file, fs::read_to_string(workspace.join(edit.file))?));
                files.len() - 1
            }
        };
        let text = &mut files[place].1;
        let n = text.matches(edit.sound).count();
        if n != 1 {
            let error =
                format!("{}: expected one place of a fault, found {n}: {}", edit.file, edit.sound);
            return Err(Error::other(error));
        }
        *text = text.replace(edit.sound, &faulty);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use slotvm_ssa::pipeline::{Row, When};

    use super::*;

    #[test]
    fn every_fault_has_its_place() {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let files = edited(&workspace).unwrap();
        let switches = files.iter().map(|(_, text)| text.matches("switches::is_on(").count());
        assert!(switches.sum::<usize>() >= FAULTS.len());
    }

    #[test]
    fn every_row_of_the_ir_has_a_fault() {
        let rows = slotvm_ssa::pipeline::TABLE.iter();
        for row in rows.filter(|row| row.makes.form().is_some() && !row.name.starts_with("planted"))
        {
            let is_of = |fault: &Fault| fault.found_by == FoundBy::Row(row.name);
            assert!(FAULTS.iter().any(is_of), "no fault is planted in {}", row.name);
        }
    }

    #[test]
    fn every_pass_has_a_fault_that_crosscheck_finds() {
        let rows = slotvm_ssa::pipeline::optional_rows();
        // `crosscheck` runs native code with guard pages, for which these do nothing.
        let is_other = |row: &Row| row.when == When::Checked || row.name.starts_with("planted");
        for (_, row) in rows.filter(|(_, row)| !is_other(row)) {
            let is_of = |fault: &Fault| matches!(fault.found_by, FoundBy::Crosscheck { pass, .. } if pass == row.name);
            assert!(FAULTS.iter().any(is_of), "no fault of crosscheck is planted in {}", row.name);
        }
    }
}
