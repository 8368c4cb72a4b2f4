//! A function from bytecode to the form that is lowered: the rows of the table up to the last pass.
//!
//! Without promotion, that is the slot form after the passes on slot form.

use slotvm_bytecode::VerifiedModule;
use slotvm_ssa::construction::build::{BuildOptions, FuncExits, SsaOptions, build_ssa};
use slotvm_ssa::construction::promote::PromotionReport;
use slotvm_ssa::graphs::loops::LoopForest;
use slotvm_ssa::ir::Function;
use slotvm_ssa::passes::inline::{BodyExits, ExitPlan};
use slotvm_ssa::pipeline::{
    Driver, Growth, PassContext, PassScratch, PassSet, Product, Start, TABLE, Times, User, When,
};

use super::{CompileOptions, Compiler};
use crate::compile::budget::Share;
use crate::compile::failure::{CompileFailure, Refusal};
use crate::lower::exits::LeftCode;
use crate::lower::isa::preserved_registers;

/// What a function is made from.
#[derive(Copy, Clone)]
pub(crate) enum Origin<'a> {
    /// Its bytecode, or what follows in it at the start of one of some loops, by their numbers.
    Bytecode { func: u32, loops: &'a [u32], exits: FormExits<'a> },
    /// Its slot form, which has passed the verifier of the IR, whatever its bytecode is.
    SlotForm(&'a Function),
}

/// The exits that a form has.
#[derive(Copy, Clone, Debug)]
pub(crate) struct FormExits<'a> {
    /// The exits of the form itself.
    pub(crate) of_func: &'a FuncExits,
    /// Those of functions that are inlined, if they have any.
    pub(crate) bodies: Option<BodyExits<'a>>,
    /// The code that they are in, if there are any.
    pub(crate) code: Option<LeftCode<'a>>,
}

impl Default for FormExits<'_> {
    /// None.
    fn default() -> Self {
        FormExits { of_func: FuncExits::NONE, bodies: None, code: None }
    }
}

impl<'a> FormExits<'a> {
    /// The exits of code, as planned.
    pub(crate) fn new(plan: &'a ExitPlan, code: LeftCode<'a>) -> FormExits<'a> {
        FormExits { of_func: &plan.of_func, bodies: plan.of_bodies(), code: Some(code) }
    }
}

impl FormExits<'_> {
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.of_func.is_empty() && self.bodies.is_none()
    }
}

impl<'a> Origin<'a> {
    /// The bytecode of a function, all of it.
    pub(crate) fn of_func(func: u32) -> Origin<'a> {
        Origin::at(func, &[])
    }

    /// The bytecode of a function, or what follows in it at some loops, without exits.
    pub(crate) fn at(func: u32, loops: &'a [u32]) -> Origin<'a> {
        Origin::Bytecode { func, loops, exits: FormExits::default() }
    }

    /// The loops that the form is entered in, if not at the function's start.
    pub(crate) fn loops(self) -> &'a [u32] {
        match self {
            Origin::Bytecode { loops, .. } => loops,
            Origin::SlotForm(_) => &[],
        }
    }

    /// The exits of the form.
    pub(crate) fn exits(self) -> FormExits<'a> {
        match self {
            Origin::Bytecode { exits, .. } => exits,
            Origin::SlotForm(_) => FormExits::default(),
        }
    }
}

impl Origin<'_> {
    /// The number of the function.
    pub(crate) fn func(self) -> u32 {
        match self {
            Origin::Bytecode { func, .. } => func,
            Origin::SlotForm(function) => function.func,
        }
    }

    /// Its name.
    pub(crate) fn name(self, module: &VerifiedModule) -> String {
        match self {
            Origin::Bytecode { func, .. } => module.func_name(func),
            Origin::SlotForm(function) => function.name.clone(),
        }
    }

    /// The growth of passes that may run.
    pub(crate) fn growth_max(self) -> Growth {
        match self {
            Origin::Bytecode { .. } => Growth::Manifold,
            // Its calls are not those of its bytecode.
            Origin::SlotForm(_) => Growth::None,
        }
    }

    /// The blocks where the form is entered, if not at the function's start: that where the only loop begins, or one for
    /// each loop of the function, by number. Nobody enters those that the form is not for.
    fn starts(self, module: &VerifiedModule) -> Vec<u32> {
        let Origin::Bytecode { func, loops: numbers @ [first, ..], .. } = self else {
            return Vec::new();
        };
        let loops = module.body(func).expect("the module defines the function").loops();
        let first = loops[*first as usize].start;
        if numbers.len() == 1 {
            return vec![first];
        }
        let mut starts = vec![first; loops.len()];
        for &number in numbers {
            starts[number as usize] = loops[number as usize].start;
        }
        starts
    }
}

/// A function before it is lowered.
pub(crate) struct Form {
    /// The function in the form that the slot mode compiles.
    pub(crate) function: Function,
    /// The passes that it was to go through.
    pub(crate) passes: PassSet,
    /// The report of promotion, if there was any.
    pub(crate) promotion: Option<PromotionReport>,
    /// The greatest growth of passes that may have made it larger than its bytecode.
    pub(crate) growth: Growth,
    /// The functions whose bodies it has as well.
    pub(crate) inlined: Vec<u32>,
    /// Its loops.
    pub(crate) loops: LoopForest,
}

