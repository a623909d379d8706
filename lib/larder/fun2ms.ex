defmodule Larder.Fun2ms do
  @moduledoc false
  # Translates a literal function to a match specification at compile time, for `Larder.fun2ms/1`.
  #
  # 1. The head. A tuple becomes the specification's head, and its variables become `:"$1"` and so
  #    on. Patterns that a head can't express become guards on such a variable: pins, and maps and
  #    structs, which match in part. As everywhere in Elixir, only `_` is anonymous: `_name` is a
  #    variable like any other. One that occurs nowhere else becomes `:_`.
  #    What a macro makes in a pattern, such as those of `defrecord`, is one.
  # 2. Below a map, a pattern becomes the path to the value: `{:map_get, key, :"$1"}`.
  # 3. Guards and the body. A variable of the head becomes its `:"$1"` or path. Any other variable
  #    is captured, `{:const, value}`, as in any function. Macros, such as those of `defguard`, are
  #    expanded.

  # Functions that a specification may call, by their names in `:erlang`.
  @calls ~w(abs element hd length map_get map_size node round self size bit_size byte_size
            tuple_size tl trunc floor ceil + - * / div rem band bor bxor bnot bsl bsr > >= < =< =:=
            == =/= /= and or xor not andalso orelse is_atom is_float is_integer is_list is_number
            is_pid is_port is_reference is_tuple is_map is_map_key is_binary is_bitstring
            is_function is_boolean binary_part max min)a

  # Operators of Kernel and Bitwise that have another name in `:erlang`.
  @renamed %{<=: :"=<", ===: :"=:=", !=: :"/=", !==: :"=/="}
           |> Map.merge(%{&&&: :band, |||: :bor, <<<: :bsl, >>>: :bsr, "~~~": :bnot})

  # Written like variables, and constants.
  @pseudo_variables ~w(__MODULE__ __DIR__ __ENV__ __CALLER__ __STACKTRACE__)a

  @doc false
  def expand({:fn, _, clauses}, env), do: Enum.flat_map(clauses, &clause(&1, env))
  def expand({:&, _, _} = capture, env), do: refuse(capture, env, "is no function written with fn")
  # Not a literal function: one of the shell, or an error at run time.
  def expand(fun, _env), do: quote(do: :larder.fun2ms(unquote(fun)))

  defp clause({:->, _, [[{:when, _, [pattern, guard]}], body]}, env) do
    Enum.map(alternatives(guard), &rule(pattern, [&1], body, env))
  end

  defp clause({:->, _, [[pattern], body]}, env), do: [rule(pattern, [], body, env)]

  defp clause({:->, meta, _} = clause, env) do
    refuse({:fn, meta, [clause]}, env, "has not one argument, the object")
  end

  # `when a when b` becomes one clause for each guard; the first clause that matches applies.
  defp alternatives({:when, _, [guard, more]}), do: [guard | alternatives(more)]
  defp alternatives(guard), do: [guard]

  defp rule(pattern, guards, body, env) do
    again = repeated([pattern, guards, body])
    {head, state} = whole(pattern, %{names: %{}, guards: [], next: 1, again: again, env: env})
    guards = Enum.reverse(state.guards) ++ Enum.map(guards, &expression(&1, state))
    tuple([head, guards, [expression(body, state)]])
  end

  # ---- the head ----

  # `object = {...}`: the variable is the whole object.
  defp whole({:=, _, [left, right]}, state) do
    case {variable?(left), variable?(right)} do
      {true, _} -> whole(right, bind(left, :"$_", state))
      {_, true} -> whole(left, bind(right, :"$_", state))
      _ -> refuse(left, state.env, "and another pattern are of one object")
    end
  end

  defp whole({a, b}, state), do: whole({:{}, [], [a, b]}, state)

  defp whole({:{}, _, elements}, state) do
    {heads, state} = Enum.map_reduce(elements, state, &head/2)
    {tuple(heads), state}
  end

  defp whole(pattern, state) do
    case {variable?(pattern), expanded(pattern, state)} do
      {true, _} ->
        {:_, bind(pattern, :"$_", state)}

      {_, {_, _} = object} ->
        whole(object, state)

      {_, {kind, _, _} = object} when kind in [:{}, :=] and object != pattern ->
        whole(object, state)

      _ ->
        refuse(pattern, state.env, "is not the pattern of an object: a tuple or a variable")
    end
  end

  defp head({a, b}, state), do: head({:{}, [], [a, b]}, state)

  defp head({:{}, _, elements}, state) do
    {heads, state} = Enum.map_reduce(elements, state, &head/2)
    {tuple(heads), state}
  end

  defp head(list, state) when is_list(list), do: Enum.map_reduce(list, state, &head/2)

  defp head({:|, meta, [first, rest]}, state) do
    {first, state} = head(first, state)
    {rest, state} = head(rest, state)
    {{:|, meta, [first, rest]}, state}
  end

  defp head(pattern, state) do
    cond do
      variable?(pattern) and ignored?(pattern, state) ->
        {:_, state}

      plain?(pattern) ->
        {pattern, state}

      is_atom(state.names[name(pattern)]) and known?(pattern, state, :"$_") ->
        {state.names[name(pattern)], state}

      (other = expanded(pattern, state)) != pattern ->
        head(other, state)

      true ->
        fresh = :"$#{state.next}"
        {fresh, path(pattern, fresh, %{state | next: state.next + 1})}
    end
  end

  # A variable that is an element of the head already.
  defp known?(pattern, state, not_this) do
    variable?(pattern) and state.names[name(pattern)] not in [nil, not_this]
  end

  # ---- patterns as guards ----

  defp path({a, b}, at, state), do: path({:{}, [], [a, b]}, at, state)

  defp path({:{}, _, elements}, at, state) do
    state = guard([:is_tuple, at], state)
    state = guard([:"=:=", tuple([:tuple_size, at]), length(elements)], state)

    elements
    |> Enum.with_index(1)
    |> Enum.reduce(state, fn {element, i}, state ->
      path(element, tuple([:element, i, at]), state)
    end)
  end

  defp path([], at, state), do: guard([:"=:=", at, []], state)

  defp path([{:|, _, [first, rest]}], at, state) do
    state = guard([:is_list, at], state)
    state = guard([:"=/=", at, []], state)
    state = path(first, tuple([:hd, at]), state)
    path(rest, tuple([:tl, at]), state)
  end

  defp path([first | rest], at, state) do
    state = path(first, tuple([:hd, at]), state)
    path(rest, tuple([:tl, at]), state)
  end

  defp path({:=, _, [left, right]}, at, state), do: path(right, at, path(left, at, state))

  defp path({:%, _, [module, {:%{}, meta, pairs}]} = pattern, at, state) do
    name = Macro.expand(module, state.env)
    if is_atom(name), do: refuse_other_fields(pattern, name, pairs, state)
    state = path({:%{}, meta, [{:__struct__, module} | pairs]}, at, state)
    # As in any pattern, a struct's module is an atom.
    if is_atom(name), do: state, else: guard([:is_atom, tuple([:map_get, :__struct__, at])], state)
  end

  defp path({:%{}, _, pairs}, at, state) do
    Enum.reduce(pairs, guard([:is_map, at], state), fn
      {key, pattern}, state ->
        key = constant(key, state)
        state = guard([:is_map_key, key, at], state)
        path(pattern, tuple([:map_get, key, at]), state)

      other, state ->
        refuse(other, state.env, "is no pair of a map's pattern")
    end)
  end

  defp path(pattern, at, state) do
    cond do
      variable?(pattern) and ignored?(pattern, state) -> state
      variable?(pattern) -> bind(pattern, at, state)
      (other = expanded(pattern, state)) != pattern -> path(other, at, state)
      true -> guard([:"=:=", at, constant(pattern, state)], state)
    end
  end

  # What a macro makes of itself in a pattern: a record of `Record`, a sigil, an attribute. Binaries
  # with segments are refused by the name that they have here, and outside functions an attribute is
  # read when the code runs.
  defp expanded(pattern, state) do
    case Macro.expand(pattern, %{state.env | context: :match}) do
      {:<<>>, _, _} -> pattern
      {{:., _, _}, _, _} -> pattern
      {:__block__, _, _} -> pattern
      other -> other
    end
  end

  # A struct that isn't there is the compiler's own error.
  defp refuse_other_fields(pattern, name, pairs, state) do
    fields = name |> Macro.struct!(state.env) |> Map.keys()

    for {field, _} <- pairs, field not in fields do
      refuse(pattern, state.env, "has a field that the struct has not: #{Macro.to_string(field)}")
    end
  end

  # A constant: a literal, a pinned variable, an attribute or an alias.
  defp constant({:^, _, [variable]}, _state), do: tuple([:const, variable])
  defp constant({:@, _, _} = attribute, _state), do: tuple([:const, attribute])

  defp constant(value, state) do
    case Macro.expand(value, %{state.env | context: :match}) do
      literal when is_atom(literal) or is_number(literal) or is_binary(literal) ->
        tuple([:const, literal])

      {:-, _, [number]} when is_number(number) ->
        -number

      _ ->
        refuse(value, state.env, "is not allowed in the head of a match specification")
    end
  end

  defp guard(call, state), do: %{state | guards: [tuple(call) | state.guards]}

  # A variable that occurs twice has the same value in both places.
  defp bind(variable, at, state) do
    case state.names[name(variable)] do
      _ when elem(variable, 0) == :_ -> state
      nil -> %{state | names: Map.put(state.names, name(variable), at)}
      before -> guard([:"=:=", before, at], state)
    end
  end

  # ---- guards and bodies ----

  defp expression({a, b}, state), do: expression({:{}, [], [a, b]}, state)

  defp expression({:{}, _, elements}, state) do
    tuple([tuple(Enum.map(elements, &expression(&1, state)))])
  end

  defp expression(list, state) when is_list(list), do: Enum.map(list, &expression(&1, state))

  defp expression({:|, meta, [first, rest]}, state) do
    {:|, meta, [expression(first, state), expression(rest, state)]}
  end

  defp expression({:%{}, meta, pairs} = map, state) do
    {:%{}, meta,
     Enum.map(pairs, fn
       {key, value} -> {expression(key, state), expression(value, state)}
       _ -> refuse(map, state.env, "is not allowed in a match specification")
     end)}
  end

  defp expression({:^, _, [variable]}, _state), do: tuple([:const, variable])
  defp expression({:@, _, _} = attribute, _state), do: tuple([:const, attribute])

  defp expression({name, _, context} = constant, _state)
       when name in @pseudo_variables and is_atom(context),
       do: tuple([:const, constant])

  defp expression({:__block__, _, [one]}, state), do: expression(one, state)

  defp expression(value, _state) when is_number(value) or is_binary(value), do: value

  defp expression(atom, _state) when is_atom(atom) do
    if plain?(atom), do: atom, else: tuple([:const, atom])
  end

  # `map.key`
  defp expression({{:., _, [map, key]}, meta, []} = field, state) when is_atom(key) do
    # `Module.function` is written like it.
    is_field = is_tuple(map) and Keyword.get(meta, :no_parens, false)

    if is_field and not is_atom(Macro.expand(map, state.env)) do
      tuple([:map_get, expression(key, state), expression(map, state)])
    else
      call(field, state)
    end
  end

  defp expression(ast, state) do
    case variable?(ast) do
      true -> Map.get_lazy(state.names, name(ast), fn -> tuple([:const, ast]) end)
      false -> call(ast, state)
    end
  end

  defp call(ast, state) do
    expanded = Macro.expand(ast, %{state.env | context: :guard})
    if own?(expanded, state.env), do: refuse(ast, state.env, "is a function of the module's own")

    case expanded do
      {:elem, _, [at, index]} when is_integer(index) ->
        tuple([:element, index + 1, expression(at, state)])

      {:elem, _, [at, index]} ->
        tuple([:element, tuple([:+, expression(index, state), 1]), expression(at, state)])

      {:is_map_key, _, [map, key]} ->
        tuple([:is_map_key, expression(key, state), expression(map, state)])

      {{:., _, [:erlang, name]}, _, arguments} when name in @calls ->
        applied(name, arguments, state)

      {kind, _, _} = term when kind in [:{}, :%{}] ->
        expression(term, state)

      {name, _, arguments} when is_atom(name) and is_list(arguments) ->
        case Map.get(@renamed, name, name) do
          allowed when allowed in @calls -> applied(allowed, arguments, state)
          _ -> refuse(ast, state.env, "is not allowed in a match specification")
        end

      same when same == ast ->
        refuse(ast, state.env, "is not allowed in a match specification")

      expanded ->
        expression(expanded, state)
    end
  end

  # Whether it is a call without a module, and not of a function that Elixir has from `:erlang`. A
  # macro's code says itself what it has imported.
  defp own?({name, meta, arguments}, env) when is_atom(name) and is_list(arguments) do
    arity = length(arguments)
    quoted = for {^arity, module} <- Keyword.get(meta, :imports, []), do: module
    imported = for {_, module} <- Macro.Env.lookup_import(env, {name, arity}), do: module
    modules = if quoted == [], do: imported, else: quoted
    is_known = name in [:elem | @calls] or is_map_key(@renamed, name)
    is_known and (modules == [] or modules -- [Kernel, Bitwise] != [])
  end

  defp own?(_, _), do: false

  defp applied(name, arguments, state) do
    tuple([name | Enum.map(arguments, &expression(&1, state))])
  end

  # ---- helpers ----

  defp tuple(elements), do: {:{}, [], elements}

  defp variable?({name, _, context}) when is_atom(name) and is_atom(context) do
    name not in @pseudo_variables
  end

  defp variable?(_), do: false

  defp ignored?({:_, _, _}, _state), do: true

  defp ignored?({name, _, _} = variable, state) do
    String.starts_with?(Atom.to_string(name), "_") and
      not MapSet.member?(state.again, name(variable))
  end

  # The names of the variables that occur more than once.
  defp repeated(asts) do
    {_, counts} =
      Macro.prewalk(asts, %{}, fn ast, counts ->
        {ast, if(variable?(ast), do: Map.update(counts, name(ast), 1, &(&1 + 1)), else: counts)}
      end)

    for {name, count} <- counts, count > 1, into: MapSet.new(), do: name
  end

  defp name({name, meta, context}), do: {name, meta[:counter], context}
  defp name(_), do: nil

  # A literal that has no special meaning in a head or a body.
  defp plain?(atom) when is_atom(atom) do
    atom != :_ and not String.starts_with?(Atom.to_string(atom), "$")
  end

  defp plain?(value), do: is_number(value) or is_binary(value)

  defp refuse(ast, env, why) do
    line =
      case ast do
        {_, meta, _} when is_list(meta) -> Keyword.get(meta, :line, env.line)
        _ -> env.line
      end

    raise CompileError,
      file: env.file,
      line: line,
      description: "Larder.fun2ms: #{Macro.to_string(ast)} #{why}"
  end
end
