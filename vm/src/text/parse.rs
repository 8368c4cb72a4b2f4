//! The assembler, which parses text to a [`Module`].
//!
//! One pass over the tokens parses the items in order, fills the module and interns types and shapes. Forward
//! references stay [pending](super::link) and are resolved at the end. Function bodies are in
//! [`super::body`].
//!
//! An error ends an instruction or item. Parsing continues after it, to report several errors.

use std::mem;

use super::ParseOptions;
use super::cursor::{Cursor, Parse, Ref};
use super::error::{DIAGNOSTICS_MAX, ParseError, Problem, suggest};
use super::lexer::{self, Token, TokenKind};
use super::pending::{ExprPlace, Pending, Target};
use super::space::{Space, SpaceKind};
use super::tables::Tables;
use super::words;
use crate::limits;
use crate::module::{
    ConstExpr, Data, Elem, ElemItems, EntityKind, Export, FrameStack, Global, GlobalType, Import,
    ImportCall, ImportKind, MemoryType, Module, Names, SegmentMode, Shape, ShapeId, TableType,
};
use crate::types::{FuncType, ValType};

/// Assembles a module.
pub(super) fn parse(source: &str, options: ParseOptions) -> Result<Module, ParseError> {
    if u32::try_from(source.len()).is_err() {
        let problem = Problem::new(0..0, "the text is longer than 4 GiB");
        return Err(ParseError::new("", vec![problem]));
    }
    let problems = lexer::problems(source);
    if !problems.is_empty() {
        return Err(ParseError::new(source, problems));
    }
    let mut parser = Parser::new(Cursor::new(source));
    parser.items();
    if parser.problems.is_empty() {
        parser.link(options);
    }
    if !parser.problems.is_empty() {
        return Err(ParseError::new(source, parser.problems));
    }
    Ok(parser.finish())
}

/// The assembler's state.
pub(super) struct Parser<'s> {
    pub(super) cursor: Cursor<'s>,
    pub(super) problems: Vec<Problem>,
    pub(super) module: Module,
    pub(super) tables: Tables,
    /// Index spaces by [`SpaceKind`].
    pub(super) spaces: [Space<'s>; 6],
    pub(super) pending: Pending,
    /// The names in `name` lines, except those of locals and labels.
    pending_names: Vec<(SpaceKind, (u32, String))>,
    /// The first `name` line.
    extra_names: Option<Token>,
}

/// A function type as written, with names of parameters.
pub(super) struct Signature<'s> {
    pub(super) ty: u32,
    /// The parameters as the first locals.
    pub(super) locals: Space<'s>,
}