impl Compiler {
    /// The form of a function that the slot mode compiles, after these passes.
    ///
    /// # Errors
    /// Fails if a stage leaves an invalid function, which is a fault of this project, or if there is no form that is entered
    /// in all of some loops.
    pub(crate) fn form(
        &mut self,
        module: &VerifiedModule,
        origin: Origin<'_>,
        passes: PassSet,
        share: Share,
        times: &mut Times,
    ) -> Result<Form, Refusal> {
        let CompileOptions { build, verify, lower, .. } = &self.options;
        let is_promoted = lower.slots.is_promoted();
        let mut promotion = self.options.promotion;
        promotion.phi_operands_max = promotion.phi_operands_max.min(share.phi_operands_max());
        let starts = origin.starts(module);
        let (mut function, start) = match self.options.built_at_once(module, origin) {
            Some((func, options)) => {
                let scratch = &mut self.passes.build;
                match times.named("ssa", || build_ssa(module, func, &options, scratch)) {
                    Some((function, _)) => (function, Start::Ssa),
                    None => origin.start(),
                }
            }
            None => origin.start(),
        };
        let mut context = PassContext {
            starts: &starts,
            exits: origin.exits().of_func,
            body_exits: origin.exits().bodies,
            takes_names: self.options.takes_names(),
            build: BuildOptions { waits: origin.exits().bodies.is_some(), ..*build },
            promotion,
            preserved: preserved_registers(&*lower.isa),
            ..PassContext::new(module, origin.func(), &mut self.passes)
        };
        let driver = Driver::new(User::Jit, passes, *verify, times);
        let ran = driver.promoted(is_promoted).run(&mut function, start, &mut context, |_, _| {});
        let ran = ran.map_err(|error| CompileFailure::InvalidForm.because(error))?;
        let PassContext { promoted: promotion, inlined, .. } = context;
        if ran.given_up.is_some() && promotion.is_none() {
            // Frames of the interpreter that are in one of the loops cannot enter the form in the same way.
            let reason = "there is no entry for all of its loops";
            return Err(CompileFailure::DifferentOperands.because(reason));
        }
        let loops = self.passes.analyses.take_loops(&function);
        Ok(Form { function, passes, promotion, growth: ran.growth, inlined, loops })
    }
}

impl Origin<'_> {
    /// The function at the start of the rows.
    fn start(self) -> (Function, Start) {
        match self {
            Origin::Bytecode { func, .. } => {
                let mut function = Function::default();
                function.func = func;
                (function, Start::Bytecode)
            }
            Origin::SlotForm(function) => (function.clone(), Start::Slots),
        }
    }
}

impl CompileOptions {
    /// The function whose SSA form is made at once, and how, if it is.
    fn built_at_once(
        &self,
        module: &VerifiedModule,
        origin: Origin<'_>,
    ) -> Option<(u32, SsaOptions)> {
        // Calls define references anew in slot form.
        let has_refs = |func| module.body(func).is_some_and(|body| body.has_refs);
        match origin {
            // It is entered at its start.
            Origin::Bytecode { func, loops: [], exits }
                if exits.is_empty() && self.lower.slots.is_promoted() && !has_refs(func) =>
            {
                Some((func, self.on_the_fly?))
            }
            _ => None,
        }
    }

    /// The slot form that a function has before it is promoted, after these passes: the rows up to there run once more.
    pub(crate) fn slot_form(
        &self,
        module: &VerifiedModule,
        origin: Origin<'_>,
        passes: PassSet,
    ) -> Function {
        let (mut function, start) = origin.start();
        let starts = origin.starts(module);
        let (mut scratch, mut times) = (PassScratch::default(), Times::default());
        let mut context = PassContext {
            starts: &starts,
            exits: origin.exits().of_func,
            body_exits: origin.exits().bodies,
            takes_names: self.takes_names(),
            build: BuildOptions { waits: origin.exits().bodies.is_some(), ..self.build },
            preserved: preserved_registers(&*self.lower.isa),
            ..PassContext::new(module, origin.func(), &mut scratch)
        };
        // A form that was made at once has gone through no pass on slots.
        let passes =
            if self.built_at_once(module, origin).is_some() { PassSet::none() } else { passes };
        let driver = Driver::new(User::Jit, passes, self.verify, &mut times);
        let last = TABLE.iter().take_while(|row| row.makes != Product::Ssa).last();
        let driver = driver.up_to(last.expect("rows make slot forms"));
        let ran = driver.run(&mut function, start, &mut context, |_, _| {});
        ran.expect("the same rows have left valid functions");
        function
    }

    /// Whether forms have names, for texts and debuggers.
    fn takes_names(&self) -> bool {
        self.keep_clif || self.lower.describes_code()
    }

    /// The passes of a function: those that were asked for, and have something to do on this machine.
    pub(crate) fn passes_of(&self, func: u32) -> PassSet {
        let passes = self.passes.of(func);
        match self.lower.relies_on_checks() {
            true => passes,
            false => passes.without(|row| row.when == When::Checked),
        }
    }
}
