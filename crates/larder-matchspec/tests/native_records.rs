//! `is_record/3` on a host that has native records, as OTP 29. It is set for a whole process, so
//! this test has one of its own.

mod common;

use common::{program, run, term};

#[test]
fn two_atoms_ask_for_a_native_record() {
    larder_matchspec::set_native_records(true);
    let result = |call: &str| {
        let program = program(&format!("[{{{{'$1'}},[],[{call}]}}]"));
        run(&program, &term("{{a,1}}")).unwrap().to_string()
    };
    for (call, expected) in [
        ("{is_record,'$1',a,b}", "false"),
        ("{is_record,'$1',a,true}", "false"),
        ("{is_record,'$1',{is_atom,1},{is_atom,1}}", "false"),
        ("{is_record,{const,{a,b}},a,a}", "false"),
        ("{is_record,'$1',a,2}", "true"),
        ("{is_record,'$1',a,3}", "false"),
        // Neither a size nor a name, or no tag.
        ("{is_record,'$1',a,1.0}", "'EXIT'"),
        ("{is_record,'$1',a,<<\"b\">>}", "'EXIT'"),
        ("{is_record,'$1',1,b}", "'EXIT'"),
    ] {
        assert_eq!(result(call), expected, "{call}");
    }
}
