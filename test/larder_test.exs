defmodule LarderTest do
  @moduledoc "Each part of Larder from Elixir. No function of the module is left out."
  use ExUnit.Case
  doctest Larder

  defp table(options \\ []) do
    tab = Larder.new(:larder_test, [:public | options])
    on_exit(fn -> if Larder.info(tab) != :undefined, do: Larder.delete(tab) end)
    tab
  end

  test "every function of :larder has its place in Larder, with documentation" do
    inside = [module_info: 0, module_info: 1, format_error: 2]
    there = Larder.__info__(:functions) ++ Larder.__info__(:macros)

    assert for(
             {f, a} <- :larder.module_info(:exports),
             {f, a} not in inside,
             {f, a} not in there,
             do: {f, a}
           ) == []

    {:docs_v1, _, :elixir, _, %{"en" => _}, _, docs} = Code.fetch_docs(Larder)
    undocumented = for {{:function, f, a}, _, _, doc, _} when not is_map(doc) <- docs, do: {f, a}
    assert undocumented == []
  end

  test "every function has a specification, by each number of arguments" do
    {:ok, specs} = Code.Typespec.fetch_specs(Larder)
    specified = for {function, _} <- specs, do: function
    assert length(specified) > 100
    assert Larder.__info__(:functions) -- specified == []
  end

  test "every function has an example, but for those that page on the terminal" do
    {:docs_v1, _, :elixir, _, _, _, docs} = Code.fetch_docs(Larder)

    assert for(
             {{kind, name, _}, _, [signature], %{"en" => doc}, _} <- docs,
             kind in [:function, :macro],
             name != :i,
             not String.contains?(doc, "iex>"),
             do: signature
           ) == []
  end

  test "objects of every type of table" do
    for {type, expected} <- [set: [{1, :b}], ordered_set: [{1, :b}], bag: [{1, :a}, {1, :b}]] do
      tab = table([type])
      assert Larder.insert(tab, {1, :a})
      assert Larder.insert(tab, {1, :b})
      assert Larder.lookup(tab, 1) == expected
      refute Larder.insert_new(tab, {1, :c})
      assert Larder.take(tab, 1) == expected
      assert Larder.info(tab, :size) == 0
    end
  end

  test "snapshots of several tables at one moment" do
    [orders, stock] = [table([:ordered_set]), table()]
    Larder.insert(orders, {1, :flour})
    Larder.insert(stock, {:flour, 3})
    [before, left] = Larder.snapshot([orders, stock])
    Larder.insert(orders, {2, :flour})
    Larder.update_counter(stock, :flour, -1)
    assert Larder.tab2list(before) == [{1, :flour}]
    assert Larder.tab2list(left) == [flour: 3]
    assert %{table: ^orders, number: n, age: age} = Larder.info(before, :snapshot)
    assert is_integer(n) and is_integer(age)
    assert_raise ArgumentError, ~r/snapshot/, fn -> Larder.insert(before, {3, :salt}) end
    assert Larder.diff(before, Larder.snapshot(orders)) == [{:insert, {2, :flour}}]
    assert Larder.release(left)
    assert Larder.info(left) == :undefined
  end

  test "tables on a structure of one's choice" do
    names = for %{name: name, types: types} <- Larder.structures(), :ordered_set in types, do: name
    assert :default in names and :avl in names

    for name <- names do
      tab = table([:ordered_set, {:structure, name}])
      assert Larder.insert(tab, for(i <- 5..1//-1, do: {i, i * i}))
      assert Larder.first(tab) == 1
      assert Larder.lookup(tab, 3) == [{3, 9}]
    end
  end

  test "structs, maps, binaries and improper lists come back as they went in" do
    tab = table()

    values = [
      ~D[2024-02-29],
      %{nested: %{list: [1, 2.5 | :tail]}},
      String.duplicate("ü", 1000),
      <<5::3>>,
      &Enum.map/2,
      self()
    ]

    for {value, i} <- Enum.with_index(values), do: Larder.insert(tab, {i, value})
    for {value, i} <- Enum.with_index(values), do: assert([{^i, ^value}] = Larder.lookup(tab, i))
  end

  test "several keys in one call" do
    tab = table([:bag])
    Larder.insert(tab, [{1, :a}, {1, :b}, {2, :c}])
    assert Larder.lookup_many(tab, [2, 3, 1]) == [[{2, :c}], [], [{1, :a}, {1, :b}]]
    assert Larder.take_many(tab, [1, 3]) == [[{1, :a}, {1, :b}], []]
    assert Larder.tab2list(tab) == [{2, :c}]
  end

  test "several elements of an object" do
    tab = table([:set])
    Larder.insert(tab, {1, :a, "b", 3.0})
    assert Larder.lookup_elements(tab, 1, [4, 2]) == [3.0, :a]
    assert Larder.lookup_elements(tab, 2, [4, 2], nil) == nil
    assert_raise ArgumentError, fn -> Larder.lookup_elements(tab, 2, [4, 2]) end
    bag = table([:bag])
    Larder.insert(bag, [{1, :a}, {1, :b}])
    assert Larder.lookup_elements(bag, 1, [2, 1]) == [[:a, 1], [:b, 1]]
  end

  test "select_take" do
    tab = table([:ordered_set])
    Larder.insert(tab, for(i <- 1..10, do: {i, rem(i, 3)}))
    assert Larder.select_take(tab, [{{:"$1", 0}, [], [:"$1"]}]) == [3, 6, 9]
    assert Larder.info(tab, :size) == 7
  end

  test "prepared match specifications" do
    tab = table([:ordered_set])
    Larder.insert(tab, for(i <- 1..10, do: {i, rem(i, 3), "n#{i}"}))
    prepared = Larder.prepare([{{:"$1", {:bind, 1}, :"$2"}, [{:>, :"$1", {:bind, 2}}], [:"$2"]}])
    assert Larder.select(tab, {prepared, [0, 5]}) == ["n6", "n9"]
    assert Larder.select(tab, {prepared, [1, 5]}) == ["n7", "n10"]
    assert {["n3"], more} = Larder.select(tab, {prepared, [0, 0]}, 1)
    assert {["n6"], _} = Larder.select(more)
    assert_raise ArgumentError, ~r/has no value/, fn -> Larder.select(tab, {prepared, [0]}) end
    assert_raise ArgumentError, fn -> Larder.prepare([{{:"$1"}, [], [{:nonsense, 1}]}]) end
  end

  test "maps in objects change in their place" do
    tab = table([])
    Larder.insert(tab, {:k, %{n: 1}, %{}})
    assert Larder.update_map(tab, :k, 3, "a", [1])
    assert Larder.update_map(tab, :k, [{2, :m, 2}, {2, :m, 3}, {3, "b", %{}}, {3, "a"}])
    assert Larder.lookup(tab, :k) == [{:k, %{n: 1, m: 3}, %{"b" => %{}}}]
    assert Larder.remove_map_key(tab, :k, 2, :m)
    assert Larder.update_counter(tab, :k, [{{2, :n}, 4}, {{2, :new, 10}, 1}]) == [5, 11]
    assert Larder.lookup(tab, :k) == [{:k, %{n: 5, new: 11}, %{"b" => %{}}}]
    refute Larder.update_map(tab, :none, 2, :n, 1)
    Larder.insert(tab, {:l, 1})
    assert_raise ArgumentError, ~r/not a map/, fn -> Larder.update_map(tab, :l, 2, :n, 1) end
  end

  test "ranks" do
    tab = table([:ordered_set])
    Larder.insert(tab, for(i <- 1..1000, do: {2 * i, i}))
    assert Larder.rank(tab, 20) == 10
    assert Larder.rank(tab, 21) == :none
    assert Larder.nth(tab, 10) == {20, 10}
    assert Larder.nth(tab, -1) == {2000, 1000}
    assert Larder.nth(tab, 1001) == :none
    assert Larder.slice(tab, -2, 10) == [{1998, 999}, {2000, 1000}]
    assert Larder.count_range(tab, 20, 30) == 5
    assert_raise ArgumentError, ~r/ordered_set/, fn -> Larder.nth(table(), 1) end
  end

  test "counters and elements" do
    tab = table()
    assert Larder.update_counter(tab, :hits, 1, {:hits, 0}) == 1
    assert Larder.update_counter(tab, :hits, {2, 5, 4, 0}) == 0
    assert Larder.update_element(tab, :hits, {2, 40})
    assert Larder.update_element(tab, :new, {2, :b}, {:new, :a})
    assert Larder.lookup_element(tab, :hits, 2) == 40
    assert Larder.lookup_element(tab, :new, 2) == :b
    assert Larder.lookup_element(tab, :none, 2, :default) == :default
  end

  test "match specifications" do
    tab = table([:ordered_set])
    Larder.insert(tab, for(i <- 1..1000, do: {i, rem(i, 10), "name #{i}"}))

    range = [{{:"$1", :_, :"$2"}, [{:>=, :"$1", 500}, {:<, :"$1", 503}], [{{:"$1", :"$2"}}]}]
    assert Larder.select(tab, range) == [{500, "name 500"}, {501, "name 501"}, {502, "name 502"}]
    assert Larder.select_reverse(tab, range) == Enum.reverse(Larder.select(tab, range))

    assert Larder.match(tab, {:"$1", :_, "name 7"}) == [[7]]
    assert Larder.match_object(tab, {7, :_, :_}) == [{7, 7, "name 7"}]
    assert Larder.select_count(tab, [{{:_, 3, :_}, [], [true]}]) == 100
    assert Larder.select_replace(tab, [{{:"$1", 3, :"$2"}, [], [{{:"$1", :three, :"$2"}}]}]) == 100
    assert Larder.select_delete(tab, [{{:_, :three, :_}, [], [true]}]) == 100
    assert Larder.info(tab, :size) == 900

    compiled = Larder.match_spec_compile([{{:"$1"}, [], [{{:got, :"$1"}}]}])
    assert Larder.is_compiled_ms(compiled)
    assert Larder.match_spec_run([{1}, {2, 3}, {4}], compiled) == [{:got, 1}, {:got, 4}]
    assert Larder.test_ms({1, 2}, [{{:"$1", :"$2"}, [], [{:+, :"$1", :"$2"}]}]) == {:ok, 3}
  end

  test "chunks, also with a continuation that has been outside" do
    tab = table([:ordered_set])
    Larder.insert(tab, for(i <- 1..25, do: {i}))
    spec = [{{:"$1"}, [], [:"$1"]}]

    {first, continuation} = Larder.select(tab, spec, 10)
    away = continuation |> :erlang.term_to_binary() |> :erlang.binary_to_term()
    {second, continuation} = Larder.select(Larder.repair_continuation(away, spec))
    {third, last} = Larder.select(continuation)
    assert first ++ second ++ third == Enum.to_list(1..25)
    assert last == :"$end_of_table" or Larder.select(last) == :"$end_of_table"
  end

  test "traversal and folds" do
    tab = table([:ordered_set])
    Larder.insert(tab, [{3, :c}, {1, :a}, {2, :b}])

    assert {Larder.first(tab), Larder.next(tab, 1), Larder.prev(tab, 3), Larder.last(tab)} ==
             {1, 2, 2, 3}

    assert Larder.first_lookup(tab) == {1, [{1, :a}]}
    assert Larder.next_lookup(tab, 3) == :"$end_of_table"
    assert Larder.foldl(fn {k, _}, acc -> [k | acc] end, [], tab) == [3, 2, 1]
    assert Larder.foldr(fn {k, _}, acc -> [k | acc] end, [], tab) == [1, 2, 3]
    assert Larder.tab2list(tab) == [{1, :a}, {2, :b}, {3, :c}]
  end

  test "an heir gets the table when its owner exits" do
    me = self()

    owner =
      spawn(fn ->
        tab = Larder.new(:inherited, [:set, {:heir, me, :the_data}])
        Larder.insert(tab, {:kept, true})
        send(me, {:made, tab})
        receive do: (:stop -> :ok)
      end)

    assert_receive {:made, tab}, 5000
    assert_raise ArgumentError, fn -> Larder.insert(tab, {:not, :allowed}) end
    send(owner, :stop)
    assert_receive {:"ETS-TRANSFER", ^tab, ^owner, :the_data}, 5000
    assert Larder.info(tab, :owner) == me
    assert Larder.lookup(tab, :kept) == [{:kept, true}]
    assert Larder.delete(tab)
  end

  test "a table goes with its owner, and may be given away" do
    me = self()
    task = Task.async(fn -> Larder.new(:short_lived, []) end)
    gone = Task.await(task)
    ref = Process.monitor(task.pid)
    assert_receive {:DOWN, ^ref, _, _, _}, 5000

    assert Enum.any?(1..100, fn _ -> Larder.info(gone) == :undefined or Process.sleep(10) != :ok end)

    giver =
      spawn(fn ->
        tab = Larder.new(:gift, [])
        Larder.give_away(tab, me, :gift)
      end)

    assert_receive {:"ETS-TRANSFER", tab, ^giver, :gift}, 5000
    assert Larder.delete(tab)
  end

  test "errors are ArgumentErrors that say which argument" do
    error = assert_raise ArgumentError, fn -> Larder.insert(:no_such_table, {1}) end
    assert error.message =~ "1st argument"
    assert error.message =~ "does not refer to an existing Larder table"
    assert_raise ArgumentError, fn -> Larder.lookup_element(table(), :none, 2) end
    assert_raise ArgumentError, fn -> Larder.new(:name, [:no_such_option]) end
  end

  test "errors that concern no argument say what it is" do
    users = table(index: [{:mail, 2, [:unique]}])
    assert Larder.insert(users, {1, "ann@x"})
    assert_raise ArgumentError, ~r/unique index mail/, fn -> Larder.insert(users, {2, "ann@x"}) end

    [one, other] = full = for _ <- 1..2, do: table(max_size: 1)
    insert = fn -> Larder.insert(one, [{1}, {2}]) end
    assert_raise SystemLimitError, ~r/may have 1,/, insert

    both = fn -> Larder.commit([{:insert, one, {1}}, {:insert, other, [{1}, {2}]}]) end
    assert_raise SystemLimitError, ~r/one of the tables/, both
    assert Enum.map(full, &Larder.info(&1, :size)) == [0, 0]

    fixed = table(structure: {:lockfree_hash, [buckets: 2, chain: 50]})
    fill = fn -> for n <- 1..101, do: Larder.insert(fixed, {n}) end
    assert_raise SystemLimitError, ~r/was made for/, fill
  end

  test "files" do
    path =
      Path.join(
        System.tmp_dir!(),
        "larder_test_#{System.unique_integer([:positive])}_#{System.pid()}.tab"
      )

    on_exit(fn -> File.rm(path) end)
    tab = table([:bag])
    Larder.insert(tab, [{1, "one"}, {1, "uno"}, {2, "two"}])
    assert Larder.tab2file(tab, path, extended_info: [:md5sum, :object_count]) == :ok
    assert {:ok, info} = Larder.tabfile_info(path)
    assert info[:size] == 3
    assert {:ok, copy} = Larder.file2tab(path, verify: true)
    assert Enum.sort(Larder.tab2list(copy)) == Enum.sort(Larder.tab2list(tab))
    assert Larder.delete(copy)

    # Paths are chardata, as everywhere in Elixir, or bytes that are no text.
    for other <- [[path, ".a"], String.to_charlist(path) ++ ~c".b", <<path::binary, 255>>] do
      assert Larder.tab2file(tab, other) == :ok
      assert {:ok, info} = Larder.tabfile_info(other)
      assert info[:size] == 3
      assert {:ok, copy} = Larder.file2tab(other)
      assert Larder.delete(copy)
      File.rm!(other)
    end

    File.write!(path, binary_part(File.read!(path), 0, 100))
    assert {:error, _} = Larder.file2tab(path, verify: true)
  end

  test "many processes count together and lose nothing" do
    tab = table([{:write_concurrency, :auto}])

    1..8
    |> Enum.map(fn _ ->
      Task.async(fn ->
        for i <- 1..2000, do: Larder.update_counter(tab, rem(i, 10), 1, {rem(i, 10), 0})
      end)
    end)
    |> Task.await_many(60_000)

    assert Larder.foldl(fn {_, n}, sum -> sum + n end, 0, tab) == 16_000
  end

  test "a program that names its table module once moves by changing that name" do
    run = fn tables ->
      tab = tables.new(:either, [:ordered_set])
      tables.insert(tab, for(i <- 1..50, do: {i, i * i}))

      result =
        {tables.select(tab, [{{:"$1", :"$2"}, [{:>, :"$2", 2000}], [:"$_"]}]),
         tables.info(tab, :size), tables.next(tab, 7.5)}

      tables.delete(tab)
      result
    end

    assert run.(:ets) == run.(:larder)
    assert run.(:ets) == run.(Larder)
  end

  test "the parse transform moves a module of Elixir" do
    source = """
    defmodule LarderTest.Moved do
      @compile {:parse_transform, :larder_transform}
      @compile {:larder_transform, {:nowarn, [:missing]}}
      def run do
        tab = :ets.new(:moved, [:public])
        Enum.each(1..9, &:ets.insert(tab, {&1, &1}))
        {tab, :ets.lookup(tab, 3), apply(:ets, :member, [tab, 4])}
      end

      def left(tab), do: {:ets, :lookup, [tab, 1]}
    end
    """

    said = ExUnit.CaptureIO.capture_io(:stderr, fn -> Code.compile_string(source, "moved.ex") end)

    assert said =~ "{ets, lookup, ...} stays"
    assert {tab, [{3, 3}], true} = apply(LarderTest.Moved, :run, [])
    assert Larder.info(tab, :size) == 9
    refute tab in :ets.all()
    Larder.delete(tab)
  end

  @tag timeout: 120_000
  test "compiled modules of Elixir move: its Registry, with its documentation" do
    folder = Path.join(System.tmp_dir!(), "larder_move_#{System.pid()}")
    on_exit(fn -> File.rm_rf!(folder) end)
    File.mkdir_p!(folder)

    for file <-
          Path.wildcard(Path.join(Application.app_dir(:elixir, "ebin"), "Elixir.Registry*.beam")),
        do: File.cp!(file, Path.join(folder, Path.basename(file)))

    beam = Path.join(folder, "Elixir.Registry.beam")
    {:docs_v1, _, _, _, _, _, docs} = Code.fetch_docs(beam)
    said = ExUnit.CaptureIO.capture_io(fn -> Mix.Tasks.Larder.Move.run(["--plan", folder]) end)
    assert said =~ "Elixir.Registry.beam"
    ExUnit.CaptureIO.capture_io(fn -> Mix.Tasks.Larder.Move.run([folder]) end)
    assert {:docs_v1, _, _, _, _, _, ^docs} = Code.fetch_docs(beam)

    script = """
    {:ok, _} = Registry.start_link(keys: :unique, name: Moved)
    {:ok, _} = Registry.register(Moved, "key", :value)
    IO.inspect({Registry.lookup(Moved, "key") == [{self(), :value}], :larder.all() != [],
                :ets.whereis(Moved)})
    """

    ebin = Path.dirname(to_string(:code.which(:larder)))
    {out, 0} = System.cmd("elixir", ["-pa", ebin, "-pa", folder, "-e", script])
    assert out == "{true, true, :undefined}\n"

    assert_raise Mix.Error, ~r/undo that first/, fn -> Mix.Tasks.Larder.Move.run([folder]) end
    back = ExUnit.CaptureIO.capture_io(fn -> Mix.Tasks.Larder.Move.run(["--undo", folder]) end)
    assert back =~ "modules are those of :ets again"
  end
end
