defmodule LarderFun2msTest do
  # What Larder.fun2ms makes of functions, beside specifications that were written by hand; what
  # those find; and what is refused.
  use ExUnit.Case
  require Larder

  defmodule User do
    defstruct [:name, :age]
  end

  defguard is_adult(age) when is_integer(age) and age >= 18

  @limit 30

  defp table(objects) do
    tab = Larder.new(:fun2ms, [:ordered_set])
    Larder.insert(tab, objects)
    tab
  end

  # The message of the CompileError.
  defp refused(code) do
    assert_raise(CompileError, fn ->
      Code.eval_string("require Larder; x = 1; _ = x; Larder.fun2ms(#{code})", [], file: "here.ex")
    end).description
  end

  test "tuples, variables and the whole object" do
    assert Larder.fun2ms(fn {k, v} -> {v, k} end) == [{{:"$1", :"$2"}, [], [{{:"$2", :"$1"}}]}]

    assert Larder.fun2ms(fn {k, _} = row when k > 3 -> row end) == [
             {{:"$1", :_}, [{:>, :"$1", 3}], [:"$_"]}
           ]

    assert Larder.fun2ms(fn row -> row end) == [{:_, [], [:"$_"]}]
    assert Larder.fun2ms(fn _ -> true end) == [{:_, [], [true]}]
    assert Larder.fun2ms(fn {k, k, _ignored} -> [k] end) == [{{:"$1", :"$1", :_}, [], [[:"$1"]]}]

    assert Larder.fun2ms(fn {{:a, n}, [h | t], "x", 1.5} -> {n, h, t} end) ==
             [{{{:a, :"$1"}, [:"$2" | :"$3"], "x", 1.5}, [], [{{:"$1", :"$2", :"$3"}}]}]
  end

  test "only _ is anonymous" do
    assert Larder.fun2ms(fn {_a, _a, _b} -> true end) == [{{:"$1", :"$1", :_}, [], [true]}]

    assert Larder.fun2ms(fn {_a, _b} when _a > 1 -> _a end) ==
             [{{:"$1", :_}, [{:>, :"$1", 1}], [:"$1"]}]

    assert Larder.fun2ms(fn {_, _} = _row -> true end) == [{{:_, :_}, [], [true]}]
    assert Larder.fun2ms(fn {_, _} = _row -> _row end) == [{{:_, :_}, [], [:"$_"]}]

    tab = Larder.new(:fun2ms, [:bag])
    Larder.insert(tab, [{1, 1}, {1, 2}, {3, 3}, {4, %{a: 1, b: 2}}, {5, %{a: 1, b: 1}}])
    assert Larder.select(tab, Larder.fun2ms(fn {_k, %{a: _x, b: _x}} -> _k end)) == [5]

    assert Larder.select(tab, Larder.fun2ms(fn {_, %{a: _x, b: _y}} -> _y end)) |> Enum.sort() == [
             1,
             2
           ]

    assert Larder.select_delete(tab, Larder.fun2ms(fn {_a, _a} -> true end)) == 2
    assert Larder.info(tab, :size) == 3
  end

  test "__MODULE__ is a constant" do
    tab = table([{1, __MODULE__}, {2, :other}])

    assert Larder.select(tab, Larder.fun2ms(fn {k, __MODULE__} -> {k, __MODULE__} end)) ==
             [{1, __MODULE__}]

    assert Larder.select(tab, Larder.fun2ms(fn {k, m} when m != __MODULE__ -> k end)) == [2]
  end

  test "several clauses" do
    assert Larder.fun2ms(fn
             {:a, n} -> n
             {:b, n} when n != 1 -> -n
           end) == [
             {{:a, :"$1"}, [], [:"$1"]},
             {{:b, :"$1"}, [{:"/=", :"$1", 1}], [{:-, :"$1"}]}
           ]
  end

  test "guards" do
    assert Larder.fun2ms(fn {k, v} when k <= 3 and (v === nil or not is_atom(v)) -> elem(v, 0) end) ==
             [
               {{:"$1", :"$2"},
                [
                  {:andalso, {:"=<", :"$1", 3},
                   {:orelse, {:"=:=", :"$2", nil}, {:not, {:is_atom, :"$2"}}}}
                ], [{:element, 1, :"$2"}]}
             ]

    assert Larder.fun2ms(fn {k, v} when rem(k, 2) !== 0 when is_map_key(v, :a) -> map_size(v) end) ==
             [
               {{:"$1", :"$2"}, [{:"=/=", {:rem, :"$1", 2}, 0}], [{:map_size, :"$2"}]},
               {{:"$1", :"$2"}, [{:is_map_key, :a, :"$2"}], [{:map_size, :"$2"}]}
             ]

    rows = for i <- 1..40, do: {i, i * i}
    tab = table(rows)
    inside = Larder.fun2ms(fn {k, _} when k in [3, 5, 99] -> k end)
    assert Larder.select(tab, inside) == [3, 5]
    adults = Larder.fun2ms(fn {k, _} when is_adult(k) and k < @limit -> k end)
    assert Larder.select(tab, adults) == Enum.to_list(18..29)
  end

  # A guard for each operator, function and macro of Kernel that Elixir allows in guards.
  @guards [
    {"!=/2", "k != v"},
    {"!==/2", "k !== v"},
    {"*/2", "k * v == 4"},
    {"+/1", "+v == 2"},
    {"+/2", "k + v == 4"},
    {"-/1", "-v == -2"},
    {"-/2", "v - k == 0"},
    {"//2", "v / 2 == 1"},
    {"</2", "k < v"},
    {"<=/2", "k <= v"},
    {"==/2", "k == v"},
    {"===/2", "k === v"},
    {">/2", "k > v"},
    {">=/2", "k >= v"},
    {"abs/1", "abs(v) == 1"},
    {"and/2", "is_integer(v) and v > 1"},
    {"binary_part/3", "binary_part(v, 1, 1) == \"b\""},
    {"bit_size/1", "bit_size(v) == 7"},
    {"byte_size/1", "byte_size(v) == 2"},
    {"ceil/1", "ceil(v) == 3"},
    {"div/2", "div(v, 2) == 1"},
    {"elem/2", "elem(v, 1) == :b"},
    {"elem/2", "elem(v, k - 10) == :b"},
    {"floor/1", "floor(v) == 2"},
    {"hd/1", "hd(v) == 1"},
    {"in/2", "v in [2, :a]"},
    {"in/2", "v in 1..3"},
    {"in/2", "v not in 1..3"},
    {"is_atom/1", "is_atom(v)"},
    {"is_binary/1", "is_binary(v)"},
    {"is_bitstring/1", "is_bitstring(v)"},
    {"is_boolean/1", "is_boolean(v)"},
    {"is_exception/1", "is_exception(v)"},
    {"is_exception/2", "is_exception(v, KeyError)"},
    {"is_float/1", "is_float(v)"},
    {"is_function/1", "is_function(v)"},
    {"is_function/2", "is_function(v, 2)"},
    {"is_integer/1", "is_integer(v)"},
    {"is_list/1", "is_list(v)"},
    {"is_map/1", "is_map(v)"},
    {"is_map_key/2", "is_map_key(v, :a)"},
    {"is_non_struct_map/1", "is_non_struct_map(v)"},
    {"is_nil/1", "is_nil(v)"},
    {"is_number/1", "is_number(v)"},
    {"is_pid/1", "is_pid(v)"},
    {"is_port/1", "is_port(v)"},
    {"is_reference/1", "is_reference(v)"},
    {"is_struct/1", "is_struct(v)"},
    {"is_struct/2", "is_struct(v, MapSet)"},
    {"is_tuple/1", "is_tuple(v)"},
    {"length/1", "length(v) == 2"},
    {"map_size/1", "map_size(v) == 1"},
    {"node/0", "v == node()"},
    {"node/1", "node(v) == node()"},
    {"not/1", "not is_number(v)"},
    {"or/2", "v == 2 or k == 3"},
    {"rem/2", "rem(v, 2) == 0"},
    {"round/1", "round(v) == 3"},
    {"self/0", "v == self()"},
    {"tl/1", "tl(v) == [2]"},
    {"trunc/1", "trunc(v) == -1"},
    {"tuple_size/1", "tuple_size(v) == 2"}
  ]

  test "every guard of Kernel passes what it passes in a function" do
    values =
      [1, 2, -1, 2.0, 2.5, -1.5, 4, nil, true, :a, {:a, :b}, {:c}, [1, 2], [], "ab", "abc"] ++
        [<<1::7>>, %{a: 1}, %{}, MapSet.new(), %KeyError{key: 1}, %ArgumentError{}, &max/2] ++
        [&hd/1, self(), make_ref(), hd(Port.list()), node()]

    rows = values |> Enum.with_index(1) |> Enum.map(fn {value, i} -> {i, value} end)
    tab = table(rows)

    # Elixir says in its documentation what it allows; newer releases more.
    {:docs_v1, _, _, _, _, _, docs} = Code.fetch_docs(Kernel)
    allowed = for {{_, name, arity}, _, _, _, %{guard: true}} <- docs, do: "#{name}/#{arity}"
    assert length(allowed) > 50
    assert allowed -- Enum.map(@guards, &elem(&1, 0)) == []

    for {name, guard} <- @guards, name in allowed do
      {passes?, _} = Code.eval_string("fn {k, v} when #{guard} -> {k, v}; _ -> nil end")
      spec = "require Larder; Larder.fun2ms(fn {k, v} = row when #{guard} -> row end)"
      {spec, _} = Code.eval_string(spec)
      expected = Enum.filter(rows, passes?)
      assert expected != [], guard
      assert {guard, Larder.select(tab, spec)} == {guard, expected}
    end
  end

  test "max and min" do
    tab = table([{1, 5}, {2, -3}])
    spec = Larder.fun2ms(fn {k, v} when max(k, v) < 9 -> {k, max(v, 0), min(v, k)} end)
    assert Larder.select(tab, spec) == [{1, 5, 1}, {2, 0, -3}]
  end

  test "pins and captured variables" do
    [key, weird, least] = [{:a, 1}, :"$1", 2]
    tab = table([{{:a, 1}, 5}, {{:a, 2}, 6}, {:"$1", 7}, {:_, 8}])
    assert Larder.select(tab, Larder.fun2ms(fn {^key, v} -> v end)) == [5]
    assert Larder.select(tab, Larder.fun2ms(fn {^weird, v} -> v end)) == [7]

    assert Larder.select(tab, Larder.fun2ms(fn {:_, v} -> {v, weird, ^least} end)) == [
             {8, :"$1", 2}
           ]

    assert Larder.select(tab, Larder.fun2ms(fn {{:a, n}, v} when n >= least -> v end)) == [6]

    assert Larder.fun2ms(fn {^key, _} -> true end) ==
             [{{:"$1", :_}, [{:"=:=", :"$1", {:const, {:a, 1}}}], [true]}]
  end

  test "maps and structs match in part" do
    ann = %User{name: "ann", age: 30}

    tab =
      table([
        {1, ann},
        {2, %User{name: "bob", age: 12}},
        {3, %{name: "cat", at: {1, [2, 3]}}},
        {4, :none}
      ])

    assert Larder.select(tab, Larder.fun2ms(fn {_, %User{age: n} = u} when n > 20 -> u end)) == [
             ann
           ]

    assert Larder.select(tab, Larder.fun2ms(fn {k, %{name: name}} -> {k, name} end)) ==
             [{1, "ann"}, {2, "bob"}, {3, "cat"}]

    assert Larder.select(tab, Larder.fun2ms(fn {k, %{at: {n, [_, m]}}} -> {k, n, m} end)) == [
             {3, 1, 3}
           ]

    assert Larder.select(tab, Larder.fun2ms(fn {k, %{at: {n, [n | _]}}} -> k end)) == []

    # A list with a tail has an element, whether it is used or not.
    Larder.insert(tab, [{4, %{at: []}}, {5, %{at: :none}}, {6, %{at: [1]}}, {7, %{at: [1 | 2]}}])
    first = Larder.fun2ms(fn {k, %{at: [n | _]}} -> {k, n} end)
    assert Enum.sort(Larder.select(tab, first)) == [{6, 1}, {7, 1}]
    assert Larder.select_delete(tab, Larder.fun2ms(fn {_, %{at: [_ | _]}} -> true end)) == 2
    assert Larder.select_delete(tab, Larder.fun2ms(fn {k, _} when k > 3 -> true end)) == 2

    assert Larder.select(tab, Larder.fun2ms(fn {_, %User{name: "bob"} = u} -> %{age: u.age} end)) ==
             [%{age: 12}]

    # A map whose `:__struct__` is no atom is no struct.
    Larder.insert(tab, {5, %{__struct__: "user"}})

    assert Larder.select(tab, Larder.fun2ms(fn {k, %module{}} -> {k, module} end)) ==
             [{1, User}, {2, User}]

    assert Larder.select(tab, Larder.fun2ms(fn {k, %_{}} -> k end)) == [1, 2]

    assert Larder.select_take(tab, Larder.fun2ms(fn {k, %User{}} -> k end)) == [1, 2]
  end

  require Record
  Record.defrecordp(:thing, key: nil, color: :red, at: nil)
  @part %{a: 1}
  @nested {1, [%{b: 2}]}

  test "attributes, records and sigils are the patterns that they stand for" do
    rows = [
      {1, %{a: 1}},
      {2, %{a: 1, b: 2}},
      {3, {1, [%{b: 2, c: 3}]}},
      {4, {1, [%{b: 3}]}},
      {5, %{in: %{a: 1, c: 3}}},
      {6, ~c"abc"},
      {7, %{"$1": 7}}
    ]

    tab = table(rows)
    as = fn fun -> for row <- rows, (found = fun.(row)) != nil, do: found end

    assert as.(fn {k, v} -> if(match?(@part, v), do: k) end) ==
             Larder.select(tab, Larder.fun2ms(fn {k, @part} -> k end))

    assert Larder.select(tab, Larder.fun2ms(fn {k, @part} -> k end)) == [1, 2]
    assert Larder.select(tab, Larder.fun2ms(fn {k, @nested} -> k end)) == [3]
    assert Larder.select(tab, Larder.fun2ms(fn {k, %{in: @part}} -> k end)) == [5]
    assert Larder.select(tab, Larder.fun2ms(fn {k, ~c"abc"} -> k end)) == [6]

    assert Larder.select(tab, Larder.fun2ms(fn {k, v} when is_map(v) -> v."$1" end)) |> Enum.at(-1) ==
             7

    assert Larder.fun2ms(fn {@limit, v} -> v end) == [{{30, :"$1"}, [], [:"$1"]}]

    things = Larder.new(:things, [:ordered_set, {:keypos, 2}])
    Larder.insert(things, [thing(key: 1, at: %{x: 1}), thing(key: 2, color: :blue)])
    assert Larder.fun2ms(fn thing(key: k) -> k end) == [{{:thing, :"$1", :_, :_}, [], [:"$1"]}]
    blue = Larder.fun2ms(fn thing(color: :blue) = t when thing(t, :key) > 1 -> t end)
    assert Larder.select(things, blue) == [thing(key: 2, color: :blue)]
    at = Larder.fun2ms(fn thing(key: k, at: %{x: x}) -> thing(key: x, at: k) end)
    assert Larder.select(things, at) == [thing(key: 1, at: 1)]
  end

  test "operators of Bitwise" do
    import Bitwise
    tab = table(for i <- 1..6, do: {i, i})
    odd = Larder.fun2ms(fn {k, _} when (k &&& 1) == 1 -> {k <<< 2, k >>> 1, k ||| 8, ~~~k} end)
    assert Larder.select(tab, odd) == [{4, 0, 9, -2}, {12, 1, 11, -4}, {20, 2, 13, -6}]
  end

  test "what is refused is named" do
    assert refused("fn {k, _} -> String.upcase(k) end") =~ "String.upcase(k) is not allowed"
    assert refused("fn {k, _} when foo(k) -> k end") =~ "foo(k) is not allowed"
    assert refused("fn {k, _} -> if k, do: 1 end") =~ "is not allowed"

    assert refused("fn {k, \"a\" <> rest} -> {k, rest} end") =~
             "\"a\" <> rest is not allowed in the head"

    assert refused("fn {k, _} -> %URI{path: k} end") =~ "%URI{path: k} is not allowed"
    assert refused("fn {k, %URI{paht: p}} -> {k, p} end") =~ "the struct has not: :paht"
    assert refused("fn {k, %No.Such{}} -> k end") =~ "No.Such.__struct__/0 is undefined"
    assert refused("fn {k, _} -> %{k | a: 1} end") =~ "is not allowed"
    assert refused("fn {k, _} -> (y = k; y) end") =~ "is not allowed"
    assert refused("fn {k, v} when v > URI.limit -> k end") =~ "URI.limit() is not allowed"
    assert refused("fn {k, v} when v > __MODULE__.limit -> k end") =~ "is not allowed"
    assert refused("fn [a, b] -> {a, b} end") =~ "[a, b] is not the pattern of an object"
    assert refused("fn a, b -> {a, b} end") =~ "has not one argument"
    assert refused("&(&1)") =~ "is no function written with fn"
    fun = fn {k} -> k end
    assert catch_exit(Larder.fun2ms(fun))
  end

  test "a function of the module's own is none of the emulator's" do
    in_module = fn body ->
      source = """
      defmodule Larder.Fun2msTest.Own do
        import Kernel, except: [round: 1]
        require Larder
        def size(x), do: x * 100
        def round(x), do: x
        def spec, do: Larder.fun2ms(fn {k, v} -> #{body} end)
      end
      """

      ExUnit.CaptureIO.capture_io(:stderr, fn ->
        Code.compile_string(source)
        :code.purge(Larder.Fun2msTest.Own)
        :code.delete(Larder.Fun2msTest.Own)
      end)
    end

    for own <- ["size(v)", "round(v)"] do
      error = assert_raise CompileError, fn -> in_module.(own) end
      assert error.description =~ "#{own} is a function of the module's own"
    end

    for known <- ["map_size(v)", "v in [1, 2]", "abs(v) + k", "v.name"], do: in_module.(known)
  end
end
