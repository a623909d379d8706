%% Made by `make stubs` from the table in crates/larder-nif/src/lib.rs: change that.
-define(VERSION, "0.1.0").
-export([new/2,
         whereis/1,
         all/0,
         delete_table/1,
         rename/2,
         give_away/3,
         setopts/2,
         safe_fixtable/2,
         delete_all_objects/1,
         guard_wanted/0,
         guard_of_next/2,
         structures/0,
         fault/1,
         info/2,
         info_list/2,
         memory/0,
         huge_pages/1,
         insert/2,
         insert_new/2,
         insert_with/3,
         expire/3,
         ttl/2,
         insert_list/2,
         insert_new_list/2,
         lookup/2,
         lookup_many/3,
         take_many/3,
         lookup_element/3,
         lookup_element_default/4,
         lookup_elements/3,
         lookup_elements_default/4,
         member/2,
         delete/2,
         delete_object/2,
         take/2,
         update_counter/3,
         update_counter_default/4,
         update_element/3,
         update_element_default/4,
         update_map/3,
         first/1,
         last/1,
         next/2,
         prev/2,
         first_lookup/1,
         last_lookup/1,
         next_lookup/2,
         prev_lookup/2,
         slot/2,
         rank/2,
         nth/2,
         count_range/3,
         slice/3,
         fold_first/2,
         fold_next/5,
         fold_holds/2,
         select_all/4,
         every/1,
         select_some/5,
         select_again/5,
         select_count/2,
         select_delete/2,
         match_delete/2,
         select_take/2,
         select_replace/2,
         add_index/2,
         drop_index/2,
         index_lookup/3,
         index_select_all/3,
         index_select_some/4,
         index_select_again/5,
         explain/2,
         subscribe/4,
         snapshot_and_subscribe/4,
         feed_next/3,
         unsubscribe/1,
         compile/1,
         prepare/1,
         parameters/1,
         prepare_fault/1,
         is_compiled/1,
         run/3,
         test/2,
         snapshot/1,
         release/1,
         diff/2,
         save/4,
         load_table/3,
         file_header/1,
         begin_transaction/2,
         commit_transaction/1,
         end_transaction/1,
         commit/2]).

new(_Name, _Options) -> ?STUB.
whereis(_Name) -> ?STUB.
all() -> ?STUB.
delete_table(_Table) -> ?STUB.
rename(_Table, _Name) -> ?STUB.
give_away(_Table, _Pid, _Data) -> ?STUB.
setopts(_Table, _Options) -> ?STUB.
safe_fixtable(_Table, _Fix) -> ?STUB.
delete_all_objects(_Table) -> ?STUB.
guard_wanted() -> ?STUB.
guard_of_next(_Table, _Pid) -> ?STUB.
structures() -> ?STUB.
fault(_Options) -> ?STUB.
info(_Table, _Item) -> ?STUB.
info_list(_Table, _Items) -> ?STUB.
memory() -> ?STUB.
huge_pages(_Huge) -> ?STUB.
insert(_Table, _Object) -> ?STUB.
insert_new(_Table, _Object) -> ?STUB.
insert_with(_Table, _Object, _Ttl) -> ?STUB.
expire(_Table, _Key, _Ttl) -> ?STUB.
ttl(_Table, _Key) -> ?STUB.
insert_list(_Table, _Objects) -> ?STUB.
insert_new_list(_Table, _Objects) -> ?STUB.
lookup(_Table, _Key) -> ?STUB.
lookup_many(_Table, _Keys, _Done) -> ?STUB.
take_many(_Table, _Keys, _Done) -> ?STUB.
lookup_element(_Table, _Key, _Position) -> ?STUB.
lookup_element_default(_Table, _Key, _Position, _Default) -> ?STUB.
lookup_elements(_Table, _Key, _Positions) -> ?STUB.
lookup_elements_default(_Table, _Key, _Positions, _Default) -> ?STUB.
member(_Table, _Key) -> ?STUB.
delete(_Table, _Key) -> ?STUB.
delete_object(_Table, _Object) -> ?STUB.
take(_Table, _Key) -> ?STUB.
update_counter(_Table, _Key, _Ops) -> ?STUB.
update_counter_default(_Table, _Key, _Ops, _Default) -> ?STUB.
update_element(_Table, _Key, _Elements) -> ?STUB.
update_element_default(_Table, _Key, _Elements, _Default) -> ?STUB.
update_map(_Table, _Key, _Ops) -> ?STUB.
first(_Table) -> ?STUB.
last(_Table) -> ?STUB.
next(_Table, _Key) -> ?STUB.
prev(_Table, _Key) -> ?STUB.
first_lookup(_Table) -> ?STUB.
last_lookup(_Table) -> ?STUB.
next_lookup(_Table, _Key) -> ?STUB.
prev_lookup(_Table, _Key) -> ?STUB.
slot(_Table, _Slot) -> ?STUB.
rank(_Table, _Key) -> ?STUB.
nth(_Table, _N) -> ?STUB.
count_range(_Table, _Low, _High) -> ?STUB.
slice(_Table, _From, _Count) -> ?STUB.
fold_first(_Table, _Way) -> ?STUB.
fold_next(_Table, _Way, _Key, _Stamp, _Count) -> ?STUB.
fold_holds(_Table, _Stamp) -> ?STUB.
select_all(_Table, _Kind, _Spec, _Direction) -> ?STUB.
every(_Table) -> ?STUB.
select_some(_Table, _Kind, _Spec, _Limit, _Direction) -> ?STUB.
select_again(_Table, _Limit, _Direction, _Place, _Program) -> ?STUB.
select_count(_Table, _Spec) -> ?STUB.
select_delete(_Table, _Spec) -> ?STUB.
match_delete(_Table, _Pattern) -> ?STUB.
select_take(_Table, _Spec) -> ?STUB.
select_replace(_Table, _Spec) -> ?STUB.
add_index(_Table, _Index) -> ?STUB.
drop_index(_Table, _Name) -> ?STUB.
index_lookup(_Table, _Name, _Value) -> ?STUB.
index_select_all(_Table, _Name, _Spec) -> ?STUB.
index_select_some(_Table, _Name, _Spec, _Limit) -> ?STUB.
index_select_again(_Table, _Name, _Limit, _Place, _Program) -> ?STUB.
explain(_Table, _Spec) -> ?STUB.
subscribe(_Table, _Spec, _Limit, _Relay) -> ?STUB.
snapshot_and_subscribe(_Table, _Spec, _Limit, _Relay) -> ?STUB.
feed_next(_Feed, _Most, _Sleeps) -> ?STUB.
unsubscribe(_Feed) -> ?STUB.
compile(_Spec) -> ?STUB.
prepare(_Spec) -> ?STUB.
parameters(_Term) -> ?STUB.
prepare_fault(_Spec) -> ?STUB.
is_compiled(_Term) -> ?STUB.
run(_Terms, _Program, _Done) -> ?STUB.
test(_Term, _Spec) -> ?STUB.
snapshot(_Tables) -> ?STUB.
release(_Snapshot) -> ?STUB.
diff(_Old, _New) -> ?STUB.
save(_Table, _Path, _Sync, _Extra) -> ?STUB.
load_table(_Path, _Verify, _NewAtoms) -> ?STUB.
file_header(_Path) -> ?STUB.
begin_transaction(_Tables, _Urgent) -> ?STUB.
commit_transaction(_Transaction) -> ?STUB.
end_transaction(_Transaction) -> ?STUB.
commit(_Operations, _Urgent) -> ?STUB.
