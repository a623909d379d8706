defmodule Larder.MixProject do
  use Mix.Project

  # One place says the version: the application file that rebar3 reads, too.
  @app_src "erlang/src/larder.app.src"
  @external_resource @app_src
  {:ok, [{:application, :larder, props}]} = :file.consult(Path.join(__DIR__, @app_src))
  @version to_string(Keyword.fetch!(props, :vsn))
  @description to_string(Keyword.fetch!(props, :description))

  def project do
    [
      app: :larder,
      version: @version,
      description: @description,
      elixir: "~> 1.14",
      erlc_paths: ["erlang/src"],
      erlc_options: [:debug_info],
      elixirc_paths: ["lib"],
      compilers: [:larder_nif] ++ Mix.compilers() ++ [:larder_documentation],
      start_permanent: false,
      deps: []
    ]
  end

  def application do
    # As in the application file for rebar3.
    {:ok, [{:application, :larder, props}]} = :file.consult(@app_src)

    [extra_applications: []] ++ Keyword.take(props, [:mod, :env, :registered])
  end
end

defmodule Mix.Tasks.Compile.LarderNif do
  @moduledoc "Builds the native library, as rebar3 does: by `make nif`, that is by cargo."
  use Mix.Task.Compiler

  @impl true
  def run(_args) do
    make = System.find_executable("gmake") || System.find_executable("make")

    if make == nil do
      Mix.raise("larder: building the native library needs make")
    end

    case System.cmd(make, ["nif"],
           cd: __DIR__,
           into: IO.stream(:stdio, :line),
           stderr_to_stdout: true
         ) do
      {_, 0} ->
        # What mix links into the build is what exists at this moment.
        Mix.Project.build_structure()
        {:ok, []}

      {_, status} ->
        Mix.raise("larder: `make nif` failed (exit status #{status}); the lines above say why")
    end
  end
end

defmodule Mix.Tasks.Compile.LarderDocumentation do
  @moduledoc "Puts the documentation of the Erlang modules into them, for `h :larder`."
  use Mix.Task.Compiler

  @impl true
  def run(_args) do
    ebin = Mix.Project.compile_path()

    if Enum.any?(Path.wildcard("#{ebin}/larder*.beam"), &bare?/1) do
      {_, 0} =
        System.cmd("escript", ["scripts/documentation.escript", "chunks", ebin],
          cd: __DIR__,
          into: IO.stream(:stdio, :line),
          stderr_to_stdout: true
        )
    end

    {:ok, []}
  end

  defp bare?(beam) do
    match?(
      {:error, :beam_lib, {:missing_chunk, _, _}},
      :beam_lib.chunks(String.to_charlist(beam), ['Docs'])
    )
  end
end
