defmodule Mix.Tasks.Larder.Move do
  @shortdoc "Moves the compiled project, dependencies included, from ets to Larder"

  @moduledoc """
  Moves compiled modules from `:ets` to Larder.

      mix larder.move                    # the project and its dependencies, as they are built
      mix larder.move --plan             # only says what would move
      mix larder.move --undo             # the originals again
      mix larder.move [OPTIONS] PATH...  # these directories and .beam files

  Options:

    * `--force` moves although modules that stay share named tables with those that move
    * `--beside DIRECTORY` looks at the modules there for such tables, too; may be given again

  Modules that are compiled again are those of `:ets` again: move after the last `mix compile`, when
  a release is about to be assembled for example. What moves and what can't is told by the module
  `:larder_move`.
  """

  use Mix.Task

  @switches [plan: :boolean, undo: :boolean, force: :boolean, beside: :keep]

  @impl true
  def run(args) do
    {options, paths} = OptionParser.parse!(args, strict: @switches)
    if paths == [], do: Mix.Task.run("compile")
    targets = if paths == [], do: built(), else: Enum.map(paths, &String.to_charlist/1)
    beside = for {:beside, directory} <- options, do: {:beside, String.to_charlist(directory)}
    forced = if options[:force], do: [:force | beside], else: beside

    cond do
      options[:undo] -> :larder_move.undo(targets) |> undone()
      options[:plan] -> :larder_move.plan(targets, forced) |> told()
      true -> :larder_move.move(targets, forced) |> told()
    end
  end

  defp built do
    for ebin <- Path.wildcard(Path.join([Mix.Project.build_path(), "lib", "*", "ebin"])),
        not File.exists?(Path.join(ebin, "larder.app")),
        Path.wildcard(Path.join(ebin, "*.beam")) != [],
        do: String.to_charlist(ebin)
  end

  defp told({:ok, plan}), do: Mix.shell().info(text(:larder_move.format(plan)))
  defp told({:error, why}), do: Mix.raise(text(:larder_move.format_error(why)))

  defp undone({:ok, files}),
    do: Mix.shell().info("#{length(files)} modules are those of :ets again")

  defp undone({:error, why}), do: Mix.raise(text(:larder_move.format_error(why)))

  defp text(words), do: words |> :unicode.characters_to_binary() |> String.trim_trailing()
end