impl<'s> Parser<'s> {
    fn new(cursor: Cursor<'s>) -> Parser<'s> {
        Parser {
            cursor,
            problems: Vec::new(),
            module: Module::default(),
            tables: Tables::default(),
            spaces: Default::default(),
            pending: Pending::default(),
            pending_names: Vec::new(),
            extra_names: None,
        }
    }

    /// Whether the maximum number of problems has been reported.
    pub(super) fn is_hopeless(&self) -> bool {
        self.problems.len() >= DIAGNOSTICS_MAX
    }

    fn items(&mut self) {
        while !self.cursor.is_at_end() && !self.is_hopeless() {
            if let Err(problem) = self.item() {
                self.problems.push(problem);
                self.cursor.skip_to_item();
            }
        }
    }

    fn item(&mut self) -> Parse<()> {
        let token = self.cursor.peek();
        let word = match token.kind {
            TokenKind::Word => self.cursor.text(token),
            _ => "",
        };
        if !words::is_item(word) {
            let help = suggest(word, words::ITEMS);
            return Err(self.cursor.unexpected("an item").with_help(help));
        }
        self.cursor.take();
        match word {
            "module" => self.module_name(token),
            "type" => self.type_line(),
            "shape" => self.shape_line(),
            "import" => self.import(),
            "memory" => self.memory(),
            "table" => self.table(),
            "global" => self.global(),
            "frame_stack" => self.frame_stack(token),
            "data" => self.data(),
            "elem" => self.elem(),
            "export" => self.export(),
            "start" => self.start(token),
            "func" => self.func(),
            _ => self.name_line(),
        }
    }

    /// Assigns the next number of a space to the entity whose name or number is next.
    pub(super) fn define(&mut self, kind: SpaceKind, imported: bool) -> Parse<u32> {
        let name = self.cursor.entity(&format!("the name or number of a {}", kind.what()))?;
        let token = self.cursor.last();
        let space = &mut self.spaces[kind as usize];
        if imported && space.n_defined > 0 {
            let message = format!("expected imported {0} before defined {0}", kind.plural());
            return Err(self.cursor.problem(token, message));
        }
        space.n_defined += usize::from(!imported);
        if space.n_defined > kind.max() {
            let message = format!("too many {}; at most {}", kind.plural(), kind.max());
            return Err(self.cursor.problem(token, message));
        }
        space.define(&self.cursor, name, kind.what())
    }

    fn module_name(&mut self, token: Token) -> Parse<()> {
        if self.module.names.module.is_some() {
            return Err(self.cursor.problem(token, "duplicate module name"));
        }
        self.module.names.module = Some(self.cursor.string("the module's name")?);
        Ok(())
    }

    fn type_line(&mut self) -> Parse<()> {
        let number = self.cursor.number("the number of a type")?;
        let next = self.tables.types.len();
        if number as usize != next {
            return Err(self.out_of_order("type", number, next));
        }
        self.cursor.expect_punct(b'=')?;
        let ty = self.func_type()?;
        self.check_count(next + 1, limits::TYPES_MAX, "types")?;
        self.tables.define_type(ty);
        Ok(())
    }

    fn shape_line(&mut self) -> Parse<()> {
        let number = self.cursor.number("the number of a shape")?;
        let next = self.tables.shapes.len() + 1;
        if number as usize != next {
            return Err(self.out_of_order("shape", number, next));
        }
        self.cursor.expect_punct(b'=')?;
        self.cursor.expect_punct(b'(')?;
        let parent = ShapeId(self.cursor.number("the number of the shape below")?);
        let ty = self.cursor.val_type()?;
        self.cursor.expect_punct(b')')?;
        self.check_count(next, limits::SHAPES_MAX, "shapes")?;
        self.tables.define_shape(Shape { parent, ty });
        Ok(())
    }

    fn out_of_order(&self, what: &str, number: u32, next: usize) -> Problem {
        let help = format!(
            "number `{what}` lines without gaps, and put them before everything that uses {what}s"
        );
        self.cursor
            .problem(self.cursor.last(), format!("expected {what} {next}, found {number}"))
            .with_help(Some(help))
    }

    /// Fails if the count exceeds `max`.
    pub(super) fn check_count(&self, count: usize, max: usize, what: &str) -> Parse<()> {
        if count <= max {
            return Ok(());
        }
        Err(self.cursor.problem(self.cursor.last(), format!("too many {what}; at most {max}")))
    }

    /// `(types) [-> results]`
    pub(super) fn func_type(&mut self) -> Parse<FuncType> {
        let params = self.type_list()?;
        let results = self.results()?;
        self.checked_type(params, results)
    }

    fn checked_type(&self, params: Vec<ValType>, results: Vec<ValType>) -> Parse<FuncType> {
        self.check_count(params.len(), limits::PARAMS_MAX, "parameters")?;
        self.check_count(results.len(), limits::RESULTS_MAX, "results")?;
        Ok(FuncType { params, results })
    }

    fn type_list(&mut self) -> Parse<Vec<ValType>> {
        self.cursor.expect_punct(b'(')?;
        let mut types = Vec::new();
        while !self.cursor.take_punct(b')') {
            types.push(self.cursor.val_type()?);
            self.list_separator(b')')?;
        }
        Ok(types)
    }

    /// Takes a comma between the elements of a list that ends with `close`. A trailing comma is allowed.
    pub(super) fn list_separator(&mut self, close: u8) -> Parse<()> {
        if self.cursor.take_punct(b',') || self.cursor.is_punct(close) {
            return Ok(());
        }
        Err(self.cursor.unexpected(&format!("`,` or `{}`", char::from(close))))
    }

    fn results(&mut self) -> Parse<Vec<ValType>> {
        if self.cursor.peek().kind != TokenKind::Arrow {
            return Ok(Vec::new());
        }
        self.cursor.take();
        if self.cursor.is_punct(b'(') {
            return self.type_list();
        }
        Ok(vec![self.cursor.val_type()?])
    }

    /// Interns a type.
    pub(super) fn use_type(&mut self, ty: &FuncType) -> Parse<u32> {
        let id = self.tables.use_type(ty);
        self.check_count(self.tables.types.len(), limits::TYPES_MAX, "types")?;
        Ok(id)
    }

    /// `[type N] [(parameters) [-> results]]`, at least one of the two.
    pub(super) fn signature(&mut self) -> Parse<Signature<'s>> {
        let explicit = match self.cursor.take_word("type") {
            true => Some(self.cursor.number("the number of a type")?),
            false => None,
        };
        let mut locals = Space::default();
        if let (Some(ty), false) = (explicit, self.cursor.is_punct(b'(')) {
            let known = self.tables.types.get(ty as usize);
            locals.count = known.map_or(0, |ty| ty.params.len() as u32);
            return Ok(Signature { ty, locals });
        }
        let start = self.cursor.expect_punct(b'(')?;
        let mut params = Vec::new();
        while !self.cursor.take_punct(b')') {
            params.push(self.param(&mut locals)?);
            self.list_separator(b')')?;
        }
        let results = self.results()?;
        let written = self.checked_type(params, results)?;
        let Some(ty) = explicit else {
            return Ok(Signature { ty: self.use_type(&written)?, locals });
        };
        if self.tables.types.get(ty as usize) != Some(&written) {
            return Err(self.cursor.problem(start, format!("signature differs from type {ty}")));
        }
        Ok(Signature { ty, locals })
    }

