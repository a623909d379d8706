defmodule Larder.Objects do
  @moduledoc false

  # Functions of `Larder` for objects by key, with their documentation. `use Larder.Objects` defines
  # them.

  defmacro __using__(_options) do
    quote location: :keep do
      @doc """
      Inserts an object or a list of objects; a list goes in atomically, or not at all.

      In a set or ordered_set an object replaces the one with its key. A term that is no tuple, or
      too short for the key's position, is an `ArgumentError`.

          iex> tab = Larder.new(:pantry, [])
          iex> Larder.insert(tab, {:salt, 1})
          true
          iex> Larder.insert(tab, [{:salt, 2}, {:flour, 3}])
          true
          iex> Larder.lookup(tab, :salt)
          [salt: 2]
      """
      @spec insert(table(), tuple() | [tuple()]) :: true
      defdelegate insert(tab, objects), to: :larder

      @doc """
      Inserts a tuple that lives for so many milliseconds, whatever the table's `:ttl`, until it is
      written again. An `ArgumentError` if the table was made without bounds.

          iex> tab = Larder.new(:sessions, [:public, {:ttl, :infinity}])
          iex> Larder.insert(tab, {1, :ann}, %{ttl: 60_000})
          true
          iex> Larder.expire(tab, 1, 0)
          true
          iex> {Larder.lookup(tab, 1), Larder.ttl(tab, 1)}
          {[], :none}
          iex> Larder.delete(tab)
          true
      """
      @spec insert(table(), tuple(), %{ttl: time()}) :: true
      defdelegate insert(tab, object, options), to: :larder

      @doc """
      Gives the row with a key so many milliseconds to live from now on; whether there is one. An
      `ArgumentError` if the table was made without bounds.

          iex> tab = Larder.new(:sessions, [{:ttl, 60_000}])
          iex> Larder.insert(tab, {1, :ann})
          iex> {Larder.expire(tab, 1, 0), Larder.expire(tab, 2, 0)}
          {true, false}
          iex> Larder.lookup(tab, 1)
          []
      """
      @spec expire(table(), term(), time()) :: boolean()
      defdelegate expire(tab, key, ms), to: :larder

      @doc """
      How many milliseconds the row with a key has left: `:infinity` if it doesn't expire, and
      `:none` if there is no such row. An `ArgumentError` if the table was made without bounds.

          iex> tab = Larder.new(:sessions, [{:ttl, 60_000}])
          iex> Larder.insert(tab, {1, :ann})
          iex> {Larder.ttl(tab, 1) in 50_000..60_000, Larder.ttl(tab, 2)}
          {true, :none}
      """
      @spec ttl(table(), term()) :: time() | :none
      defdelegate ttl(tab, key), to: :larder

      @doc """
      Inserts as `insert/2` if none of the keys is in the table, and says whether it did. It doesn't
      either if a value is taken in a unique index.

      Of several processes that insert the same new key at once, one succeeds.

          iex> tab = Larder.new(:pantry, [])
          iex> Larder.insert_new(tab, {:salt, 1})
          true
          iex> Larder.insert_new(tab, [{:flour, 3}, {:salt, 2}])
          false
          iex> Larder.tab2list(tab)
          [salt: 1]
      """
      @spec insert_new(table(), tuple() | [tuple()]) :: boolean()
      defdelegate insert_new(tab, objects), to: :larder

      @doc """
      The objects with a key: at most one in a set or ordered_set.

      In a bag they come in the order in which they were inserted. Keys of an ordered_set are
      compared by `==`, all others by `===`.

          iex> tab = Larder.new(:shelves, [:bag])
          iex> Larder.insert(tab, [{:salt, 1}, {:salt, 4}])
          iex> Larder.lookup(tab, :salt)
          [salt: 1, salt: 4]
          iex> Larder.lookup(tab, :pepper)
          []
      """
      @spec lookup(table(), term()) :: [tuple()]
      defdelegate lookup(tab, key), to: :larder

      @doc """
      The objects of several keys, a list for each key, in one call.

      Each key is looked up for itself: others may write meanwhile, unless it is a `snapshot/1`.

          iex> tab = Larder.new(:pantry, [])
          iex> Larder.insert(tab, [{:salt, 1}, {:flour, 3}])
          iex> Larder.lookup_many(tab, [:flour, :pepper, :salt])
          [[flour: 3], [], [salt: 1]]
      """
      @spec lookup_many(table(), [term()]) :: [[tuple()]]
      defdelegate lookup_many(tab, keys), to: :larder

      @doc """
      An element of the object with a key; a list of them in a bag.

      Only that element is copied. No such key is an `ArgumentError`.

          iex> tab = Larder.new(:pantry, [])
          iex> Larder.insert(tab, {:salt, 1, "kg"})
          iex> Larder.lookup_element(tab, :salt, 3)
          "kg"
      """
      @spec lookup_element(table(), term(), pos_integer()) :: term()
      defdelegate lookup_element(tab, key, position), to: :larder

      @doc """
      As `lookup_element/3`, with what to give if there is no such key.

          iex> tab = Larder.new(:pantry, [])
          iex> Larder.lookup_element(tab, :salt, 2, 0)
          0
      """
      @spec lookup_element(table(), term(), pos_integer(), term()) :: term()
      defdelegate lookup_element(tab, key, position, default), to: :larder

      @doc """
      The elements at several positions of the object with a key, in the positions' order; a list of
      such lists in a bag. Nothing else of the object is copied.

      No such key is an `ArgumentError`.

          iex> tab = Larder.new(:users, [])
          iex> Larder.insert(tab, {7, "ann", :admin, 34})
          iex> Larder.lookup_elements(tab, 7, [4, 2])
          [34, "ann"]
      """
      @spec lookup_elements(table(), term(), [pos_integer()]) :: [term()]
      defdelegate lookup_elements(tab, key, positions), to: :larder

      @doc """
      As `lookup_elements/3`, with what to give if there is no such key.

          iex> tab = Larder.new(:users, [])
          iex> Larder.lookup_elements(tab, 7, [4, 2], :nobody)
          :nobody
      """
      @spec lookup_elements(table(), term(), [pos_integer()], term()) :: term()
      defdelegate lookup_elements(tab, key, positions, default), to: :larder

      @doc """
      Whether the table has an object with that key. Nothing is copied.

          iex> tab = Larder.new(:pantry, [])
          iex> Larder.insert(tab, {:salt, 1})
          iex> {Larder.member(tab, :salt), Larder.member(tab, :pepper)}
          {true, false}
      """
      @spec member(table(), term()) :: boolean()
      defdelegate member(tab, key), to: :larder

      @doc """
      Deletes all objects with a key, at once. Nothing happens if there are none.

          iex> tab = Larder.new(:shelves, [:bag])
          iex> Larder.insert(tab, [{:salt, 1}, {:salt, 4}, {:flour, 2}])
          iex> Larder.delete(tab, :salt)
          true
          iex> Larder.tab2list(tab)
          [flour: 2]
      """
      @spec delete(table(), term()) :: true
      defdelegate delete(tab, key), to: :larder

      @doc """
      Deletes exactly this object.

          iex> tab = Larder.new(:shelves, [:bag])
          iex> Larder.insert(tab, [{:salt, 1}, {:salt, 4}])
          iex> Larder.delete_object(tab, {:salt, 4})
          iex> Larder.lookup(tab, :salt)
          [salt: 1]
      """
      @spec delete_object(table(), tuple()) :: true
      defdelegate delete_object(tab, object), to: :larder

      @doc """
      Removes the objects with a key and gives them back, atomically.

      Of several processes that take the same objects, one gets them.

          iex> tab = Larder.new(:pantry, [])
          iex> Larder.insert(tab, {:salt, 1})
          iex> {Larder.take(tab, :salt), Larder.take(tab, :salt)}
          {[salt: 1], []}
      """
      @spec take(table(), term()) :: [tuple()]
      defdelegate take(tab, key), to: :larder

      @doc """
      As `take/2` for several keys, one after another: a list for each.

          iex> tab = Larder.new(:pantry, [])
          iex> Larder.insert(tab, [{:salt, 1}, {:flour, 3}])
          iex> Larder.take_many(tab, [:flour, :pepper])
          [[flour: 3], []]
          iex> Larder.tab2list(tab)
          [salt: 1]
      """
      @spec take_many(table(), [term()]) :: [[tuple()]]
      defdelegate take_many(tab, keys), to: :larder

      @doc """
      Adds to counters in an object, atomically, and gives their new values.

      An operation is an increment (of the element after the key), `{position, increment}` or
      `{position, increment, threshold, value}`, or a list of these. `{position, map_key}` in place
      of a position is a counter in a map, and `{position, map_key, initial}` one that begins with
      `initial`. No such key is an `ArgumentError`, and so is a bag.

          iex> tab = Larder.new(:visits, [])
          iex> Larder.insert(tab, {"/", 0, 10})
          iex> Larder.update_counter(tab, "/", 1)
          1
          iex> Larder.update_counter(tab, "/", [{2, 5}, {3, -1}])
          [6, 9]
          iex> Larder.update_counter(tab, "/", {3, 1, 9, 0})
          0
      """
      @spec update_counter(table(), term(), update_op() | [update_op()]) :: integer() | [integer()]
      defdelegate update_counter(tab, key, operation), to: :larder

      @doc """
      As `update_counter/3`; if there is no such key, `default` is inserted first.

          iex> tab = Larder.new(:visits, [])
          iex> Larder.update_counter(tab, "/", 1, {:page, 0})
          1
          iex> Larder.lookup(tab, "/")
          [{"/", 1}]
      """
      @spec update_counter(table(), term(), update_op() | [update_op()], tuple()) ::
              integer() | [integer()]
      defdelegate update_counter(tab, key, operation, default), to: :larder

      @doc """
      Replaces elements, given as `{position, value}` or a list of these, atomically.

      `false` if there is no such key.

          iex> tab = Larder.new(:pantry, [])
          iex> Larder.insert(tab, {:salt, 1, "kg"})
          iex> Larder.update_element(tab, :salt, [{2, 500}, {3, "g"}])
          true
          iex> Larder.lookup(tab, :salt)
          [{:salt, 500, "g"}]
      """
      @spec update_element(table(), term(), element | [element]) :: boolean()
            when element: {pos_integer(), term()}
      defdelegate update_element(tab, key, elements), to: :larder

      @doc """
      Gives a key of a map this value; the map is the element at `position` of the object with
      `key`.

      Nothing else of the object is copied or sent. `false` if there is no such object.

          iex> tab = Larder.new(:users, [])
          iex> Larder.insert(tab, {7, %{name: "ann", age: 34}})
          iex> Larder.update_map(tab, 7, 2, :age, 35)
          true
          iex> Larder.remove_map_key(tab, 7, 2, :name)
          true
          iex> Larder.lookup(tab, 7)
          [{7, %{age: 35}}]

      An element that is no map is an `ArgumentError`. `update_counter/3` counts in maps, too.
      """
      @spec update_map(table(), term(), pos_integer(), term(), term()) :: boolean()
      defdelegate update_map(tab, key, position, map_key, value), to: :larder

      @doc """
      As `update_map/5`, for several keys, of one map or of several, atomically: `{position,
      map_key, value}` puts a value, `{position, map_key}` removes the key.

          iex> tab = Larder.new(:users, [])
          iex> Larder.insert(tab, {7, %{name: "ann", age: 34}, %{}})
          iex> Larder.update_map(tab, 7, [{2, :age, 35}, {2, :name}, {3, :seen, true}])
          true
          iex> Larder.lookup(tab, 7)
          [{7, %{age: 35}, %{seen: true}}]
      """
      @spec update_map(table(), term(), [
              {pos_integer(), term(), term()} | {pos_integer(), term()}
            ]) :: boolean()
      defdelegate update_map(tab, key, changes), to: :larder

      @doc """
      Removes a key of a map, if it is there. As `update_map/5` otherwise.

          iex> tab = Larder.new(:users, [])
          iex> Larder.insert(tab, {7, %{name: "ann", age: 34}})
          iex> Larder.remove_map_key(tab, 7, 2, :age)
          true
          iex> Larder.lookup(tab, 7)
          [{7, %{name: "ann"}}]
      """
      @spec remove_map_key(table(), term(), pos_integer(), term()) :: boolean()
      defdelegate remove_map_key(tab, key, position, map_key), to: :larder

      @doc """
      As `update_element/3`; if there is no such key, `default` is inserted first.

          iex> tab = Larder.new(:pantry, [])
          iex> Larder.update_element(tab, :salt, {2, 500}, {:salt, 0, "g"})
          true
          iex> Larder.lookup(tab, :salt)
          [{:salt, 500, "g"}]
      """
      @spec update_element(table(), term(), element | [element], tuple()) :: true
            when element: {pos_integer(), term()}
      defdelegate update_element(tab, key, elements, default), to: :larder
    end
  end
end
