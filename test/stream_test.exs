defmodule Larder.StreamTest do
  @moduledoc "Streams of tables: the rows, how few are read, and that nothing is left behind."
  use ExUnit.Case

  defp table(options, rows) do
    tab = Larder.new(:stream_test, [:public | options])
    Larder.insert(tab, rows)
    tab
  end

  test "all rows, whatever the type and the batch" do
    rows = for i <- 1..250, do: {i, i * i}

    for type <- [:set, :ordered_set, :bag, :duplicate_bag], batch <- [1, 7, 100, 250, 1000] do
      tab = table([type], rows)
      assert tab |> Larder.stream([{:_, [], [:"$_"]}], batch: batch) |> Enum.sort() == rows
      assert tab |> Larder.stream() |> Enum.count() == 250
    end

    assert Enum.to_list(Larder.stream(table([], []))) == []
  end

  test "specifications, prepared ones, both directions" do
    tab = table([:ordered_set], for(i <- 1..1000, do: {i, rem(i, 10)}))
    spec = [{{:"$1", 3}, [{:>, :"$1", 500}], [:"$1"]}]
    assert Enum.to_list(Larder.stream(tab, spec)) == Larder.select(tab, spec)

    assert tab |> Larder.stream(spec, reverse: true, batch: 3) |> Enum.to_list() ==
             Larder.select_reverse(tab, spec)

    prepared = Larder.prepare([{{:"$1", {:bind, 1}}, [], [:"$1"]}])
    assert tab |> Larder.stream({prepared, [7]}) |> Enum.take(2) == [7, 17]
    assert tab |> Larder.stream([{{:_, :none}, [], [true]}]) |> Enum.to_list() == []
  end

  test "only as many batches are read as are asked for" do
    tab = table([:ordered_set], for(i <- 1..1000, do: {i}))
    stream = Larder.stream(tab, [{{:"$1"}, [], [:"$1"]}], batch: 10)
    assert Enum.take(stream, 10) == Enum.to_list(1..10)

    # What comes after the batch is read when it is asked for.
    seen =
      Enum.reduce_while(stream, [], fn
        10, acc -> Larder.delete(tab, 11) && {:cont, [10 | acc]}
        13, acc -> {:halt, [13 | acc]}
        n, acc -> {:cont, [n | acc]}
      end)

    assert Enum.take(seen, 3) == [13, 12, 10]
    # It begins anew, and two at a time are two.
    assert stream |> Stream.zip(stream) |> Enum.take(2) == [{1, 1}, {2, 2}]
    Larder.insert(tab, {0})
    assert Enum.take(stream, 1) == [0]
  end

  test "halting, failing and being suspended leave nothing behind" do
    tab = table([], for(i <- 1..1000, do: {i}))
    stream = Larder.stream(tab, [{:_, [], [:"$_"]}], batch: 10)
    assert length(Enum.take(stream, 15)) == 15
    assert_raise RuntimeError, fn -> Enum.each(stream, fn _ -> raise "enough" end) end
    assert catch_throw(Enum.each(stream, fn _ -> throw(:enough) end)) == :enough

    {:suspended, 1, _next} = Enumerable.reduce(stream, {:cont, 0}, fn _, n -> {:suspend, n + 1} end)

    refute Larder.info(tab, :fixed)
    assert Larder.info(tab, :snapshots) == 0
  end

  test "a snapshot's rows are those of its moment" do
    tab = table([:ordered_set], for(i <- 1..300, do: {i, :before}))
    snapshot = Larder.snapshot(tab)

    rows =
      snapshot
      |> Larder.stream()
      |> Stream.each(fn {i, _} -> Larder.insert(tab, [{i + 1, :later}, {i + 1000, :later}]) end)
      |> Enum.to_list()

    assert rows == for(i <- 1..300, do: {i, :before})
  end

  test "rows that stay come once while others come and go" do
    tab = table([:ordered_set], for(i <- 1..500, do: {2 * i}))
    {worker, ref} = spawn_monitor(fn -> churn(tab, 1) end)

    for _ <- 1..20 do
      even =
        tab
        |> Larder.stream([{:_, [], [:"$_"]}], batch: 9)
        |> Enum.filter(&(rem(elem(&1, 0), 2) == 0))

      assert even == for(i <- 1..500, do: {2 * i})
    end

    Process.exit(worker, :kill)
    assert_receive {:DOWN, ^ref, _, _, :killed}
  end

  defp churn(tab, i) do
    key = 2 * rem(i * 7919, 500) + 1
    if rem(i, 3) == 0, do: Larder.delete(tab, key), else: Larder.insert(tab, {key})
    churn(tab, i + 1)
  end

  test "errors are described" do
    tab = table([], [{1}])

    assert_raise ArgumentError, ~r/unknown keys \[:limit\]/, fn ->
      Larder.stream(tab, [], limit: 1)
    end

    assert_raise ArgumentError, ~r/:batch/, fn -> Larder.stream(tab, [], batch: 0) end
    assert_raise ArgumentError, ~r/:reverse/, fn -> Larder.stream(tab, [], reverse: 1) end
    assert_raise ArgumentError, fn -> Enum.to_list(Larder.stream(tab, [{:nonsense}])) end
    assert_raise ArgumentError, fn -> Enum.to_list(Larder.stream(:no_such_table)) end

    stream = Larder.stream(table([], for(i <- 1..300, do: {i})), [{{:"$1"}, [], [:"$1"]}], batch: 1)
    other = table([], for(i <- 1..300, do: {i}))
    assert Enum.take(stream, 3) |> length() == 3

    assert_raise ArgumentError, fn ->
      other |> Larder.stream() |> Enum.each(fn _ -> Larder.delete(other) end)
    end
  end
end