    /// `[name:] type`, which defines a local.
    pub(super) fn param(&mut self, locals: &mut Space<'s>) -> Parse<ValType> {
        if self.cursor.peek_second().kind == TokenKind::Punct(b':') {
            let name = self.cursor.entity("the name of a local")?;
            locals.define(&self.cursor, name, "local")?;
            self.cursor.expect_punct(b':')?;
        } else {
            locals.count += 1;
        }
        self.cursor.val_type()
    }

    fn import(&mut self) -> Parse<()> {
        self.check_count(self.module.imports.len() + 1, limits::IMPORTS_MAX, "imports")?;
        let module = self.cursor.string("the name of a module")?;
        let name = self.cursor.string("the name of an import")?;
        let call = self.import_call();
        let kind = match call {
            ImportCall::Ordinary => self.entity_kind()?,
            _ if self.cursor.take_word(SpaceKind::Func.word()) => EntityKind::Func,
            _ => return Err(self.cursor.unexpected("`func`")),
        };
        let kind = match kind {
            EntityKind::Func => {
                self.define(SpaceKind::Func, true)?;
                // Names of parameters are dropped: there are no locals to name.
                ImportKind::Func(self.signature()?.ty, call)
            }
            EntityKind::Table => {
                self.define(SpaceKind::Table, true)?;
                ImportKind::Table(self.table_type()?)
            }
            EntityKind::Memory => {
                self.define(SpaceKind::Memory, true)?;
                ImportKind::Memory(self.memory_type()?)
            }
            EntityKind::Global => {
                self.define(SpaceKind::Global, true)?;
                ImportKind::Global(self.global_type()?)
            }
        };
        self.module.imports.push(Import { module, name, kind });
        Ok(())
    }

    /// `leaf`, `cold`, or nothing.
    fn import_call(&mut self) -> ImportCall {
        let marked = ImportCall::MARKED.into_iter();
        marked.into_iter().find(|call| self.cursor.take_word(call.word())).unwrap_or_default()
    }

    /// `func`, `table`, `memory` or `global`.
    fn entity_kind(&mut self) -> Parse<EntityKind> {
        let kinds = [EntityKind::Func, EntityKind::Table, EntityKind::Memory, EntityKind::Global];
        kinds
            .into_iter()
            .find(|&kind| self.cursor.take_word(SpaceKind::of(kind).word()))
            .ok_or_else(|| self.cursor.unexpected("`func`, `table`, `memory` or `global`"))
    }

    fn table_type(&mut self) -> Parse<TableType> {
        let elem = self.cursor.val_type()?;
        let min = self.cursor.number("the least number of elements")?;
        Ok(TableType { elem, min, max: self.cursor.optional_number()? })
    }

    fn memory_type(&mut self) -> Parse<MemoryType> {
        let min = self.cursor.number("the least number of pages")?;
        self.check_count(min as usize, limits::MEMORY_PAGES_MAX as usize, "pages in a memory")?;
        let max = self.cursor.optional_number()?;
        let most = max.unwrap_or(0) as usize;
        self.check_count(most, limits::MEMORY_PAGES_MAX as usize, "pages in a memory")?;
        Ok(MemoryType { min, max })
    }

    /// `[:] [mut] type`
    fn global_type(&mut self) -> Parse<GlobalType> {
        self.cursor.take_punct(b':');
        let mutable = self.cursor.take_word("mut");
        Ok(GlobalType { ty: self.cursor.val_type()?, mutable })
    }

