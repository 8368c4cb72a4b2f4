//! What is known about the functions of a module before they are verified.

use super::error::VerifyError;
use super::found::Found;
use super::{IndexSpaces, Shapes, func};
use crate::limits;
use crate::module::{Module, ShapeId};
use crate::parallel;
use crate::verified::Body;

/// What a translator has proved about functions, and found in them. The default is nothing.
#[derive(Debug, Default)]
pub(crate) struct Proof {
    /// What the verifier will find out about each function, except for the shapes of blocks: None if that is left to
    /// it, as for functions beyond the end of the list.
    pub(crate) bodies: Vec<Option<Body>>,
    /// What was found in the functions with bodies.
    pub(crate) found: Found,
}

impl Proof {
    /// Checks the functions about which nothing is known. Returns the results for all of them.
    pub(super) fn complete(
        self,
        module: &Module,
        spaces: &IndexSpaces,
        shapes: &Shapes,
        is_parallel: bool,
    ) -> Result<(Vec<Body>, Found), VerifyError> {
        let Proof { bodies: known, mut found } = self;
        let fits = |body: &Body| body.stack_max as usize <= limits::STACK_OPERANDS_MAX;
        let is_known = |i: usize| matches!(known.get(i), Some(Some(body)) if fits(body));
        let bytes = |i: usize| if is_known(i) { 0 } else { module.funcs[i].code.len() };
        let parts =
            parallel::parts(&(0..module.funcs.len()).map(bytes).collect::<Vec<_>>(), is_parallel);
        let check = |scratch: &mut func::Scratch, part: usize| {
            let mut checked = Vec::new();
            for i in parts[part].clone() {
                if is_known(i) && !cfg!(debug_assertions) {
                    func::check_limits(module, spaces, i)?;
                } else {
                    checked.push((i, func::check(module, spaces, shapes, i, scratch)?));
                }
            }
            Ok((checked, std::mem::take(&mut scratch.found)))
        };
        let results = parallel::try_map(parts.len(), is_parallel, func::Scratch::default, check)?;
        let mut bodies = known;
        bodies.resize(module.funcs.len(), None);
        for (i, body) in bodies.iter_mut().enumerate() {
            if let Some(body) = body {
                set_shapes(body, module, i);
            }
        }
        for (checked, found_there) in results {
            for (i, body) in checked {
                let known = bodies[i].replace(body);
                debug_assert!(known.is_none_or(|known| !fits(&known) || bodies[i] == Some(known)));
            }
            found.add(found_there);
        }
        Ok((
            bodies.into_iter().map(|body| body.expect("the others have been checked")).collect(),
            found,
        ))
    }
}

/// Sets the shapes of blocks: that of the label at the start, or else that of the label to which a conditional branch
/// goes before.
fn set_shapes(body: &mut Body, module: &Module, func: usize) {
    let labels = &module.funcs[func].labels;
    for i in 0..body.blocks.len() {
        let at_label = match (body.blocks[i].label, i.checked_sub(1)) {
            (None, Some(before)) => body.blocks[body.succs(before)[0] as usize].label,
            (label, _) => label,
        };
        body.blocks[i].shape =
            at_label.map_or(ShapeId::EMPTY, |label| labels[label as usize].shape);
    }
}
