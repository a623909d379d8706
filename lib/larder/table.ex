defmodule Larder.Table do
  @moduledoc """
  A table in a supervision tree: a child that makes it, owns it, and gets it back.

      children = [{Larder.Table, name: :stock, table: [:ordered_set, :public]}]
      Supervisor.start_link(children, strategy: :rest_for_one)

  Or as a module of one's own, whose name is the table's:

      defmodule Shop.Stock do
        use Larder.Table, table: [:ordered_set]
      end

      children = [Shop.Stock, Shop.Warehouse]

  The child does nothing but keep the table, so it doesn't fail. A server that works on the table
  may come and go:

    * With `:public` everybody writes, and the child owns the table all the time.
    * With `:protected` (the default) a server calls `claim/1` when it starts, and owns the table
      from then on. When it ends, for whatever reason, the child is the table's heir. The server
      claims it again when it starts again, and finds all rows.

  The child comes before the servers that claim its table, under `:rest_for_one`: if it is killed
  itself, they start again after it, with an empty table.

  ## Options

    * `:name`: the table's name, an atom. In a module with `use`, it is the module unless given.
    * `:table`: options of `Larder.new/2`. The table is a named one always, and the heir is the
      child.
    * `:init`: a function of the table, which fills it. The child's start waits for it.
    * `:id`: the child's id in its supervisor, which is the name unless given.

  ## Examples

      iex> {:ok, _} = Larder.Table.start_link(name: :fruit, table: [:ordered_set])
      iex> worker = Task.async(fn ->
      ...>   {:ok, tab} = Larder.Table.claim(:fruit)
      ...>   Larder.insert(tab, {:apple, 3})
      ...> end)
      iex> Task.await(worker)
      true
      iex> Larder.lookup(:fruit, :apple)
      [apple: 3]
      iex> Larder.Table.claim(:fruit)
      {:ok, :fruit}
  """

  use GenServer

  @typedoc "An option; see above."
  @type option ::
          {:name, atom()}
          | {:table, [term()]}
          | {:init, (atom() -> term())}
          | {:id, term()}

  @doc """
  Makes a module that is a table: it has `child_spec/1`, `start_link/1`, `table/0` (its name) and
  `claim/0`. Options given to `child_spec/1`, as in `{Shop.Stock, table: [:public]}`, come before
  those of `use`.
  """
  defmacro __using__(options) do
    quote do
      @doc "The child of a supervisor that keeps the table; see `Larder.Table`."
      @spec child_spec([Larder.Table.option()]) :: Supervisor.child_spec()
      def child_spec(options), do: Larder.Table.child_spec(larder_table_options(options))

      @doc "Starts the process that keeps the table."
      @spec start_link() :: GenServer.on_start()
      @spec start_link([Larder.Table.option()]) :: GenServer.on_start()
      def start_link(options \\ []),
        do: Larder.Table.start_link(larder_table_options(options))

      @doc "The table's name."
      @spec table() :: atom()
      def table, do: Keyword.fetch!(larder_table_options([]), :name)

      @doc "Makes the calling process the table's owner; see `Larder.Table.claim/1`."
      @spec claim() :: {:ok, atom()} | {:error, term()}
      def claim, do: Larder.Table.claim(table())

      defp larder_table_options(options),
        do: [name: __MODULE__] |> Keyword.merge(unquote(options)) |> Keyword.merge(options)
    end
  end

  @doc "The child of a supervisor that keeps a table."
  @spec child_spec([option()]) :: Supervisor.child_spec()
  def child_spec(options) do
    options = validate!(options)
    %{id: Keyword.get(options, :id, options[:name]), start: {__MODULE__, :start_link, [options]}}
  end

  @doc """
  Starts the process that keeps a table, which is there when this returns.

  An `ArgumentError` for options that are none. `{:error, {%ArgumentError{}, _}}` if the table can't
  be made: one of that name is there, or its options are wrong.
  """
  @spec start_link([option()]) :: GenServer.on_start()
  def start_link(options), do: GenServer.start_link(__MODULE__, validate!(options))

  @doc """
  Makes the calling process the owner of a table that is kept, until it ends.

  `{:error, {:owned, pid}}` if another process has claimed it, and `{:error, :not_kept}` if there is
  no such table, or none that is kept so. A table that was renamed is claimed by its new name. While
  `:init` fills the table, the call waits.
  """
  @spec claim(name :: atom()) :: {:ok, atom()} | {:error, {:owned, pid()} | :not_kept}
  def claim(name) when is_atom(name) do
    case Larder.info(name, :owner) do
      owner when owner == self() -> {:ok, name}
      :undefined -> {:error, :not_kept}
      _ -> claim_from(name, Larder.info(name, :heir))
    end
  end

  # Only a process of this module is asked. Another heir may not know the call, and fail by it.
  defp claim_from(name, heir) do
    if keeper?(heir), do: ask(heir, name), else: {:error, :not_kept}
  end

  # `:proc_lib` notes in each GenServer the function with which it has begun. An heir is a process
  # of this node, so this sends it no message.
  defp keeper?(heir) do
    is_pid(heir) and :proc_lib.translate_initial_call(heir) == {__MODULE__, :init, 1}
  end

  # A keeper answers at once, but while its `:init` fills the table. Who no longer waited would be
  # given the table all the same.
  defp ask(keeper, name) do
    case GenServer.call(keeper, {__MODULE__, :claim, name, self()}, :infinity) do
      :given -> {:ok, await_transfer(keeper)}
      {:error, _} = error -> error
    end
  catch
    # The keeper has ended, before the call or during it, and its table with it.
    :exit, {_, {GenServer, :call, _}} -> {:error, :not_kept}
  end

  # Receives the message about the transfer, so that the caller need not handle it. A keeper has
  # one table. Its name is that of the moment when it was given away.
  defp await_transfer(keeper) do
    receive do
      {:"ETS-TRANSFER", name, ^keeper, __MODULE__} -> name
    end
  end

  # ---- options ----

  defp validate!(options) do
    unless Keyword.keyword?(options) do
      raise ArgumentError, "the options of Larder.Table are a keyword list, not #{inspect(options)}"
    end

    case Keyword.keys(options) -- [:name, :table, :init, :id] do
      [] -> Enum.each([:name, :table, :init], &validate!(&1, options))
      unknown -> raise ArgumentError, "Larder.Table has no options #{inspect(unknown)}"
    end

    options
  end

  defp validate!(:name, options) do
    name = options[:name]

    unless is_atom(name) and name != nil do
      raise ArgumentError, "a table of Larder.Table needs a :name, an atom, not #{inspect(name)}"
    end
  end

  defp validate!(:table, options) do
    table = Keyword.get(options, :table, [])

    unless is_list(table) do
      raise ArgumentError, ":table is a list of options of Larder.new/2, not #{inspect(table)}"
    end

    if Enum.any?(table, &(match?({:heir, _, _}, &1) or match?({:heir, _}, &1))) do
      raise ArgumentError, "the heir of a table of Larder.Table is the process that keeps it"
    end

    if :private in table do
      raise ArgumentError, "a table of Larder.Table can't be :private: who claims it must find it"
    end
  end

  defp validate!(:init, options) do
    init = Keyword.get(options, :init, & &1)

    unless is_function(init, 1) do
      raise ArgumentError, ":init is a function of the table, not #{inspect(init)}"
    end
  end

  # ---- the process that keeps the table ----

  # Its state is the table's id: whoever owns the table may rename it.
  @impl true
  def init(options) do
    name = Keyword.fetch!(options, :name)
    ^name = Larder.new(name, [:named_table | Keyword.get(options, :table, [])])
    tab = Larder.whereis(name)
    Larder.setopts(tab, {:heir, self(), __MODULE__})
    Keyword.get(options, :init, & &1).(name)
    {:ok, tab}
  rescue
    error -> {:stop, {error, __STACKTRACE__}}
  end

  # The name may be that of another table, whose owner has made this process its heir.
  @impl true
  def handle_call({__MODULE__, :claim, name, pid}, _from, tab) do
    case Larder.whereis(name) == tab and Larder.info(tab, :owner) do
      none when none in [false, :undefined] -> {:reply, {:error, :not_kept}, tab}
      owner when owner == self() -> {:reply, give(tab, pid), tab}
      owner -> {:reply, {:error, {:owned, owner}}, tab}
    end
  end

  # Whatever else comes doesn't end it: the table would go, too.
  def handle_call(_request, _from, tab), do: {:reply, {:error, :unknown_call}, tab}

  @impl true
  def handle_cast(_request, tab), do: {:noreply, tab}

  # The claiming process may have ended.
  defp give(tab, pid) do
    Larder.give_away(tab, pid, __MODULE__)
    :given
  rescue
    ArgumentError -> {:error, :not_kept}
  end

  # The owner has ended, or what else comes.
  @impl true
  def handle_info(_message, tab), do: {:noreply, tab}
end