    fn memory(&mut self) -> Parse<()> {
        self.define(SpaceKind::Memory, false)?;
        let ty = self.memory_type()?;
        self.module.memories.push(ty);
        Ok(())
    }

    fn table(&mut self) -> Parse<()> {
        self.define(SpaceKind::Table, false)?;
        let ty = self.table_type()?;
        self.module.tables.push(ty);
        Ok(())
    }

    fn global(&mut self) -> Parse<()> {
        self.define(SpaceKind::Global, false)?;
        let ty = self.global_type()?;
        self.cursor.expect_punct(b'=')?;
        let index = self.module.globals.len() as u32;
        self.module.globals.push(Global { ty, init: ConstExpr::default() });
        self.const_expr(ExprPlace::Global(index))
    }

    fn frame_stack(&mut self, token: Token) -> Parse<()> {
        if self.module.frame_stack.is_some() {
            return Err(self.cursor.problem(token, "duplicate frame stack"));
        }
        let base = self.cursor.number("the address of the frame stack")?;
        let bytes = self.cursor.number("the size of the frame stack in bytes")?;
        self.module.frame_stack = Some(FrameStack { base, bytes });
        Ok(())
    }

    /// `[target] at expr`, or nothing if the segment is passive.
    fn segment_mode(&mut self, target: Target, place: ExprPlace) -> Parse<SegmentMode> {
        let name = match self.cursor.is_optional_ref() {
            true => Some(self.cursor.entity("a target")?),
            false => None,
        };
        if name.is_none() && !self.cursor.is_word("at") {
            return Ok(SegmentMode::Passive);
        }
        if !self.cursor.take_word("at") {
            return Err(self.cursor.unexpected("`at`"));
        }
        self.const_expr(place)?;
        self.pending.targets.push((target, name.unwrap_or(Ref::Number(0))));
        Ok(SegmentMode::Active { target: 0, offset: ConstExpr::default() })
    }

    fn data(&mut self) -> Parse<()> {
        let index = self.define(SpaceKind::Data, false)?;
        let mode = self.segment_mode(Target::Data(index), ExprPlace::DataOffset(index))?;
        let mut bytes = self.cursor.bytes("a string")?;
        loop {
            let comma = self.cursor.take_punct(b',');
            if !comma && self.cursor.peek().kind != TokenKind::Str {
                break;
            }
            bytes.extend(self.cursor.bytes("a string")?);
        }
        self.module.datas.push(Data { mode, bytes });
        Ok(())
    }

    fn elem(&mut self) -> Parse<()> {
        let index = self.define(SpaceKind::Elem, false)?;
        let mode = match self.cursor.take_word("declared") {
            true => SegmentMode::Declared,
            false => self.segment_mode(Target::Elem(index), ExprPlace::ElemOffset(index))?,
        };
        let is_func = self.cursor.is_word("func");
        let ty = if is_func { ValType::FuncRef } else { self.cursor.val_type()? };
        let items = if self.cursor.is_on_same_line() && self.cursor.take_word("func") {
            ElemItems::Funcs(self.elem_funcs(index)?)
        } else {
            ElemItems::Exprs(self.elem_exprs(index)?)
        };
        self.module.elems.push(Elem { mode, ty, items });
        Ok(())
    }

    fn elem_funcs(&mut self, elem: u32) -> Parse<Vec<u32>> {
        let mut funcs = Vec::new();
        let token = self.cursor.peek();
        let starts_item = token.kind == TokenKind::Word && words::is_item(self.cursor.text(token));
        let is_ref =
            matches!(token.kind, TokenKind::Word | TokenKind::QuotedName | TokenKind::Number);
        if is_ref && (!starts_item || self.cursor.is_on_same_line()) {
            loop {
                self.check_count(funcs.len() + 1, limits::SEGMENT_ELEMS_MAX, "elements")?;
                funcs.push(self.cursor.entity("a function")?);
                if !self.cursor.take_punct(b',') {
                    break;
                }
            }
        }
        // Functions may be defined later: `link` resolves the names and fills in the numbers.
        let unresolved = vec![0; funcs.len()];
        self.pending.elem_funcs.push((elem, funcs));
        Ok(unresolved)
    }

