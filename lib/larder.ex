defmodule Larder do
  @moduledoc """
  Larder from Elixir: in-memory tables of tuples with the interface of `:ets`.

  Every function here is that of the Erlang module `:larder`, under the same
  name, with the same arguments, results and errors as in `:ets`; the module
  adds documentation and completion in the shell, and costs nothing. To move a
  program over, write `Larder` or `:larder` where it says `:ets`. To be able to
  switch back, name the module once:

      @tables :larder
      @tables.insert(tab, {:key, 1})

  A module that says `:ets` uses Larder when it is compiled with

      @compile {:parse_transform, :larder_transform}

  which Elixir 1.14 supports and calls deprecated. A match specification is
  written out, or made of a function by the macro `fun2ms/1`.

  ## Errors

  Every function that takes a table raises an `ArgumentError` if there is no such table, or if the
  calling process may not read it (a `:private` table of another process) or write to it (a
  `:protected` one). The message names the argument that is wrong, and why. What else a function
  raises stands with it. A write that would exceed a limit of a table that evicts nothing raises a
  `SystemLimitError`.

  ## Costs

  With n rows, an operation on one key takes expected O(1), in an `:ordered_set` O(log n). No call
  holds a scheduler for much longer than half a millisecond. What each function costs, and what
  other processes may see meanwhile, is in the documentation of the Erlang function:
  `h :larder.insert`.

  ## Examples

      iex> tab = Larder.new(:pantry, [:ordered_set, :public])
      iex> Larder.insert(tab, [{:flour, 3}, {:salt, 1}, {:sugar, 2}])
      true
      iex> Larder.lookup(tab, :salt)
      [salt: 1]
      iex> Larder.select(tab, [{{:"$1", :"$2"}, [{:>=, :"$2", 2}], [:"$1"]}])
      [:flour, :sugar]
      iex> Larder.update_counter(tab, :salt, 4)
      5
      iex> Larder.delete(tab)
      true
  """

  @typedoc "The name or id of a table, as returned by `new/2`."
  @type table :: atom() | reference()

  @typedoc "An option of `new/2`, which says what each means."
  @type option ::
          :set
          | :ordered_set
          | :bag
          | :duplicate_bag
          | :public
          | :protected
          | :private
          | :named_table
          | :compressed
          | {:keypos, pos_integer()}
          | heir()
          | {:write_concurrency, boolean() | :auto}
          | {:read_concurrency, boolean()}
          | {:decentralized_counters, boolean()}
          | {:index, [index()]}
          | {:structure, structure()}
          | bound()

  @typedoc "Who owns the table when its owner has ended; with data it is sent a message."
  @type heir :: {:heir, pid(), term()} | {:heir, pid()} | {:heir, :none}

  @typedoc "How long rows live, how many there may be, and which go when there are more."
  @type bound ::
          {:ttl, time()}
          | {:idle, time()}
          | {:max_size, pos_integer() | :infinity}
          | {:max_memory, pos_integer() | :infinity}
          | {:evict, :tinylfu | :lru | :sieve | :none}

  @typedoc "Milliseconds to live; with `:infinity` a row doesn't expire."
  @type time :: non_neg_integer() | :infinity

  @typedoc "The data structure of a table; see `structures/0`."
  @type structure :: atom() | {atom(), [{atom(), integer() | atom()}]}

  @typedoc "A counter: a position, or a key of a map there, with what it begins with."
  @type counter :: pos_integer() | {pos_integer(), term()} | {pos_integer(), term(), integer()}

  @typedoc "An operation of `update_counter/3`: an increment, and where it starts again."
  @type update_op ::
          integer() | {counter(), integer()} | {counter(), integer(), integer(), integer()}

  @typedoc "An option of `tab2file/3`."
  @type file_option ::
          {:extended_info, [:md5sum | :object_count]}
          | {:sync, boolean()}
          | {:format, :larder | :ets}

  @typedoc "How far a subscriber may fall behind; see `subscribe/3`."
  @type feed_options :: %{optional(:limit) => pos_integer(), optional(:mailbox) => pos_integer()}

  @typedoc "How often, and for how long, a function is called again; see `transaction/3`."
  @type transaction_options :: %{
          optional(:retries) => non_neg_integer() | :infinity,
          optional(:timeout) => timeout()
        }

  @typedoc "A change of a table, or a condition; see `commit/1`."
  @type operation ::
          {:check, table(), term(), [tuple()]}
          | {:insert | :insert_new, table(), tuple() | [tuple()]}
          | {:insert, table(), tuple() | [tuple()], %{ttl: time()}}
          | {:expire, table(), term(), time()}
          | {:delete, table(), term()}
          | {:delete_object, table(), tuple()}
          | {:update_counter | :update_element, table(), term(), term()}

  @typedoc "An item of `memory/0`."
  @type memory_item :: :total | :tables | :indexes | :snapshots | :waiting | :allocator

  @typedoc "A match specification: clauses of a head, guards and a body."
  @type match_spec ::
          [{tuple() | atom(), [term()], [term()]}]
          | {prepared :: reference(), values :: [term()]}

  @typedoc "A match pattern: a tuple with `:_` and `:\"$1\"`, `:\"$2\"` ... as variables, or `:_`."
  @type match_pattern :: atom() | tuple()

  @typedoc "The continuation of a select, match or match_object with a limit."
  @type continuation :: term()

  @typedoc "A secondary index: its name, a position or an expression, and options."
  @type index :: {atom(), pos_integer() | term(), [:unique | :ordered | :each]}

  @typedoc "The continuation of an index_select with a limit."
  @type index_continuation :: term()

  @typedoc "How a match specification is answered; see `explain/2`."
  @type plan :: %{
          plan: :nothing | :key | :range | :scan | {:index, atom()},
          rows: non_neg_integer() | :unknown,
          indexes: %{atom() => non_neg_integer()}
        }

  # ---- tables ----

  @doc """
  Makes a table, owned by the calling process. A name that another named table has is an
  `ArgumentError`, and so is an option that is none.

  Options:

    * `:set` (the default), `:ordered_set`, `:bag` or `:duplicate_bag`
    * `:public`, `:protected` (the default) or `:private`
    * `:named_table`
    * `{:keypos, n}`, counted from 1
    * `{:heir, pid, data}`, `{:heir, pid}` or `{:heir, :none}` (the default)
    * `:compressed`
    * `{:write_concurrency, mode}`, `{:read_concurrency, bool}`, `{:decentralized_counters, bool}`:
      any number of processes may use a table without them. With `:auto` the number of rows is kept
      in 32 counters, which takes 4 KiB for the table
    * `{:index, [index]}`: secondary indexes, see `add_index/2`
    * `{:ttl, ms}`: a row lives for so long after it was written; see `insert/3`
    * `{:idle, ms}`: a row lives for so long after it was written or looked up by its key
    * `{:max_size, rows}`, `{:max_memory, bytes}`: the table has so much at most
    * `{:evict, policy}`: what goes when there is more: `:tinylfu`, `:lru`, `:sieve`, or with
      `:none` (the default) nothing, and writes fail
    * `{:structure, name}` or `{:structure, {name, options}}`, see `structures/0`

  Bounds (`:ttl`, `:idle`, `:max_size`, `:max_memory`, `:evict`) are for a `:set` or an
  `:ordered_set`. Without one of them rows stay until they are deleted.

  For example:

      iex> tab = Larder.new(:pantry, [:ordered_set, :public, {:keypos, 2}])
      iex> {Larder.info(tab, :type), Larder.info(tab, :protection), Larder.info(tab, :keypos)}
      {:ordered_set, :public, 2}
      iex> Larder.new(:pantry, [:named_table])
      :pantry
  """
  @spec new(atom(), [option()]) :: table()
  defdelegate new(name, options), to: :larder

  @doc """
  All tables of the node.

      iex> tab = Larder.new(:pantry, [])
      iex> tab in Larder.all()
      true
  """
  @spec all() :: [table()]
  defdelegate all(), to: :larder

  @doc """
  The structures that a table can be built on.

  Of each: its name, the types of table that it carries, its options (the values they take, the
  defaults, what they do), and when to use it.

      iex> names = for structure <- Larder.structures(), do: structure.name
      iex> :default in names
      true
  """
  @spec structures() :: [map()]
  defdelegate structures(), to: :larder

  @doc """
  Deletes a table. Takes the same short time whatever the table's size.

      iex> tab = Larder.new(:pantry, [])
      iex> Larder.delete(tab)
      true
      iex> Larder.info(tab)
      :undefined
  """
  @spec delete(table()) :: true
  defdelegate delete(tab), to: :larder

  @doc """
  Deletes all objects, atomically.

      iex> tab = Larder.new(:pantry, [])
      iex> Larder.insert(tab, [{:salt, 1}, {:flour, 3}])
      iex> Larder.delete_all_objects(tab)
      true
      iex> Larder.info(tab, :size)
      0
  """
  @spec delete_all_objects(table()) :: true
  defdelegate delete_all_objects(tab), to: :larder

  @doc """
  Gives a named table another name.

      iex> Larder.new(:cellar, [:named_table])
      iex> Larder.rename(:cellar, :attic)
      :attic
      iex> {Larder.whereis(:cellar), is_reference(Larder.whereis(:attic))}
      {:undefined, true}
  """
  @spec rename(table(), atom()) :: atom()
  defdelegate rename(tab, name), to: :larder

  @doc """
  The id of a named table, or `:undefined`.

      iex> Larder.new(:cellar, [:named_table])
      iex> Larder.insert(Larder.whereis(:cellar), {:salt, 1})
      iex> Larder.lookup(:cellar, :salt)
      [salt: 1]
  """
  @spec whereis(atom()) :: reference() | :undefined
  defdelegate whereis(name), to: :larder

  @doc """
  Information about a table, as a keyword list, or `:undefined` if there is no such table.

      iex> tab = Larder.new(:pantry, [:bag])
      iex> Larder.info(tab)[:type]
      :bag
  """
  @spec info(table()) :: keyword() | :undefined
  defdelegate info(tab), to: :larder

  @doc """
  One item of information about a table: one of `info/1`, or `:fixed`, `:safe_fixed`,
  `:safe_fixed_monotonic_time`, `:structure`, `:stats`, `:binary`, `:bounds`, `:indexes`,
  `:snapshots`, `:snapshot_memory` (in bytes) or `:snapshot`. `:memory` is in words.

  Any process may call it. Returns `:undefined` if there is no such table.

      iex> tab = Larder.new(:pantry, [:ordered_set])
      iex> Larder.insert(tab, [{:flour, 3}, {:salt, 1}])
      iex> {Larder.info(tab, :size), Larder.info(tab, :type)}
      {2, :ordered_set}
  """
  @spec info(table(), atom()) :: term()
  defdelegate info(tab, item), to: :larder

  @doc """
  Changes an option: `{:heir, pid, data}` or `{:heir, :none}`, `{:protection, :public}` and its
  like, `{:ttl, ms}` or `{:idle, ms}` of a table that was made with a bound, and `{:max_size, n}`,
  `{:max_memory, bytes}` or `{:evict, policy}` of one that was made with one of these. Only the
  owner may.

      iex> tab = Larder.new(:pantry, [{:max_size, 2}, {:evict, :lru}])
      iex> Larder.setopts(tab, {:max_size, 1})
      true
      iex> Larder.insert(tab, [{:salt, 1}, {:flour, 3}])
      iex> Larder.info(tab, :size)
      1
  """
  @spec setopts(table(), setting | [setting]) :: true
        when setting: heir() | {:protection, :public | :protected | :private} | bound()
  defdelegate setopts(tab, options), to: :larder

  @doc """
  Makes another process the owner; it is sent `{:"ETS-TRANSFER", tab, from, data}`.

      iex> tab = Larder.new(:pantry, [])
      iex> heir = Task.async(fn ->
      ...>   receive do {:"ETS-TRANSFER", tab, _from, :yours} -> Larder.insert(tab, {:salt, 1}) end
      ...> end)
      iex> Larder.give_away(tab, heir.pid, :yours)
      true
      iex> Task.await(heir)
      true
  """
  @spec give_away(table(), pid(), term()) :: true
  defdelegate give_away(tab, pid, data), to: :larder

  @doc """
  Fixes a table for a traversal by `first/1` and `next/2`, or releases it.

      iex> tab = Larder.new(:pantry, [])
      iex> Larder.safe_fixtable(tab, true)
      true
      iex> Larder.info(tab, :fixed)
      true
      iex> Larder.safe_fixtable(tab, false)
      true
  """
  @spec safe_fixtable(table(), boolean()) :: true
  defdelegate safe_fixtable(tab, fix), to: :larder

  # ---- where the memory is ----

  @doc """
  Returns how much memory Larder uses, in bytes: `:total` is the sum of the other items.

  `:tables` is what the objects take, `:indexes` what secondary indexes take, `:snapshots` what is
  kept for snapshots, transactions and subscriptions, `:waiting` what was dropped and is not freed
  yet, `:allocator` free memory that is kept for objects to come. None of it is part of
  `:erlang.memory/0`.

      iex> memory = Larder.memory()
      iex> {total, items} = Map.pop!(memory, :total)
      iex> total == items |> Map.values() |> Enum.sum()
      true
  """
  @spec memory() :: %{memory_item() => non_neg_integer()}
  defdelegate memory(), to: :larder

  @doc """
  One item of `memory/0`, or a keyword list of some.

      iex> Larder.memory(:tables) >= 0
      true
      iex> [waiting: _, total: _] = Larder.memory([:waiting, :total])
  """
  @spec memory(memory_item()) :: non_neg_integer()
  @spec memory([memory_item()]) :: [{memory_item(), non_neg_integer()}]
  defdelegate memory(items), to: :larder

  @doc """
  The `n` tables that have most `:memory`, greatest `:size` or most `:contention`, as maps.

      iex> tab = Larder.new(:pantry, [])
      iex> Larder.insert(tab, for(n <- 1..5000, do: {n, n}))
      iex> [%{table: ^tab, size: 5000}] = Larder.top(1, :size)
      iex> :ok
      :ok
  """
  @spec top(non_neg_integer(), :memory | :size | :contention) :: [map()]
  defdelegate top(n, by), to: :larder

  # ---- snapshots and feeds ----

  @doc """
  Takes a snapshot of a table, or snapshots of a list of tables, all of one instant.

  Every function that reads takes a snapshot in place of a table; those that write raise
  `ArgumentError`. It belongs to the calling process, and ends with `release/1` or with that
  process. Nothing is copied. If a list is being inserted, the call first helps to finish that.

      iex> tab = Larder.new(:pantry, [:public])
      iex> Larder.insert(tab, {:flour, 3})
      iex> before = Larder.snapshot(tab)
      iex> Larder.insert(tab, {:flour, 2})
      iex> Larder.lookup(before, :flour)
      [flour: 3]
      iex> Larder.diff(before, Larder.snapshot(tab))
      [{:replace, {:flour, 3}, {:flour, 2}}]
      iex> Larder.release(before)
      true
  """
  @spec snapshot(table()) :: table()
  @spec snapshot([table()]) :: [table()]
  defdelegate snapshot(tabs), to: :larder

  @doc """
  Ends a snapshot. Only its owner may.

      iex> tab = Larder.new(:pantry, [])
      iex> before = Larder.snapshot(tab)
      iex> Larder.release(before)
      true
      iex> Larder.info(before)
      :undefined
  """
  @spec release(table()) :: true
  defdelegate release(snapshot), to: :larder

  @doc """
  The differences between two snapshots of a table, in no order: `{:insert, new}`,
  `{:replace, old, new}` and `{:delete, old}`. Keys that did not change are not read. Both snapshots
  are of one table; otherwise an `ArgumentError`.

      iex> tab = Larder.new(:pantry, [])
      iex> Larder.insert(tab, [{:salt, 1}, {:flour, 3}])
      iex> old = Larder.snapshot(tab)
      iex> Larder.delete(tab, :salt)
      iex> Larder.diff(old, Larder.snapshot(tab))
      [{:delete, {:salt, 1}}]
  """
  @spec diff(table(), table()) :: [
          {:insert, tuple()} | {:replace, tuple(), tuple()} | {:delete, tuple()}
        ]
  defdelegate diff(old, new), to: :larder

  @doc """
  Subscribes the calling process to what changes in a table from here on.

  For each commit that changes objects it gets a message `{:larder, ref, seq, event}`, or
  `{:larder, ref, seq, [event]}` if the commit changed several. An event is `{:insert, new}`,
  `{:replace, old, new}`, `{:delete, old}`, `{:expire, old}`, `{:evict, old}`, `:clear`,
  `{:overflow, lost}` or `:gone`. With a match specification in place of `:all`, events come only of
  objects that it matches, old or new.

  Options: `:limit`, events that the process may fall behind (10,000), after which the oldest are
  lost and it gets `:overflow`; `:mailbox`, messages in its mailbox at which no more are sent until
  it has taken some (1,000).

      iex> tab = Larder.new(:pantry, [])
      iex> ref = Larder.subscribe(tab, :all, %{})
      iex> Larder.insert(tab, {:salt, 1})
      iex> receive do {:larder, ^ref, _seq, event} -> event end
      {:insert, {:salt, 1}}
      iex> Larder.unsubscribe(ref)
      true
  """
  @spec subscribe(table(), match_spec() | :all, feed_options()) :: reference()
  defdelegate subscribe(tab, spec, options), to: :larder

  @doc """
  Ends a subscription of the calling process.

      iex> tab = Larder.new(:pantry, [])
      iex> feed = Larder.subscribe(tab, :all, %{})
      iex> Larder.unsubscribe(feed)
      true
      iex> Larder.insert(tab, {:salt, 1})
      iex> receive do {:larder, ^feed, _, _} -> :told after 10 -> :not_told end
      :not_told
  """
  @spec unsubscribe(reference()) :: true
  defdelegate unsubscribe(feed), to: :larder

  @doc """
  Takes a snapshot of a table, and subscribes to the changes after it. Each change is in exactly one
  of the two, with one exception: an object that had expired when the snapshot was taken, and was
  not removed yet, may be reported as expired, or as deleted or replaced by a transaction that had
  seen it, though the snapshot doesn't have it. Otherwise like `snapshot/1` and `subscribe/3`.

      iex> tab = Larder.new(:pantry, [])
      iex> Larder.insert(tab, {:salt, 1})
      iex> {before, feed} = Larder.snapshot_and_subscribe(tab, :all, %{})
      iex> Larder.insert(tab, {:flour, 3})
      iex> Larder.tab2list(before)
      [salt: 1]
      iex> receive do {:larder, ^feed, _seq, event} -> event end
      {:insert, {:flour, 3}}
  """
  @spec snapshot_and_subscribe(table(), match_spec() | :all, feed_options()) ::
          {table(), reference()}
  defdelegate snapshot_and_subscribe(tab, spec, options), to: :larder

  # ---- objects ----

  use Larder.Objects

  # ---- traversal, by rank ----

  use Larder.Traversal

  # ---- queries ----

  use Larder.Queries

  # ---- files and dets ----

  @doc """
  Writes a table to a file.

  Options: `{:extended_info, [:md5sum, :object_count]}`, `{:sync, bool}`,
  `{:format, :larder | :ets}` (the default is `:larder`).
  `:ets.file2tab/1` reads a file of the format `:ets`. With `sync: true` the file is on the disk
  when the call returns. The file has the table as of one instant. The error of a file that can't
  be written is `{:error, {:file_error, path, posix}}`, or `{:error, :eaccess}` if there is one that
  can't be replaced. The file that was there stays.

      iex> tab = Larder.new(:pantry, [])
      iex> Larder.insert(tab, {:salt, 1})
      iex> path = Path.join(System.tmp_dir!(), "larder-doc-pantry" <> System.pid())
      iex> Larder.tab2file(tab, path)
      :ok
      iex> File.rm!(path)
      iex> Larder.tab2file(tab, "/no/such/folder/pantry")
      {:error, {:file_error, '/no/such/folder/pantry', :enoent}}
  """
  @spec tab2file(table(), Path.t()) :: :ok | {:error, term()}
  @spec tab2file(table(), Path.t(), [file_option()]) :: :ok | {:error, term()}
  def tab2file(tab, path, options \\ []), do: :larder.tab2file(tab, charlist(path), options)

  @doc """
  Reads a table from a file, one of `:ets.tab2file/2` as well. Option: `{:verify, bool}`.

  The table has no heir, no bounds and no indexes. `{:error, reason}` if the file can't be read
  (`{:read_error, _}`), is damaged (`:badfile`, `:checksum_error`, `:invalid_object_count`), or
  another named table has the name (`:cannot_create_table`).

      iex> tab = Larder.new(:pantry, [])
      iex> Larder.insert(tab, {:salt, 1})
      iex> path = Path.join(System.tmp_dir!(), "larder-doc-pantry" <> System.pid())
      iex> Larder.tab2file(tab, path, format: :ets)
      iex> {:ok, copy} = Larder.file2tab(path)
      iex> Larder.tab2list(copy)
      [salt: 1]
      iex> File.rm!(path)
      :ok
  """
  @spec file2tab(Path.t()) :: {:ok, table()} | {:error, term()}
  @spec file2tab(Path.t(), [{:verify, boolean()}]) :: {:ok, table()} | {:error, term()}
  def file2tab(path, options \\ []), do: :larder.file2tab(charlist(path), options)

  @doc """
  Returns the description of the table in a file.

      iex> tab = Larder.new(:pantry, [])
      iex> Larder.insert(tab, {:salt, 1})
      iex> path = Path.join(System.tmp_dir!(), "larder-doc-pantry" <> System.pid())
      iex> Larder.tab2file(tab, path)
      iex> {:ok, info} = Larder.tabfile_info(path)
      iex> {info[:name], info[:size]}
      {:pantry, 1}
      iex> File.rm!(path)
      :ok
  """
  @spec tabfile_info(Path.t()) :: {:ok, keyword()} | {:error, term()}
  def tabfile_info(path), do: :larder.tabfile_info(charlist(path))

  @doc """
  Inserts the objects of an open dets table.

      iex> path = Path.join(System.tmp_dir!(), "larder-doc-dets" <> System.pid())
      iex> {:ok, dets} = :dets.open_file(:pantry_dets, file: String.to_charlist(path))
      iex> tab = Larder.new(:pantry, [])
      iex> :dets.insert(dets, {:salt, 1})
      iex> Larder.from_dets(tab, dets)
      true
      iex> Larder.tab2list(tab)
      [salt: 1]
      iex> {:dets.close(dets), File.rm!(path)}
      {:ok, :ok}
  """
  @spec from_dets(table(), term()) :: true
  defdelegate from_dets(tab, dets), to: :larder

  @doc """
  Replaces the objects of an open dets table by those of a table.

      iex> path = Path.join(System.tmp_dir!(), "larder-doc-dets" <> System.pid())
      iex> {:ok, dets} = :dets.open_file(:pantry_dets, file: String.to_charlist(path))
      iex> tab = Larder.new(:pantry, [])
      iex> Larder.insert(tab, {:salt, 1})
      iex> Larder.to_dets(tab, dets)
      :pantry_dets
      iex> :dets.lookup(dets, :salt)
      [salt: 1]
      iex> {:dets.close(dets), File.rm!(path)}
      {:ok, :ok}
  """
  @spec to_dets(table(), term()) :: term()
  defdelegate to_dets(tab, dets), to: :larder

  @doc """
  Replaces the objects of a table by those that a function returns.

  The function is called with `:read`, and returns `{objects, function}` or `:end_of_input`. It is
  called with `:close` if the call ends before that. If it returns what is no object, the call
  exits.

      iex> tab = Larder.new(:pantry, [])
      iex> Larder.init_table(tab, fn :read -> {[{:salt, 1}], fn :read -> :end_of_input end} end)
      true
      iex> Larder.tab2list(tab)
      [salt: 1]
  """
  @spec init_table(table(), (:read | :close -> term())) :: true
  defdelegate init_table(tab, fun), to: :larder

  # ---- several tables at once ----

  @doc """
  Calls a function with views of some tables; what it writes to them takes effect at one instant.

  The views are tables that the function reads and writes. If others have changed what it has read,
  it had no effect and is called again, so it should have no other side effects. `abort/1` and any
  exception end it without effect: the result is `{:aborted, reason}`. A scan of a table itself may
  see a part of what a transaction writes; lookups, snapshots and views don't.

      iex> [a, b] = for name <- [:a, :b], do: Larder.new(name, [:public])
      iex> Larder.insert(a, {:salt, 3})
      iex> Larder.transaction([a, b], fn [a, b] ->
      ...>   [row] = Larder.take(a, :salt)
      ...>   Larder.insert(b, row)
      ...> end)
      {:atomic, true}
      iex> {Larder.tab2list(a), Larder.tab2list(b)}
      {[], [salt: 3]}
      iex> Larder.transaction([a], fn _ -> Larder.abort(:why) end)
      {:aborted, :why}

  Options: a map with `:retries`, how often the function is called again at most (then
  `{:aborted, :nomore}`), and `:timeout`, in milliseconds (then `{:aborted, :timeout}`). Both are
  `:infinity` unless given.
  """
  @spec transaction([table()], ([table()] -> result)) ::
          {:atomic, result} | {:aborted, term()}
        when result: term()
  @spec transaction([table()], ([table()] -> result), transaction_options()) ::
          {:atomic, result} | {:aborted, term()}
        when result: term()
  def transaction(tabs, fun, options \\ %{}), do: :larder.transaction(tabs, fun, options)

  @doc """
  Ends the transaction that the process is in, without effect.

      iex> tab = Larder.new(:pantry, [:public])
      iex> Larder.transaction([tab], fn [view] ->
      ...>   Larder.insert(view, {:salt, 1})
      ...>   Larder.abort(:no_salt)
      ...> end)
      {:aborted, :no_salt}
      iex> Larder.tab2list(tab)
      []
  """
  @spec abort(term()) :: no_return()
  defdelegate abort(reason), to: :larder

  @doc """
  Applies all of some operations at one instant, or none: `{false, n}` if the n-th does not hold.
  `:check`, `:insert_new`, `:update_counter`, `:update_element` and `:expire` have conditions. Each
  operation sees the effects of those before it. The operations are those of `t:operation/0`.

      iex> tab = Larder.new(:pantry, [:public])
      iex> Larder.insert(tab, {:salt, 1})
      iex> Larder.commit([{:check, tab, :salt, [salt: 1]}, {:insert, tab, {:salt, 2}}])
      true
      iex> Larder.commit([{:delete, tab, :salt}, {:insert_new, tab, {:salt, 3}}])
      true
      iex> Larder.commit([{:delete, tab, :salt}, {:check, tab, :salt, [salt: 3]}])
      {false, 2}
      iex> Larder.lookup(tab, :salt)
      [salt: 3]
  """
  @spec commit([operation()]) :: true | {false, pos_integer()}
  defdelegate commit(operations), to: :larder

  # ---- on the terminal ----

  @doc """
  Prints lists of all tables, of those that have indexes, memory retained for snapshots or
  contention, of the snapshots, and the items of `memory/0`.
  """
  @spec i() :: :ok
  defdelegate i(), to: :larder

  @doc "Pages through a table on the terminal."
  @spec i(table()) :: :ok
  defdelegate i(tab), to: :larder

  @doc "Pages through a table, `height` lines a page."
  @spec i(table(), pos_integer()) :: :ok
  defdelegate i(tab, height), to: :larder

  @doc "Pages through a table, `height` lines of `width` characters a page."
  @spec i(table(), pos_integer(), pos_integer()) :: :ok
  defdelegate i(tab, height, width), to: :larder

  # Elixir's paths are chardata, those of Erlang's interface charlists or atoms. A name that is no
  # text stays as it is.
  defp charlist(path) when is_binary(path) or is_list(path) do
    binary = IO.chardata_to_string(path)

    case :unicode.characters_to_list(binary) do
      chars when is_list(chars) -> chars
      _ -> binary
    end
  end

  defp charlist(path), do: path
end
