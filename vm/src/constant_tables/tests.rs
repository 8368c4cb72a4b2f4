use crate::{VerifiedModule, text, verify};

/// A module with a table `t` of four elements and functions `a` to `d`, of which `c` has another type.
fn module(rest: &str) -> VerifiedModule {
    let source = format!(
        "table t funcref 4 4
         func a(x: i32) -> i32 {{ local.get x return }}
         func b(x: i32) -> i32 {{ local.get x return }}
         func c() {{ return }}
         func d(x: i32) -> i32 {{ local.get x return }}
         {rest}"
    );
    let module = text::parse(&source).unwrap_or_else(|error| panic!("{error}"));
    verify(module).unwrap_or_else(|error| panic!("{error}"))
}

/// The functions of the type of a function in a table, each with its index.
fn entries(module: &VerifiedModule, table: u32, func: u32) -> Option<Vec<(u32, u32)>> {
    let entries = module.constant_entries(table, module.func_type_index(func))?;
    Some(entries.iter().map(|entry| (entry.index, entry.func)).collect())
}

#[test]
fn entries_are_sorted_by_type() {
    let module = module("elem s t at i32.const 0 func d, c, a");
    assert_eq!(entries(&module, 0, 0), Some(vec![(0, 3), (2, 0)]));
    assert_eq!(entries(&module, 0, 2), Some(vec![(1, 2)]));
    assert_eq!(entries(&module, 1, 0), None);
}

#[test]
fn later_segments_replace_earlier_ones() {
    let module = module(
        "elem s t at i32.const 0 func a, a, a, c
         elem u t at i32.const 1 func b, c
         elem v t at i32.const 0 funcref [ref.null funcref], [ref.func d]",
    );
    assert_eq!(entries(&module, 0, 0), Some(vec![(1, 3)]));
    assert_eq!(entries(&module, 0, 2), Some(vec![(2, 2), (3, 2)]));
}

#[test]
fn tables_that_can_be_written_are_not_constant() {
    let fill = "elem s t at i32.const 0 func a";
    for writer in [
        "export \"t\" table t",
        "func w(i: i32, f: funcref) { local.get i local.get f table.set t return }",
        "func w(i: i32, f: funcref) { local.get f local.get i table.grow t drop return }",
        "func w(i: i32, f: funcref) { local.get i local.get f local.get i table.fill t return }",
        "func w(i: i32) { local.get i local.get i local.get i table.copy t, t return }",
        "elem p func a
         func w(i: i32) { local.get i local.get i local.get i table.init p, t return }",
    ] {
        assert_eq!(entries(&module(&format!("{fill}\n{writer}")), 0, 0), None, "{writer}");
    }
    let reader = "func r(i: i32) -> funcref { local.get i table.get t return }
                  table u funcref 1
                  func w(i: i32) { local.get i local.get i local.get i table.copy u, t return }";
    let module = module(&format!("{fill}\n{reader}"));
    assert_eq!(entries(&module, 0, 0), Some(vec![(0, 0)]));
    assert_eq!(entries(&module, 1, 0), None);
}

#[test]
fn imported_tables_are_not_constant() {
    let source = "import \"m\" \"t\" table t funcref 4
        func a() { return }
        elem s t at i32.const 0 func a";
    let module = verify(text::parse(source).unwrap()).unwrap();
    assert_eq!(entries(&module, 0, 0), None);
}

/// A segment that fails leaves the tables of later ones as they are, and code may run all the same.
#[test]
fn no_segment_may_fail_before_the_last_one_of_the_table() {
    let late = "table u funcref 1
        elem s t at i32.const 0 func a
        elem v u at i32.const 1 func a";
    assert_eq!(entries(&module(late), 0, 0), Some(vec![(0, 0)]));
    assert_eq!(entries(&module(late), 1, 0), None);
    let early = "table u funcref 1
        elem v u at i32.const 1 func a
        elem s t at i32.const 0 func a";
    assert_eq!(entries(&module(early), 0, 0), None);
    let unknown = "global g i32 = i32.const 0
        elem s t at global.get g func a";
    assert_eq!(entries(&module(unknown), 0, 0), None);
    let far = "elem s t at i32.const -1 func a, a";
    assert_eq!(entries(&module(far), 0, 0), None);
}

#[test]
fn elements_from_globals_are_not_constant() {
    let module = module(
        "global g funcref = ref.func a
         elem s t at i32.const 0 funcref [global.get g]",
    );
    assert_eq!(entries(&module, 0, 0), None);
}

#[test]
fn a_table_without_elements_is_constant() {
    assert_eq!(entries(&module(""), 0, 0), Some(vec![]));
}
