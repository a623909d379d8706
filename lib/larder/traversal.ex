defmodule Larder.Traversal do
  @moduledoc false

  # Traversal functions of `Larder`, with their documentation. `use Larder.Traversal` defines them.

  defmacro __using__(_options) do
    quote location: :keep do
      # ---- traversal ----

      @doc """
      The first key, or `:"$end_of_table"`: the least of an ordered_set.

      A traversal by `next/2` visits each key that stays in the table exactly once.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}])
          iex> {Larder.first(tab), Larder.last(tab)}
          {10, 30}
      """
      @spec first(table()) :: term()
      defdelegate first(tab), to: :larder

      @doc """
      The last key of an ordered_set, or `:"$end_of_table"`.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}])
          iex> Larder.last(tab)
          30
      """
      @spec last(table()) :: term()
      defdelegate last(tab), to: :larder

      @doc """
      The key after a key, or `:"$end_of_table"`.

      In an ordered_set the key need not be in the table; in other tables it does.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}])
          iex> {Larder.next(tab, 10), Larder.next(tab, 20), Larder.prev(tab, 20)}
          {30, 30, 10}
      """
      @spec next(table(), term()) :: term()
      defdelegate next(tab, key), to: :larder

      @doc """
      The key before a key, in an ordered_set.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}])
          iex> {Larder.prev(tab, 30), Larder.prev(tab, 10)}
          {10, :"$end_of_table"}
      """
      @spec prev(table(), term()) :: term()
      defdelegate prev(tab, key), to: :larder

      @doc """
      The first key with its objects.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}])
          iex> Larder.first_lookup(tab)
          {10, [{10, :bob}]}
      """
      @spec first_lookup(table()) :: {term(), [tuple()]} | :"$end_of_table"
      defdelegate first_lookup(tab), to: :larder

      @doc """
      The last key with its objects.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}])
          iex> Larder.last_lookup(tab)
          {30, [{30, :ann}]}
      """
      @spec last_lookup(table()) :: {term(), [tuple()]} | :"$end_of_table"
      defdelegate last_lookup(tab), to: :larder

      @doc """
      The key after a key, with its objects.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}])
          iex> Larder.next_lookup(tab, 10)
          {30, [{30, :ann}]}
      """
      @spec next_lookup(table(), term()) :: {term(), [tuple()]} | :"$end_of_table"
      defdelegate next_lookup(tab, key), to: :larder

      @doc """
      The key before a key, with its objects.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}])
          iex> Larder.prev_lookup(tab, 30)
          {10, [{10, :bob}]}
      """
      @spec prev_lookup(table(), term()) :: {term(), [tuple()]} | :"$end_of_table"
      defdelegate prev_lookup(tab, key), to: :larder

      @doc """
      The objects of the table's i-th slot, counted from 0, for inspection.

      The slot after the last one is `:"$end_of_table"`; beyond that it is an `ArgumentError`.

          iex> tab = Larder.new(:pantry, [])
          iex> Larder.insert(tab, {:salt, 1})
          iex> Larder.slot(tab, 0)
          [salt: 1]
      """
      @spec slot(table(), non_neg_integer()) :: [tuple()] | :"$end_of_table"
      defdelegate slot(tab, i), to: :larder

      @doc """
      All objects as a list, in an ordered_set's order.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}])
          iex> Larder.tab2list(tab)
          [{10, :bob}, {30, :ann}]
      """
      @spec tab2list(table()) :: [tuple()]
      defdelegate tab2list(tab), to: :larder

      @doc """
      Folds over the objects from the first key on.

      The function is called with an object and the accumulator.

          iex> tab = Larder.new(:pantry, [])
          iex> Larder.insert(tab, [{:salt, 1}, {:flour, 3}])
          iex> Larder.foldl(fn {_what, n}, sum -> sum + n end, 0, tab)
          4
      """
      @spec foldl((tuple(), acc -> acc), acc, table()) :: acc when acc: term()
      defdelegate foldl(fun, acc, tab), to: :larder

      @doc """
      Folds over the objects from the last key on.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}])
          iex> Larder.foldr(fn {_score, who}, all -> [who | all] end, [], tab)
          [:bob, :ann]
      """
      @spec foldr((tuple(), acc -> acc), acc, table()) :: acc when acc: term()
      defdelegate foldr(fun, acc, tab), to: :larder

      # ---- by rank ----

      @doc """
      The rank of the object with a key of an ordered_set, from 1, or `:none`.

      It takes O(log n); the first rank query counts the table once, in slices. The result is exact
      in a snapshot, in a transaction, and while nobody inserts or deletes. Otherwise an object that
      is inserted or deleted during the call may count or not. A table of another type, one with
      bounds, and one on another structure have no ranks: an `ArgumentError`.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}, {20, :eve}])
          iex> Larder.rank(tab, 20)
          2
          iex> Larder.nth(tab, -1)
          {30, :ann}
          iex> Larder.slice(tab, 2, 5)
          [{20, :eve}, {30, :ann}]
          iex> Larder.count_range(tab, 10, 30)
          2
      """
      @spec rank(table(), term()) :: pos_integer() | :none
      defdelegate rank(tab, key), to: :larder

      @doc """
      The n-th object of an ordered_set, or `:none`.

      From 1 on it is counted from the first, from -1 on from the last.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}])
          iex> {Larder.nth(tab, 1), Larder.nth(tab, -1), Larder.nth(tab, 3)}
          {{10, :bob}, {30, :ann}, :none}
      """
      @spec nth(table(), integer()) :: tuple() | :none
      defdelegate nth(tab, n), to: :larder

      @doc """
      At most `count` objects, in order, from the n-th on, counted as by `nth/2`.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}])
          iex> Larder.slice(tab, 1, 1)
          [{10, :bob}]
      """
      @spec slice(table(), integer(), non_neg_integer()) :: [tuple()]
      defdelegate slice(tab, from, count), to: :larder

      @doc """
      How many objects of an ordered_set have keys from `low` on and before `high`.

          iex> tab = Larder.new(:scores, [:ordered_set])
          iex> Larder.insert(tab, [{30, :ann}, {10, :bob}])
          iex> Larder.count_range(tab, 10, 30)
          1
      """
      @spec count_range(table(), term(), term()) :: non_neg_integer()
      defdelegate count_range(tab, low, high), to: :larder
    end
  end
end
