defmodule Larder.Stream do
  @moduledoc false

  # What a match specification gives, as a stream: limited selects, one after another. A
  # continuation holds nothing in the table, so there is nothing to be done when a stream ends.

  @batch 100

  def new(tab, spec, options) do
    {batch, reverse} = checked(options)

    Stream.resource(
      fn -> :begin end,
      fn
        :begin -> next(begin(tab, spec, batch, reverse))
        continuation -> next(go_on(continuation, reverse))
      end,
      fn _ -> :ok end
    )
  end

  defp next(:"$end_of_table"), do: {:halt, :ended}
  defp next({results, continuation}), do: {results, continuation}

  defp begin(tab, spec, batch, false), do: Larder.select(tab, spec, batch)
  defp begin(tab, spec, batch, true), do: Larder.select_reverse(tab, spec, batch)

  defp go_on(:"$end_of_table", _), do: :"$end_of_table"
  defp go_on(continuation, false), do: Larder.select(continuation)
  defp go_on(continuation, true), do: Larder.select_reverse(continuation)

  defp checked(options) do
    options = Keyword.validate!(options, batch: @batch, reverse: false)
    batch = options[:batch]
    reverse = options[:reverse]

    unless is_integer(batch) and batch > 0 do
      raise ArgumentError, ":batch is a number of rows, from 1, not #{inspect(batch)}"
    end

    unless is_boolean(reverse) do
      raise ArgumentError, ":reverse is true or false, not #{inspect(reverse)}"
    end

    {batch, reverse}
  end
end
