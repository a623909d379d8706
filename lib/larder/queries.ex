defmodule Larder.Queries do
  @moduledoc false

  # Functions of `Larder` that take patterns and match specifications, with their documentation.
  # `use Larder.Queries` defines them.

  defmacro __using__(_options) do
    quote location: :keep do
      @doc """
      Adds a secondary index `{name, position | expression, options}` to a table.

      The option `index: [index]` of `new/2` makes a table with some. What is indexed is the element
      at a position, from 1, or the result of an expression of match specifications over `:"$_"`.
      Options: `:unique` (no two objects have equal values: a write that would make two raises, of
      `insert_new/2` it is `false`), `:each` (each element of a list is a value), `:ordered` (every
      index is).

      Others read and write the table meanwhile. It takes the time of a scan. Match specifications
      use the index by themselves; see `explain/2`. An `ArgumentError` if the table has an index of
      that name, or two objects have equal values in a unique one.

          iex> tab = Larder.new(:users, index: [{:mail, 2, [:unique]}, {:tags, 3, [:each]}])
          iex> Larder.insert(tab, [{1, "a@b", [:admin, :staff]}, {2, "c@d", [:staff]}])
          iex> Larder.insert_new(tab, {3, "a@b", []})
          false
          iex> Larder.index_lookup(tab, :tags, :admin)
          [{1, "a@b", [:admin, :staff]}]
          iex> Larder.add_index(tab, {:name, {:hd, {:element, 3, :"$_"}}, []})
          true
          iex> Larder.index_select(tab, :name, [{{:"$1", :_, :_}, [], [:"$1"]}])
          [1, 2]
          iex> Larder.explain(tab, [{{:_, "c@d", :_}, [], [:"$_"]}]).plan
          {:index, :mail}
      """
      @spec add_index(table(), index()) :: true
      defdelegate add_index(tab, index), to: :larder

      @doc """
      Drops a secondary index.

          iex> tab = Larder.new(:users, [{:index, [{:age, 2, []}]}])
          iex> Larder.insert(tab, [{:ann, 34}, {:bob, 12}, {:eve, 34}])
          iex> Larder.drop_index(tab, :age)
          true
          iex> Larder.info(tab, :indexes)
          []
      """
      @spec drop_index(table(), atom()) :: true
      defdelegate drop_index(tab, name), to: :larder

      @doc """
      The objects that have a value in a secondary index (`==`).

          iex> tab = Larder.new(:users, [{:index, [{:age, 2, []}]}])
          iex> Larder.insert(tab, [{:ann, 34}, {:bob, 12}, {:eve, 34}])
          iex> tab |> Larder.index_lookup(:age, 34) |> Enum.sort()
          [ann: 34, eve: 34]
      """
      @spec index_lookup(table(), atom(), term()) :: [tuple()]
      defdelegate index_lookup(tab, name, value), to: :larder

      @doc """
      Returns the results of a match specification for the objects of a secondary index, in the
      order of their values.

          iex> tab = Larder.new(:users, [{:index, [{:age, 2, []}]}])
          iex> Larder.insert(tab, [{:ann, 34}, {:bob, 12}, {:eve, 34}])
          iex> Larder.index_select(tab, :age, [{{:_, :"$1"}, [{:>, :"$1", 10}], [:"$1"]}])
          [12, 34, 34]
      """
      @spec index_select(table(), atom(), match_spec()) :: [term()]
      defdelegate index_select(tab, name, spec), to: :larder

      @doc """
      Like `index_select/3`, up to `limit` results at a time.

          iex> tab = Larder.new(:users, [{:index, [{:age, 2, []}]}])
          iex> Larder.insert(tab, [{:ann, 34}, {:bob, 12}, {:eve, 34}])
          iex> {ages, _more} = Larder.index_select(tab, :age, [{{:_, :"$1"}, [], [:"$1"]}], 2)
          iex> ages
          [12, 34]
      """
      @spec index_select(table(), atom(), match_spec(), pos_integer()) ::
              {[term()], index_continuation()} | :"$end_of_table"
      defdelegate index_select(tab, name, spec, limit), to: :larder

      @doc """
      The next chunk of an `index_select/4`.

          iex> tab = Larder.new(:users, [{:index, [{:age, 2, []}]}])
          iex> Larder.insert(tab, [{:ann, 34}, {:bob, 12}, {:eve, 34}])
          iex> {_, more} = Larder.index_select(tab, :age, [{{:_, :"$1"}, [], [:"$1"]}], 2)
          iex> {ages, _more} = Larder.index_select(more)
          iex> ages
          [34]
      """
      @spec index_select(index_continuation()) ::
              {[term()], index_continuation()} | :"$end_of_table"
      defdelegate index_select(continuation), to: :larder

      @doc """
      How a match specification would be answered now: `plan` is `:key`, `:range`, `{:index, name}`,
      `:scan` or `:nothing`, `rows` how many objects are looked at, at most, or `:unknown`.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, for(n <- 1..100, do: {n, :a}))
          iex> Larder.explain(tab, [{{:"$1", :_}, [{:>, :"$1", 90}], [:"$1"]}]).plan
          :range
          iex> Larder.explain(tab, [{{:_, :a}, [], [true]}]).plan
          :scan
      """
      @spec explain(table(), match_spec()) :: plan()
      defdelegate explain(tab, spec), to: :larder

      @doc """
      The next chunk of a `match/3`.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}, {20, :eve}])
          iex> {_, more} = Larder.match(tab, {:_, :"$1"}, 2)
          iex> {names, _more} = Larder.match(more)
          iex> names
          [[:ann]]
      """
      @spec match(continuation()) :: {[[term()]], continuation()} | :"$end_of_table"
      defdelegate match(continuation), to: :larder

      @doc """
      The variables of a pattern, as a list for each object that matches.

      `:_` matches everything, `:"$1"`, `:"$2"` and so on are the variables.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann, :red}, {10, :bob, :blue}, {20, :eve, :red}])
          iex> Larder.match(tab, {:"$1", :"$2", :red})
          [[20, :eve], [30, :ann]]
      """
      @spec match(table(), match_pattern()) :: [[term()]]
      defdelegate match(tab, pattern), to: :larder

      @doc """
      Like `match/2`, up to `limit` results at a time. The continuation is for `match/1`.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}, {20, :eve}])
          iex> {names, _more} = Larder.match(tab, {:_, :"$1"}, 2)
          iex> names
          [[:bob], [:eve]]
      """
      @spec match(table(), match_pattern(), pos_integer()) ::
              {[[term()]], continuation()} | :"$end_of_table"
      defdelegate match(tab, pattern, limit), to: :larder

      @doc """
      The next chunk of a `match_object/3`.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}, {20, :eve}])
          iex> {_, more} = Larder.match_object(tab, :_, 2)
          iex> {rows, _more} = Larder.match_object(more)
          iex> rows
          [{30, :ann}]
      """
      @spec match_object(continuation()) :: {[tuple()], continuation()} | :"$end_of_table"
      defdelegate match_object(continuation), to: :larder

      @doc """
      The objects that match a pattern.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann, :red}, {10, :bob, :blue}])
          iex> Larder.match_object(tab, {:_, :_, :red})
          [{30, :ann, :red}]
      """
      @spec match_object(table(), match_pattern()) :: [tuple()]
      defdelegate match_object(tab, pattern), to: :larder

      @doc """
      Like `match_object/2`, up to `limit` objects at a time.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}, {20, :eve}])
          iex> {rows, _more} = Larder.match_object(tab, :_, 2)
          iex> rows
          [{10, :bob}, {20, :eve}]
      """
      @spec match_object(table(), match_pattern(), pos_integer()) ::
              {[tuple()], continuation()} | :"$end_of_table"
      defdelegate match_object(tab, pattern, limit), to: :larder

      @doc """
      Deletes the objects that match a pattern.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}, {20, :eve}])
          iex> Larder.match_delete(tab, {:_, :bob})
          true
          iex> Larder.tab2list(tab)
          [{20, :eve}, {30, :ann}]
      """
      @spec match_delete(table(), match_pattern()) :: true
      defdelegate match_delete(tab, pattern), to: :larder

      @doc """
      The next chunk of a `select/3`.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}, {20, :eve}])
          iex> {_, more} = Larder.select(tab, [{{:_, :"$1"}, [], [:"$1"]}], 2)
          iex> {names, more} = Larder.select(more)
          iex> {names, Larder.select(more)}
          {[:ann], :"$end_of_table"}
      """
      @spec select(continuation()) :: {[term()], continuation()} | :"$end_of_table"
      defdelegate select(continuation), to: :larder

      @doc """
      Returns the results of a match specification for the objects that it matches.

      A bound key, and guards on the key of an ordered_set, limit what is looked at. A specification
      that is none is an `ArgumentError`.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}, {20, :eve}])
          iex> Larder.select(tab, [{{:"$1", :"$2"}, [{:>, :"$1", 10}], [:"$2"]}])
          [:eve, :ann]
      """
      @spec select(table(), match_spec()) :: [term()]
      defdelegate select(tab, spec), to: :larder

      @doc """
      Like `select/2`, `limit` at a time.

      The continuation is for `select/1`. Nothing is kept for one that isn't used.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}, {20, :eve}])
          iex> {names, more} = Larder.select(tab, [{{:_, :"$1"}, [], [:"$1"]}], 2)
          iex> names
          [:bob, :eve]
          iex> {names, _more} = Larder.select(more)
          iex> names
          [:ann]
      """
      @spec select(table(), match_spec(), pos_integer()) ::
              {[term()], continuation()} | :"$end_of_table"
      defdelegate select(tab, spec, limit), to: :larder

      @doc """
      The next chunk of a `select_reverse/3`.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}, {20, :eve}])
          iex> {_, more} = Larder.select_reverse(tab, [{{:_, :"$1"}, [], [:"$1"]}], 2)
          iex> {names, _more} = Larder.select_reverse(more)
          iex> names
          [:bob]
      """
      @spec select_reverse(continuation()) :: {[term()], continuation()} | :"$end_of_table"
      defdelegate select_reverse(continuation), to: :larder

      @doc """
      Like `select/2`, from the last key of an ordered_set backwards.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}, {20, :eve}])
          iex> Larder.select_reverse(tab, [{{:_, :"$1"}, [], [:"$1"]}])
          [:ann, :eve, :bob]
      """
      @spec select_reverse(table(), match_spec()) :: [term()]
      defdelegate select_reverse(tab, spec), to: :larder

      @doc """
      Like `select_reverse/2`, `limit` at a time.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}, {20, :eve}])
          iex> {names, _more} = Larder.select_reverse(tab, [{{:_, :"$1"}, [], [:"$1"]}], 2)
          iex> names
          [:ann, :eve]
      """
      @spec select_reverse(table(), match_spec(), pos_integer()) ::
              {[term()], continuation()} | :"$end_of_table"
      defdelegate select_reverse(tab, spec, limit), to: :larder

      @doc """
      The rows of a table or snapshot, or what a match specification makes of them: a lazy stream.

      It reads `:batch` rows at a time (100 unless given), and only as many as are asked for.
      Nothing is held between two batches: a stream that is halted, or whose consumer fails, leaves
      nothing behind, and the table is not fixed. Others may write meanwhile: each row that is there
      throughout comes once. A stream of a snapshot has the rows of its moment. With `reverse: true`
      an ordered_set comes from its last key.

      Each time it is enumerated it begins anew. A table that goes meanwhile is an `ArgumentError`,
      and so is a specification that is none, when it is enumerated.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, for(i <- 1..1000, do: {i, rem(i, 7)}))
          iex> tab |> Larder.stream() |> Stream.filter(fn {_, n} -> n == 0 end) |> Enum.take(2)
          [{7, 0}, {14, 0}]
          iex> tab |> Larder.stream([{{:"$1", 3}, [], [:"$1"]}]) |> Enum.at(1)
          10
          iex> tab |> Larder.stream([{{:"$1", :_}, [], [:"$1"]}], reverse: true) |> Enum.take(3)
          [1000, 999, 998]
      """
      @spec stream(table()) :: Enumerable.t()
      @spec stream(table(), match_spec()) :: Enumerable.t()
      @spec stream(table(), match_spec(), batch: pos_integer(), reverse: boolean()) ::
              Enumerable.t()
      def stream(tab, spec \\ [{:_, [], [:"$_"]}], options \\ []),
        do: Larder.Stream.new(tab, spec, options)

      @doc """
      Returns the number of objects for which a match specification returns `true`.

          iex> tab = Larder.new(:scores, [])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}, {20, :eve}])
          iex> Larder.select_count(tab, [{{:"$1", :_}, [{:>, :"$1", 10}], [true]}])
          2
      """
      @spec select_count(table(), match_spec()) :: non_neg_integer()
      defdelegate select_count(tab, spec), to: :larder

      @doc """
      Deletes the objects for which a match specification returns `true`, and returns their number.

      Each object goes at one moment, not all of them together.

          iex> tab = Larder.new(:scores, [])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}, {20, :eve}])
          iex> Larder.select_delete(tab, [{{:"$1", :_}, [{:>, :"$1", 10}], [true]}])
          2
          iex> Larder.tab2list(tab)
          [{10, :bob}]
      """
      @spec select_delete(table(), match_spec()) :: non_neg_integer()
      defdelegate select_delete(tab, spec), to: :larder

      @doc """
      Deletes the objects that a match specification matches, and returns its results.

      Each object (in a bag, those of a key) is deleted and given by itself, at one moment: of
      several takers one gets it.

          iex> tab = Larder.new(:jobs, [:ordered_set])
          iex> Larder.insert(tab, [{1, :done}, {2, :open}, {3, :done}])
          iex> Larder.select_take(tab, [{{:"$1", :done}, [], [:"$1"]}])
          [1, 3]
          iex> Larder.tab2list(tab)
          [{2, :open}]
      """
      @spec select_take(table(), match_spec()) :: [term()]
      defdelegate select_take(tab, spec), to: :larder

      @doc """
      Replaces objects by the results of a match specification, each atomically. Returns their
      number.

      The key must stay: a specification that could change it is an `ArgumentError`.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}, {20, :eve}])
          iex> Larder.select_replace(tab, [{{:"$1", :bob}, [], [{{:"$1", :bo}}]}])
          1
          iex> Larder.lookup(tab, 10)
          [{10, :bo}]
      """
      @spec select_replace(table(), match_spec()) :: non_neg_integer()
      defdelegate select_replace(tab, spec), to: :larder

      @doc """
      Compiles a match specification with parameters, for what is asked again and again.

      `{:bind, n}` stands for the nth value: in a pattern, in guards, in a result. `{prepared,
      values}` is a match specification for every function that takes one, and compiles nothing. A
      value is a constant, whatever it is. It is of no table, and serves all.

          iex> tab = Larder.new(:users, [:ordered_set])
          iex> Larder.insert(tab, for(i <- 1..9, do: {{:user, i}, 10 * i}))
          iex> by_id = Larder.prepare([{{{:user, {:bind, 1}}, :"$1"}, [], [:"$1"]}])
          iex> Larder.select(tab, {by_id, [7]})
          [70]
          iex> Larder.explain(tab, {by_id, [7]}).plan
          :key

      More or fewer values than it has parameters are an `ArgumentError`.
      """
      @spec prepare([{tuple() | atom(), [term()], [term()]}]) :: reference()
      defdelegate prepare(spec), to: :larder

      @doc """
      Compiles a match specification for `match_spec_run/2`.

          iex> compiled = Larder.match_spec_compile([{{:"$1", :"$2"}, [{:>, :"$2", 1}], [:"$1"]}])
          iex> Larder.match_spec_run([salt: 1, flour: 3], compiled)
          [:flour]
      """
      @spec match_spec_compile(match_spec()) :: term()
      defdelegate match_spec_compile(spec), to: :larder

      @doc """
      Runs a compiled match specification over a list of tuples.

          iex> compiled = Larder.match_spec_compile([{{:"$1", :"$2"}, [{:>, :"$2", 1}], [:"$1"]}])
          iex> Larder.match_spec_run([salt: 2, flour: 3], compiled)
          [:salt, :flour]
      """
      @spec match_spec_run([tuple()], term()) :: [term()]
      defdelegate match_spec_run(tuples, compiled), to: :larder

      @doc """
      Whether a term is a compiled match specification of this node.

          iex> compiled = Larder.match_spec_compile([{{:"$1", :"$2"}, [{:>, :"$2", 1}], [:"$1"]}])
          iex> {Larder.is_compiled_ms(compiled), Larder.is_compiled_ms(make_ref())}
          {true, false}
      """
      @spec is_compiled_ms(term()) :: boolean()
      defdelegate is_compiled_ms(term), to: :larder

      @doc """
      Makes a continuation that has been outside the node usable again.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}])
          iex> spec = [{{:_, :"$1"}, [], [:"$1"]}]
          iex> {[:bob], more} = Larder.select(tab, spec, 1)
          iex> stored = :erlang.term_to_binary(more)
          iex> more = Larder.repair_continuation(:erlang.binary_to_term(stored), spec)
          iex> {names, _more} = Larder.select(more)
          iex> names
          [:ann]
      """
      @spec repair_continuation(continuation(), match_spec()) :: continuation()
      defdelegate repair_continuation(continuation, spec), to: :larder

      @doc """
      Tests a match specification on one tuple. Errors are described in text.

          iex> Larder.test_ms({:salt, 1}, [{{:"$1", :"$2"}, [], [:"$2"]}])
          {:ok, 1}
          iex> Larder.test_ms({:salt, 1}, [{{:"$1"}, [], [:"$2"]}])
          {:error, [error: 'Variable $2 is unbound.']}
      """
      @spec test_ms(tuple(), match_spec()) :: {:ok, term()} | {:error, keyword()}
      defdelegate test_ms(tuple, spec), to: :larder

      @doc """
      The match specification of a function that is written out, made when the module is compiled.
      `require Larder` is needed.

          iex> require Larder
          iex> Larder.fun2ms(fn {id, age} when age >= 18 -> id end)
          [{{:"$1", :"$2"}, [{:>=, :"$2", 18}], [:"$1"]}]

      The function takes an object: a tuple, or a variable, or both (`user = {id, _}`), or a record
      of `Record`. Elements may be tuples, lists, maps and structs, pins, and attributes, which are
      the patterns that they stand for. Guards and the body, one expression, may use
      what match specifications know: comparisons, arithmetic, tests of types, `elem/2`, `map.key`,
      guards of `defguard`. Other variables are captured.

          iex> require Larder
          iex> tab = Larder.new(:users, [])
          iex> Larder.insert(tab, [{1, %{name: "ann", age: 30}}, {2, %{name: "bob", age: 12}}])
          iex> limit = 18
          iex> spec = Larder.fun2ms(fn {_, %{age: n} = user} when n > limit -> user.name end)
          iex> Larder.select(tab, spec)
          ["ann"]

      What a match specification can't do is a `CompileError` that names it. A function that isn't
      written out has to be one of the Erlang shell.
      """
      defmacro fun2ms(fun), do: Larder.Fun2ms.expand(fun, __CALLER__)

      @doc """
      A query handle for the Erlang query language QLC. Options: `:traverse`, `:n_objects`.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}])
          iex> tab |> Larder.table(traverse: :last_prev) |> :qlc.e()
          [{30, :ann}, {10, :bob}]
      """
      @spec table(table(), term()) :: term()
      defdelegate table(tab, options), to: :larder

      @doc """
      A query handle for QLC with the default options.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}])
          iex> tab |> Larder.table() |> :qlc.e()
          [{10, :bob}, {30, :ann}]
      """
      @spec table(table()) :: term()
      defdelegate table(tab), to: :larder
    end
  end
end
