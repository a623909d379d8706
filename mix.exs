defmodule Larder.MixProject do
  use Mix.Project

  # One place says the version: the application file that rebar3 reads, too.
  @app_src "erlang/larder.app.src"
  @external_resource @app_src
  {:ok, [{:application, :larder, props}]} = :file.consult(Path.join(__DIR__, @app_src))
  @version to_string(Keyword.fetch!(props, :vsn))
  @description to_string(Keyword.fetch!(props, :description))
  @files Enum.map(Keyword.fetch!(props, :files), &to_string/1)
  @licenses Enum.map(Keyword.fetch!(props, :licenses), &to_string/1)
  @links Map.new(Keyword.fetch!(props, :links), fn {k, v} -> {to_string(k), to_string(v)} end)

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
      deps: [],
      package: package()
    ]
  end

  # A checkout is no package: it has more than what is published, and no checksums of the prebuilt
  # libraries. `make dist` makes the folder that is one; elsewhere `mix hex.build` finds no files.
  defp package do
    [
      files: if(File.exists?("prebuilt.sha256"), do: @files, else: []),
      licenses: @licenses,
      links: @links,
      build_tools: ["mix", "rebar3", "make"]
    ]
  end

  def application do
    # As in the application file for rebar3.
    {:ok, [{:application, :larder, props}]} = :file.consult(@app_src)

    [extra_applications: []] ++ Keyword.take(props, [:mod, :env, :registered])
  end
end

defmodule Mix.Tasks.Compile.LarderNif do
  @moduledoc "Gets the native library, as rebar3 does: a prebuilt one, or by `make nif`."
  use Mix.Task.Compiler

  @impl true
  def run(_args) do
    case System.cmd("escript", ["scripts/native.escript"],
           cd: __DIR__,
           into: IO.stream(:stdio, :line),
           stderr_to_stdout: true
         ) do
      {_, 0} ->
        # What mix links into the build is what exists at this moment.
        Mix.Project.build_structure()
        {:ok, []}

      {_, _} ->
        Mix.raise("larder: there is no native library; the lines above say why")
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