    fn elem_exprs(&mut self, elem: u32) -> Parse<Vec<ConstExpr>> {
        let mut count = 0;
        while self.cursor.take_punct(b'[') {
            self.check_count(count as usize + 1, limits::SEGMENT_ELEMS_MAX, "elements")?;
            self.const_expr(ExprPlace::ElemItem(elem, count))?;
            self.cursor.expect_punct(b']')?;
            count += 1;
            if !self.cursor.take_punct(b',') {
                break;
            }
        }
        Ok(vec![ConstExpr::default(); count as usize])
    }

    fn export(&mut self) -> Parse<()> {
        self.check_count(self.module.exports.len() + 1, limits::EXPORTS_MAX, "exports")?;
        let name = self.cursor.string("the name of an export")?;
        let kind = self.entity_kind()?;
        let entity = self.cursor.entity(SpaceKind::of(kind).what())?;
        self.module.exports.push(Export { name, kind, index: 0 });
        self.pending.exports.push(entity);
        Ok(())
    }

    fn start(&mut self, token: Token) -> Parse<()> {
        if self.pending.start.is_some() {
            return Err(self.cursor.problem(token, "duplicate start function"));
        }
        self.pending.start = Some(self.cursor.entity("a function")?);
        Ok(())
    }

    /// `name KIND NUMBER "text"`, `name local FUNC NUMBER "text"` and the same for `label`: a name that
    /// cannot be written at the definition of its entity.
    fn name_line(&mut self) -> Parse<()> {
        let line = self.cursor.last();
        let names = &mut self.module.names;
        for (word, list) in [("local", &mut names.locals), ("label", &mut names.labels)] {
            if self.cursor.take_word(word) {
                let func = self.cursor.number("the number of a function")?;
                list.push((func, vec![extra_name(&mut self.cursor)?]));
                self.extra_names.get_or_insert(line);
                return Ok(());
            }
        }
        for (word, list) in [("trap", &mut names.traps), ("file", &mut names.files)] {
            if self.cursor.take_word(word) {
                list.push(extra_name(&mut self.cursor)?);
                self.extra_names.get_or_insert(line);
                return Ok(());
            }
        }
        for kind in SpaceKind::ALL {
            if self.cursor.take_word(kind.word()) {
                let name = extra_name(&mut self.cursor)?;
                self.pending_names.push((kind, name));
                self.extra_names.get_or_insert(line);
                return Ok(());
            }
        }
        Err(self.cursor.unexpected("a kind of entity"))
    }

    /// Moves the names of all entities into the module.
    pub(super) fn finish_names(&mut self) {
        let spaces = mem::take(&mut self.spaces).map(|space| space.names);
        let names = &mut self.module.names;
        [names.funcs, names.tables, names.memories, names.globals, names.elems, names.datas] =
            spaces;
        let Some(line) = self.extra_names else { return };
        for (kind, name) in self.pending_names.drain(..) {
            names_of_space(names, kind).push(name);
        }
        let mut is_unique = sort_names(&mut names.traps) & sort_names(&mut names.files);
        for kind in SpaceKind::ALL {
            is_unique &= sort_names(names_of_space(names, kind));
        }
        for list in [&mut names.locals, &mut names.labels] {
            list.sort_by_key(|&(func, _)| func);
            list.dedup_by(|(func, names), (before, all)| {
                let same = func == before;
                if same {
                    all.append(names);
                }
                same
            });
            for (_, names) in list {
                is_unique &= sort_names(names);
            }
        }
        if !is_unique {
            let message = "`name` line for an entity that already has a name";
            self.problems.push(self.cursor.problem(line, message));
        }
    }

    fn finish(self) -> Module {
        let mut module = self.module;
        module.types = self.tables.types;
        module.shapes = self.tables.shapes;
        module
    }
}

/// `NUMBER "text"`
fn extra_name(cursor: &mut Cursor<'_>) -> Parse<(u32, String)> {
    let index = cursor.number("the number of an entity")?;
    Ok((index, cursor.string("a name")?))
}

fn names_of_space(names: &mut Names, kind: SpaceKind) -> &mut Vec<(u32, String)> {
    match kind {
        SpaceKind::Func => &mut names.funcs,
        SpaceKind::Table => &mut names.tables,
        SpaceKind::Memory => &mut names.memories,
        SpaceKind::Global => &mut names.globals,
        SpaceKind::Elem => &mut names.elems,
        SpaceKind::Data => &mut names.datas,
    }
}

/// Sorts names by number. Returns whether no number has two names.
fn sort_names(names: &mut [(u32, String)]) -> bool {
    names.sort_by_key(|&(index, _)| index);
    names.windows(2).all(|pair| pair[0].0 < pair[1].0)
}
