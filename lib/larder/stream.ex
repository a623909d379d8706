defmodule Larder.Stream do
  @moduledoc false

  # The results of a match specification as a stream, made of limited selects. A continuation pins
  # nothing in the table, so there is nothing to release.

  @batch 100

  def new(tab, spec, options) do
    {batch, reverse} = validate!(options)

    Stream.resource(
      fn -> :start end,
      fn
        :start -> next(start(tab, spec, batch, reverse))
        continuation -> next(continue(continuation, reverse))
      end,
      fn _ -> :ok end
    )
  end

  defp next(:"$end_of_table"), do: {:halt, :ended}
  defp next({results, continuation}), do: {results, continuation}

  defp start(tab, spec, batch, false), do: Larder.select(tab, spec, batch)
  defp start(tab, spec, batch, true), do: Larder.select_reverse(tab, spec, batch)

  defp continue(:"$end_of_table", _), do: :"$end_of_table"
  defp continue(continuation, false), do: Larder.select(continuation)
  defp continue(continuation, true), do: Larder.select_reverse(continuation)

  defp validate!(options) do
    options = Keyword.validate!(options, batch: @batch, reverse: false)
    batch = options[:batch]
    reverse = options[:reverse]

    unless is_integer(batch) and batch > 0 do
      raise ArgumentError, ":batch must be a positive integer, got: #{inspect(batch)}"
    end

    unless is_boolean(reverse) do
      raise ArgumentError, ":reverse must be a boolean, got: #{inspect(reverse)}"
    end

    {batch, reverse}
  end
end
