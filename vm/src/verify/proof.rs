//! What is known about the functions of a module before they are verified.

use std::mem;

use super::error::VerifyError;
use super::found::Found;
use super::{IndexSpaces, Shapes, func};

use crate::limits;
use crate::module::Module;
use crate::parallel;
use crate::verified::Body;
use crate::verified::lazy::LazyFuncs;

/// What a translator has proved about functions, and found in them. The default is nothing.
#[derive(Debug, Default)]
pub(crate) struct Proof {
    /// What the verifier will find out about each function, except for the shapes of blocks: None if that is left to
    /// it, as for functions beyond the end of the list.
    pub(crate) bodies: Vec<Option<Body>>,
    /// What was found in the functions with bodies.
    pub(crate) found: Found,
    /// The functions, if they are not made yet. Nothing is left to check about them.
    pub(crate) lazy: Option<LazyFuncs>,
}

impl Proof {
    /// Checks the functions about which nothing is known, unless they are not made yet. Returns the results for all of them.
    pub(super) fn complete(
        &mut self,
        module: &Module,
        spaces: &IndexSpaces,
        shapes: &Shapes,
        is_parallel: bool,
    ) -> Result<(Vec<Body>, Found), VerifyError> {
        let (known, mut found) = (mem::take(&mut self.bodies), mem::take(&mut self.found));
        if self.lazy.is_some() {
            // What the code does is not known yet. It may refer to what something outside refers to.
            module.for_each_ref(|func| found.referenced_funcs.push(func));
            return Ok((Vec::new(), found));
        }
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
            Ok((checked, mem::take(&mut scratch.found)))
        };
        let results = parallel::try_map(parts.len(), is_parallel, func::Scratch::default, check)?;
        let mut bodies = known;
        bodies.resize(module.funcs.len(), None);
        for (i, body) in bodies.iter_mut().enumerate() {
            if let Some(body) = body {
                body.set_shapes(&module.funcs[i].labels);
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
