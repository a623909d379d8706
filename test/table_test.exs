defmodule Larder.TableTest do
  @moduledoc "Tables in a supervision tree: who keeps one, who claims it, and what becomes of it."
  use ExUnit.Case
  doctest Larder.Table

  defmodule Stock do
    use Larder.Table, table: [:ordered_set], init: &Larder.insert(&1, {:tea, 1})
  end

  defmodule Server do
    use GenServer
    def start_link(name), do: GenServer.start_link(__MODULE__, name, name: __MODULE__)
    @impl true
    def init(name), do: Larder.Table.claim(name)
    @impl true
    def handle_call(:count, _, tab), do: {:reply, Larder.update_counter(tab, :n, 1, {:n, 0}), tab}
    def handle_call(:messages, _, tab), do: {:reply, Process.info(self(), :messages), tab}
  end

  test "a child keeps a table, by its options" do
    start_supervised!({Larder.Table, name: :kept, table: [:bag, :public, keypos: 2]})
    assert Larder.info(:kept, :type) == :bag
    assert Larder.info(:kept, :keypos) == 2
    assert Larder.insert(:kept, {1, :a})
    stop_supervised!(:kept)
    assert Larder.whereis(:kept) == :undefined
  end

  test "a server claims its table again when it starts again, with all rows" do
    quietly()
    start_supervised!({Larder.Table, name: :claimed})
    first = start_supervised!({Server, :claimed})
    assert Larder.info(:claimed, :owner) == first
    assert GenServer.call(Server, :count) == 1
    # The message of the transfer is not left to the server.
    assert GenServer.call(Server, :messages) == {:messages, []}

    for n <- 2..50 do
      pid = Process.whereis(Server)
      ref = Process.monitor(pid)
      Process.exit(pid, :kill)
      assert_receive {:DOWN, ^ref, _, _, _}
      assert counted() == n
      assert Larder.info(:claimed, :owner) == Process.whereis(Server)
    end
  end

  # The supervisor's reports.
  defp quietly do
    %{level: level} = :logger.get_primary_config()
    :logger.set_primary_config(:level, :none)
    on_exit(fn -> :logger.set_primary_config(:level, level) end)
  end

  defp counted do
    GenServer.call(Server, :count)
  catch
    :exit, _ ->
      Process.sleep(1)
      counted()
  end

  test "only one process has it" do
    start_supervised!({Larder.Table, name: :wanted, table: [:protected]})
    keeper = Larder.info(:wanted, :owner)
    test = self()

    other =
      spawn(fn ->
        send(test, Larder.Table.claim(:wanted))
        receive do: (:stop -> :ok)
      end)

    assert_receive {:ok, :wanted}
    assert Larder.Table.claim(:wanted) == {:error, {:owned, other}}
    assert_raise ArgumentError, fn -> Larder.insert(:wanted, {1}) end
    ref = Process.monitor(other)
    send(other, :stop)
    assert_receive {:DOWN, ^ref, _, _, _}
    assert Larder.info(:wanted, :owner) == keeper
    assert Larder.Table.claim(:wanted) == {:ok, :wanted}
    # Once more changes nothing.
    assert Larder.Table.claim(:wanted) == {:ok, :wanted}
    assert Larder.insert(:wanted, {1})
    refute_received {:"ETS-TRANSFER", _, _, _}
  end

  test "of many that ask at once one gets it" do
    start_supervised!({Larder.Table, name: :contested})
    test = self()

    pids =
      for _ <- 1..20 do
        spawn_link(fn ->
          send(test, {self(), Larder.Table.claim(:contested)})
          receive do: (:stop -> :ok)
        end)
      end

    answers = for pid <- pids, do: receive(do: ({^pid, answer} -> {pid, answer}))
    assert [{owner, _}] = Enum.filter(answers, &match?({_, {:ok, :contested}}, &1))

    assert Enum.all?(answers, fn {pid, answer} ->
             pid == owner or answer == {:error, {:owned, owner}}
           end)

    for pid <- pids, do: send(pid, :stop)
  end

  test "a module is a table" do
    start_supervised!(Stock)
    assert Stock.table() == Stock
    assert Larder.lookup(Stock, :tea) == [tea: 1]
    assert Stock.claim() == {:ok, Stock}
    assert Larder.insert(Stock, {:rice, 2})
    assert Stock.child_spec([]).id == Stock
    start_supervised!({Stock, name: :second, id: :other, table: [:bag]})
    assert Larder.info(:second, :type) == :bag
    stop_supervised!(:other)
  end

  test "what is no such table" do
    tab = Larder.new(:alone, [:named_table])
    assert Larder.Table.claim(:alone) == {:ok, tab}
    assert Larder.Table.claim(:no_such_table) == {:error, :not_kept}

    Task.async(fn ->
      assert Larder.Table.claim(:alone) == {:error, :not_kept}
    end)
    |> Task.await()
  end

  test "what is wrong is said" do
    for {options, said} <- [
          {[], ~r/needs a :name/},
          {[name: "stock"], ~r/an atom, not "stock"/},
          {[name: :t, tables: []], ~r/no options \[:tables\]/},
          {[name: :t, table: :bag], ~r/list of options/},
          {[name: :t, table: [:private]], ~r/:private/},
          {[name: :t, table: [{:heir, self(), 1}]], ~r/heir/},
          {[name: :t, init: 1], ~r/:init/},
          {:t, ~r/keyword list/}
        ] do
      assert_raise ArgumentError, said, fn -> Larder.Table.start_link(options) end
      assert_raise ArgumentError, said, fn -> Larder.Table.child_spec(options) end
    end

    quietly()
    Process.flag(:trap_exit, true)
    assert {:error, {%ArgumentError{}, _}} = Larder.Table.start_link(name: :t, table: [:nonsense])
    start_supervised!({Larder.Table, name: :taken})
    assert {:error, {%ArgumentError{}, _}} = Larder.Table.start_link(name: :taken)

    assert {:error, {%RuntimeError{}, _}} =
             Larder.Table.start_link(name: :t, init: fn _ -> raise "no" end)

    # A process that fails to start may still be ending when its starter hears of it.
    for _ <- 1..3, do: assert_receive({:EXIT, _, _})
    assert Larder.whereis(:t) == :undefined
  end
end
