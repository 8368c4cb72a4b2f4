//! Comparison of the rows of random programs with those that gimli reads.

use gimli::{ColumnType, DebugLine, DebugLineOffset, LittleEndian};
use proptest::prelude::*;

use super::{Row, programs};
use crate::leb;

/// Random instructions with their proper operands.
fn instruction() -> impl Strategy<Value = Vec<u8>> {
    let with_unsigned = |opcode: u8| {
        (0..5_000_u32).prop_map(move |operand| {
            let mut bytes = vec![opcode];
            leb::write_u32(&mut bytes, operand);
            bytes
        })
    };
    let extended = |opcode: u8, operand: Vec<u8>| {
        let mut bytes = vec![0, operand.len() as u8 + 1, opcode];
        bytes.extend(operand);
        bytes
    };
    prop_oneof![
        prop_oneof![Just(1), 6..9_u8, 10..12_u8, 13..=255_u8].prop_map(|opcode| vec![opcode]),
        prop_oneof![Just(2), Just(4), Just(5), Just(12)].prop_flat_map(with_unsigned),
        any::<i32>().prop_map(|operand| {
            let mut bytes = vec![3];
            leb::write_i64(&mut bytes, operand.into());
            bytes
        }),
        any::<u16>().prop_map(|operand| [vec![9], operand.to_le_bytes().to_vec()].concat()),
        Just(extended(1, vec![])),
        (0..100_000_u32).prop_map(move |at| extended(2, at.to_le_bytes().to_vec())),
        Just(extended(4, vec![7])),
    ]
}

prop_compose! {
    fn line_table()(
        version in 2..=5_u16,
        (min_length, max_ops) in (1..4_u8, 1..4_u8),
        (line_base, line_range, opcode_base) in (any::<i8>(), 1..=255_u8, 13..30_u8),
        operand_counts in Just([0; 29]),
        code in prop::collection::vec(instruction(), 0..60),
    ) -> Vec<u8> {
        let mut header = vec![min_length];
        if version >= 4 {
            header.push(max_ops);
        }
        header.extend([1, line_base as u8, line_range, opcode_base]);
        header.extend(&operand_counts[..usize::from(opcode_base) - 1]);
        // Empty tables of directories and files.
        header.extend(if version == 5 { vec![1, 1, 8, 0, 1, 1, 8, 0] } else { vec![0, 0] });
        let mut contents = version.to_le_bytes().to_vec();
        if version == 5 {
            contents.extend([4, 0]);
        }
        contents.extend((header.len() as u32).to_le_bytes());
        contents.extend(header);
        contents.extend(code.concat());
        [(contents.len() as u32).to_le_bytes().to_vec(), contents].concat()
    }
}

fn rows_by_gimli(section: &[u8], offset: usize) -> Vec<Row> {
    let section = DebugLine::new(section, LittleEndian);
    let program = section.program(DebugLineOffset(offset), 4, None, None).unwrap();
    let (mut rows, mut all) = (program.rows(), Vec::new());
    while let Ok(Some((_, row))) = rows.next_row() {
        all.push(Row {
            address: row.address(),
            file: row.file_index(),
            line: row.line().map_or(0, |line| line.get()),
            column: match row.column() {
                ColumnType::LeftEdge => 0,
                ColumnType::Column(column) => column.get(),
            },
            end_sequence: row.end_sequence(),
        });
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn rows_are_those_of_gimli(first in line_table(), second in line_table()) {
        let section = [first.clone(), second].concat();
        let ours: Vec<Vec<Row>> = programs(&section).map(Iterator::collect).collect();
        prop_assert_eq!(ours.len(), 2);
        prop_assert_eq!(&ours[0], &rows_by_gimli(&section, 0));
        prop_assert_eq!(&ours[1], &rows_by_gimli(&section, first.len()));
    }
}

/// Line numbers and addresses that overflow wrap or end the program; neither panics.
#[test]
fn the_largest_operands_are_read() {
    let least = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f];
    let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    for opcode in [2, 3, 4, 5] {
        for operand in [least, most] {
            let header = [1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0];
            let code = [&[1, opcode][..], &operand, &[255, 1]].concat();
            let contents = [&[4, 0, 20, 0, 0, 0][..], &header, &code].concat();
            let section = [&(contents.len() as u32).to_le_bytes()[..], &contents].concat();
            let rows: Vec<Row> = programs(&section).flatten().collect();
            let first = Row { address: 0, file: 1, line: 1, column: 0, end_sequence: false };
            assert_eq!(rows[0], first);
        }
    }
}
