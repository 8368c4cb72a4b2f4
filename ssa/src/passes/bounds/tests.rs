use super::*;
use crate::tools::samples::blocks_after;

/// The marks that the pass makes in a function: a digit for each access, 1 if it is in bounds.
fn marks(text: &str) -> String {
    let (text, report) = blocks_after(text, |f| bounds(f, &mut Analyses::default()));
    let accesses =
        text.split("; ").filter(|line| line.contains(".load") || line.contains(".store"));
    let marks: String =
        accesses.map(|line| if line.contains(" in_bounds") { '1' } else { '0' }).collect();
    assert_eq!(report.n_accesses, marks.len());
    assert_eq!(report.n_in_bounds, marks.matches('1').count());
    marks
}

#[test]
fn an_access_up_to_a_known_end_is_in_bounds() {
    let text = "func f0(v0: i32) {
        b0:
          v1 = i32.load v0+8
          v2 = i32.load v0+8
          v3 = i64.load v0
          v4 = i64.load v0+8
          i32.store v0+12, v1
          i32.store8 v0+16, v1
          i32.store16 v0+16, v1
          i32.store v0+14, v1
          return
        }";
    assert_eq!(marks(text), "01101001");
}

#[test]
fn an_index_with_its_scale_belongs_to_the_address() {
    let text = "func f0(v0: i32, v1: i32) {
        b0:
          v2 = i32.load_indexed v0+v1*4+4
          v3 = i32.load_indexed v0+v1*4
          v4 = i32.load_indexed v0+v1*8
          v5 = i32.load_indexed v1+v0*4
          i32.store_indexed v0+v1*4+4, v2
          v6 = i32.load v0
          return
        }";
    assert_eq!(marks(text), "010010");
}

/// Facts from one side of a branch are not known on the other one, nor after both.
#[test]
fn only_accesses_that_dominate_count() {
    let text = "func f0(v0: i32, v1: i32) {
        b0:
          v2 = i32.load v0
          br_if v1, b1, b2
        b1:
          v3 = i32.load v0
          v4 = i32.load v0+4
          br b3
        b2:
          v5 = i32.load v0+4
          br b3
        b3:
          v6 = i32.load v0+4
          v7 = i32.load v0
          br b4
        b4:
          v8 = i32.load v0+4
          br_if v8, b4, b5
        b5:
          return
        }";
    // The second block comes after the third one.
    assert_eq!(marks(text), "0010011");
}

/// A sum may wrap unless it lies below the end that is known.
#[test]
fn sums_with_constants_are_offsets_where_they_cannot_wrap() {
    let text = "func f0(v0: i32) {
        b0:
          v1 = i32.const 4
          v2 = i32.add v0, v1
          v3 = i32.load v2
          v4 = i64.load v0
          v5 = i32.load v2
          v6 = i32.load v2+4
          v7 = i32.load v0+8
          v8 = i32.add v1, v2
          v9 = i32.load v8
          v10 = i32.const -4
          v11 = i32.add v2, v10
          v12 = i32.load v11
          return
        }";
    assert_eq!(marks(text), "0010111");
}

#[test]
fn frames_are_in_bounds() {
    let text = "func f0(v0: i32) {
        b0:
          v1 = frame.push 16
          v2 = i64.load v1+8
          v3 = i64.load v1+9
          v4 = i32.const 12
          v5 = i32.add v1, v4
          v6 = i32.load v5
          frame.pop 16
          return
        }";
    assert_eq!(marks(text), "101");
}

#[test]
fn sums_of_sums_start_at_the_first_one() {
    let mut text =
        String::from("func f0(v0: i32) {\nb0:\nv1 = i64.load v0+100\nv2 = i32.const 1\n");
    let mut last = 0;
    for sum in 3..40 {
        text.push_str(&format!("v{sum} = i32.add v{last}, v2\n"));
        last = sum;
    }
    text.push_str("v40 = i32.load v10\nv41 = i32.load v39\nreturn\n}");
    assert_eq!(marks(&text), "011");
}
