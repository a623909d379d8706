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

  test "messages that it doesn't know don't end it, nor the table" do
    pid = start_supervised!({Larder.Table, name: :kept, table: [:public]})
    Larder.insert(:kept, {1, :a})
    assert GenServer.call(pid, :count) == {:error, :unknown_call}
    :ok = GenServer.cast(pid, :count)
    send(pid, :count)
    assert GenServer.call(pid, :count) == {:error, :unknown_call}
    assert Larder.lookup(:kept, 1) == [{1, :a}]
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

  test "a keeper that ends while it is asked" do
    quietly()
    start_supervised!({Larder.Table, name: :ending}, restart: :temporary)
    keeper = Larder.info(:ending, :owner)
    :sys.suspend(keeper)
    task = Task.async(fn -> Larder.Table.claim(:ending) end)
    asked(keeper)
    Process.exit(keeper, :kill)
    assert Task.await(task) == {:error, :not_kept}
  end

  test "a table that is being filled is waited for" do
    test = self()

    fill = fn tab ->
      send(test, {:filling, self()})
      receive do: (:filled -> Larder.insert(tab, {:tea, 1}))
    end

    starter = Task.async(fn -> Larder.Table.start_link(name: :filled, init: fill) end)
    assert_receive {:filling, keeper}
    claimer = Task.async(fn -> {Larder.Table.claim(:filled), Larder.lookup(:filled, :tea)} end)
    # Longer than a call waits unless told otherwise.
    assert Task.yield(claimer, 5_500) == nil
    send(keeper, :filled)
    assert Task.await(claimer) == {{:ok, :filled}, [tea: 1]}
    assert Task.await(starter) == {:ok, keeper}
    GenServer.stop(keeper)
  end

  defp asked(keeper) do
    case Process.info(keeper, :message_queue_len) do
      {_, 0} -> asked(keeper)
      {_, 1} -> :ok
    end
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

  # Makes a table with an heir; the process that owns it.
  defp owned(name, heir) do
    test = self()

    owner =
      spawn_link(fn ->
        Larder.new(name, [:named_table, :public, {:heir, heir, Larder.Table}])
        send(test, :made)
        receive do: (:stop -> :ok)
      end)

    assert_receive :made
    owner
  end

  test "an heir that keeps no table is not asked" do
    server = start_supervised!({Agent, fn -> 1 end})
    owned(:of_a_server, server)
    assert Larder.Table.claim(:of_a_server) == {:error, :not_kept}
    assert Agent.get(server, & &1) == 1

    plain = spawn_link(fn -> receive(do: (:stop -> :ok)) end)
    owned(:of_a_process, plain)
    assert Larder.Table.claim(:of_a_process) == {:error, :not_kept}
    assert Process.info(plain, :message_queue_len) == {:message_queue_len, 0}

    # Nor does a keeper give away what it has not made.
    keeper = start_supervised!({Larder.Table, name: :its_own})
    owner = owned(:of_a_keeper, keeper)
    assert Larder.Table.claim(:of_a_keeper) == {:error, :not_kept}
    ref = Process.monitor(owner)
    send(owner, :stop)
    assert_receive {:DOWN, ^ref, _, _, _}
    assert Larder.Table.claim(:of_a_keeper) == {:error, :not_kept}
    assert Larder.Table.claim(:its_own) == {:ok, :its_own}

    # One that has ended.
    {gone, ref} = spawn_monitor(fn -> receive(do: (:stop -> :ok)) end)
    owned(:of_nobody, gone)
    send(gone, :stop)
    assert_receive {:DOWN, ^ref, _, _, _}
    assert Larder.Table.claim(:of_nobody) == {:error, :not_kept}
  end

  test "who claims a table may rename or delete it" do
    keeper = start_supervised!({Larder.Table, name: :old_name})
    test = self()

    {claimer, ref} =
      spawn_monitor(fn ->
        {:ok, tab} = Larder.Table.claim(:old_name)
        Larder.rename(tab, :new_name)
        send(test, :renamed)
        receive do: (:stop -> :ok)
      end)

    assert_receive :renamed
    assert Larder.Table.claim(:old_name) == {:error, :not_kept}
    assert Larder.Table.claim(:new_name) == {:error, {:owned, claimer}}
    # The old name is free for a table of another.
    owned(:old_name, keeper)
    assert Larder.Table.claim(:old_name) == {:error, :not_kept}
    send(claimer, :stop)
    assert_receive {:DOWN, ^ref, _, _, _}
    assert Larder.info(:new_name, :owner) == keeper
    assert Larder.Table.claim(:new_name) == {:ok, :new_name}
    refute_received {:"ETS-TRANSFER", _, _, _}
    Larder.delete(:new_name)
    assert Larder.Table.claim(:new_name) == {:error, :not_kept}
    assert Process.alive?(keeper)
  end

  test "errors are described" do
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
