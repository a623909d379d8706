defmodule LarderRegistryTest do
  @moduledoc """
  Elixir's Registry as installed, moved by `larder_move` in a copy. The same program runs in a node
  on the original and in one on the moved modules, and has to print the same.
  """
  use ExUnit.Case, async: true

  # Prints a line for each call, without pids.
  @program ~S"""
  defmodule Worker do
    # Registers keys in a process of its own, which answers requests until it is told to stop.
    def start(registry, pairs) do
      parent = self()

      pid =
        spawn(fn ->
          for {key, value} <- pairs, do: {:ok, _} = Registry.register(registry, key, value)
          send(parent, {:ready, self()})
          loop(registry)
        end)

      receive(do: ({:ready, ^pid} -> pid))
    end

    def ask(pid, fun) do
      send(pid, {:run, self(), fun})
      receive(do: ({:ran, ^pid, result} -> result))
    end

    # Entries of an ended process go a moment later.
    def stop(pid, registry) do
      Process.exit(pid, :kill)
      gone(pid, registry, 1000)
    end

    defp gone(pid, registry, looks) do
      if Registry.count_select(registry, [{{:_, pid, :_}, [], [true]}]) == 0 do
        :ok
      else
        if looks == 0, do: raise("entries of a process that has ended remain")
        Process.sleep(10)
        gone(pid, registry, looks - 1)
      end
    end

    defp loop(registry) do
      receive do
        {:run, from, fun} ->
          send(from, {:ran, self(), fun.(registry)})
          loop(registry)
      end
    end
  end

  defmodule Program do
    def say(what, result), do: IO.puts("#{what}: #{inspect(result, limit: :infinity)}")

    # Which worker a pid is.
    def names(pids, workers),
      do: pids |> Enum.map(&Enum.find_index(workers, fn w -> w == &1 end)) |> Enum.sort()

    # What the listener was sent.
    def heard do
      receive do
        {what, _, key, _} -> [{what, key} | heard()]
        {what, _, key, _, value} -> [{what, key, value} | heard()]
      after
        0 -> []
      end
    end

    def run(keys, partitions) do
      registry = :"registry_#{keys}_#{partitions}"
      Process.register(self(), :listener)

      {:ok, supervisor} =
        Registry.start_link(
          keys: keys,
          name: registry,
          partitions: partitions,
          listeners: [:listener],
          meta: [a: 1]
        )

      say("start", {keys, partitions})

      say(
        "meta",
        {Registry.meta(registry, :a), Registry.put_meta(registry, :b, 2), Registry.meta(registry, :b),
         Registry.delete_meta(registry, :b), Registry.meta(registry, :b)}
      )

      workers =
        for n <- 0..4 do
          shared = if keys == :duplicate, do: [{"topic", n}, {"topic", n * 10}], else: []
          Worker.start(registry, [{{:own, n}, %{n: n}}, {n, [n]}] ++ shared)
        end

      lookup = fn key ->
        entries = Registry.lookup(registry, key)
        {Enum.sort(Enum.map(entries, &elem(&1, 1))), names(Enum.map(entries, &elem(&1, 0)), workers)}
      end

      say("count", Registry.count(registry))
      say("lookup", for(key <- [{:own, 0}, {:own, 4}, 3, 3.0, "topic", :none], do: lookup.(key)))
      say("keys", for(w <- workers, do: Enum.sort(Registry.keys(registry, w))))
      say("values", for(w <- workers, do: Enum.sort(Registry.values(registry, "topic", w))))

      say(
        "again",
        Worker.ask(hd(workers), fn r ->
          case Registry.register(r, {:own, 1}, :again) do
            {:ok, _} -> Registry.unregister(r, {:own, 1})
            {:error, {:already_registered, pid}} -> {:already, names([pid], workers)}
          end
        end)
      )

      dispatched = :ets.new(:dispatched, [:public, :bag])

      for options <- [[], [parallel: true]], key <- [{:own, 2}, "topic", :none] do
        fun = fn entries ->
          for {pid, value} <- entries, do: :ets.insert(dispatched, {key, pid, value})
        end

        if keys == :duplicate or options == [] do
          say("dispatch", {options, key, Registry.dispatch(registry, key, fun, options)})
        end
      end

      say(
        "dispatched",
        Enum.sort(
          for({key, pid, v} <- :ets.tab2list(dispatched), do: {key, names([pid], workers), v})
        )
      )

      key_and_value = [{{:"$1", :_, :"$2"}, [], [{{:"$1", :"$2"}}]}]
      maps = [{{{:own, :"$1"}, :_, %{n: :"$2"}}, [{:>, :"$2", 1}], [:"$1"]}]
      of_worker = [{{:"$1", Enum.at(workers, 2), :_}, [], [:"$1"]}]

      say(
        "select",
        for(spec <- [key_and_value, maps, of_worker], do: Enum.sort(Registry.select(registry, spec)))
      )

      say(
        "count_select",
        for(
          spec <- [[{{:_, :_, :_}, [], [true]}], [{{{:own, :_}, :_, :_}, [], [true]}]],
          do: Registry.count_select(registry, spec)
        )
      )

      match = fn key, pattern, guards ->
        registry |> Registry.match(key, pattern, guards) |> Enum.map(&elem(&1, 1)) |> Enum.sort()
      end

      say(
        "match",
        {match.({:own, 1}, %{n: :_}, []), match.("topic", :"$1", [{:>, :"$1", 3}]),
         match.(3, [3], [])}
      )

      say(
        "count_match",
        {Registry.count_match(registry, "topic", :"$1", [{:<, :"$1", 10}]),
         Registry.count_match(registry, {:own, 1}, :_)}
      )

      if keys == :unique do
        say(
          "update",
          Worker.ask(hd(workers), fn r ->
            {Registry.update_value(r, 0, &[:more | &1]), Registry.update_value(r, 1, & &1)}
          end)
        )

        say(
          "via",
          {names([GenServer.whereis({:via, Registry, {registry, 4}})], workers),
           GenServer.whereis({:via, Registry, {registry, :none}})}
        )
      end

      say(
        "unregister_match",
        Worker.ask(hd(workers), fn r ->
          {Registry.unregister_match(r, "topic", 0), Registry.unregister_match(r, 0, :other),
           Registry.unregister(r, {:own, 0}), Registry.unregister(r, :none)}
        end)
      )

      say("left", {Registry.count(registry), lookup.("topic"), lookup.(0), lookup.({:own, 0})})

      own = length(Registry.keys(registry, Enum.at(workers, 3)))
      say("killed", Worker.stop(Enum.at(workers, 3), registry))
      say("after", {Registry.count(registry), lookup.({:own, 3}), lookup.("topic"), own})
      again = Worker.start(registry, [{{:own, 3}, :new}])

      say(
        "taken over",
        {Registry.lookup(registry, {:own, 3}) == [{again, :new}], Registry.count(registry)}
      )

      # Many processes register, and die at once.
      crowd = for n <- 1..300, do: Worker.start(registry, [{{:crowd, n}, n}])
      say("crowd", Registry.count(registry))
      Enum.each(crowd, &Process.exit(&1, :kill))
      Enum.each(crowd, &Worker.stop(&1, registry))

      say(
        "crowd is gone",
        {Registry.count(registry),
         Registry.count_select(registry, [{{{:crowd, :_}, :_, :_}, [], [true]}])}
      )

      Supervisor.stop(supervisor)

      say(
        "stopped",
        try do
          Registry.count(registry)
        rescue
          e in ArgumentError -> Exception.message(e) =~ "unknown registry"
        end
      )

      say("heard", Enum.sort(heard()))
      Process.unregister(:listener)
    end
  end

  for keys <- [:unique, :duplicate], partitions <- [1, 4], do: Program.run(keys, partitions)
  {:ok, _} = Registry.start_link(keys: :unique, name: Where, partitions: 4)
  IO.puts(:stderr, inspect(:ets.whereis(Where) == :undefined))
  """

  @tag timeout: 120_000
  test "the moved Registry does what the original does" do
    folder = Path.join(System.tmp_dir!(), "larder_registry_#{System.pid()}")
    on_exit(fn -> File.rm_rf!(folder) end)
    File.mkdir_p!(folder)
    program = Path.join(folder, "program.exs")
    File.write!(program, @program)

    ebin = Application.app_dir(:elixir, "ebin")
    beams = Path.wildcard(Path.join(ebin, "Elixir.Registry*.beam"))
    for beam <- beams, do: File.cp!(beam, Path.join(folder, Path.basename(beam)))

    {original, original_says} = run(folder, program)
    {:ok, %{moves: [_ | _], left: [], warnings: []}} = :larder_move.move(to_charlist(folder))
    {moved, moved_says} = run(folder, program)

    assert {original_says, moved_says} == {"false", "true"}
    assert moved == original
    # Both sides have printed everything, and something that is known.
    assert length(moved) > 80
    assert "count: 10" in moved and "count: 20" in moved
    assert "crowd is gone: {8, 0}" in moved
  end

  # What the program prints, and what it says of its tables.
  defp run(folder, program) do
    larder = Path.dirname(to_string(:code.which(:larder)))
    said = Path.join(folder, "said")
    line = ~s(exec elixir -pa "$1" -pa "$2" "$3" 2> "$4")
    {out, status} = System.cmd("sh", ["-c", line, "sh", larder, folder, program, said])
    says = File.read!(said)
    assert {status, says} == {0, says}, says
    {String.split(out, "\n", trim: true), String.trim(says)}
  end
end
